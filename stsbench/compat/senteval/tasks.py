"""SentEval's tasks: the results that `eval` returns for each, under the original's keys."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import pearsonr, spearmanr

from stsbench.base.errors import MODELS, UserError, require
from stsbench.compat.senteval.batches import ARRAY, SIDES, Prepared, Results, Script, Shape, encode_sides
from stsbench.compat.senteval.utils import cosine, dotdict
from stsbench.data.catalogue import Source
from stsbench.data.reading import find_root
from stsbench.data.rows import text_lines
from stsbench.data.tables import LabelledData, StsData
from stsbench.scoring.classifiers import Classifier, LogisticRegression, arrange
from stsbench.scoring.kinds.classification import classify
from stsbench.scoring.kinds.relatedness import StopBy, pair_order, regress, scores_on_test
from stsbench.scoring.mlp import Mlp, net_settings

NAMES = {
    "CR": "CR",
    "MR": "MR",
    "MPQA": "MPQA",
    "SUBJ": "SUBJ",
    "SST2": "SST2",
    "SST5": "SST5",
    "TREC": "TREC",
    "MRPC": "MRPC",
    "SICKEntailment": "SICK-E",
}
"""SentEval's names of the tasks, and the catalogue's."""

UNSUPERVISED = ("STS12", "STS13", "STS14", "STS15", "STS16")
SUPERVISED = {"STSBenchmark": "STS-B", "SICKRelatedness": "SICK-R"}
"""SentEval's names of the tasks that it trains a regressor for, and the catalogue's."""

SPLITS = ("train", "dev", "test")
"""The splits of these two."""

FILES = {
    "Length": "sentence_length.txt",
    "WordContent": "word_content.txt",
    "Depth": "tree_depth.txt",
    "TopConstituents": "top_constituents.txt",
    "BigramShift": "bigram_shift.txt",
    "Tense": "past_present.txt",
    "SubjNumber": "subj_number.txt",
    "ObjNumber": "obj_number.txt",
    "OddManOut": "odd_man_out.txt",
    "CoordinationInversion": "coordination_inversion.txt",
}
"""The file of each task, in the folder `probing`."""

Similarity = Callable[[NDArray[Any], NDArray[Any]], float]


def evaluate_labelled(data: LabelledData, script: Script) -> dict[str, Any]:
    """Returns `acc`, `devacc`, `ndev` and `ntest`, and `f1` of MRPC."""
    require(MODELS, f"the classifier of {data.task}")
    sides = [name for name in SIDES if data.items[name].notna().all()]
    # Batches follow the sorted rows, as in the original: less padding for the script's encoder.
    vectors = encode_sides(data.items, sides, arrange(data).order, script)
    params = script.params
    classifier = _classifier(data, params)
    result = classify(data, *vectors, classifier=classifier, seed=params.seed, kfold=params.kfold)
    scores = {"devacc": result.devacc, "acc": result.acc, "ndev": result.ndev, "ntest": result.ntest}
    return scores if result.f1 is None else scores | {"f1": result.f1}


def _classifier(data: LabelledData, params: dotdict) -> Classifier:
    if not params.usepytorch:
        return LogisticRegression(device=_device_of(params))
    options = dict(params.classifier)
    if data.task == "WordContent":
        # With its thousand classes, the original does not use a hidden layer.
        options["nhid"] = 0
    return Mlp(net_settings(options), seed=params.seed, device=_device_of(params))


def _device_of(params: dotdict) -> str:
    """Returns the device of classifiers: `params.device`, else CUDA if it is available."""
    if params.device:
        return str(params.device)
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def evaluate_similarity(data: StsData, script: Script, *, pooled: bool) -> dict[str, Any]:
    """Returns the correlations of each subset (of each split, for a task without subsets), and `all` of them.

    Args:
        data: STS12 to STS16, or splits of another.
        script: what encodes them.
        pooled: whether the `all` entry has the correlation over all pairs together, as in the SimCSE fork.
    """
    groups = _groups(data)
    prepared = Prepared(script, _sentences(groups))
    vectors = {name: _encode_sides(group, prepared) for name, group in groups.items()}
    return _similarities(groups, vectors, script.params, pooled=pooled)


def evaluate_splits(data: StsData, script: Script, *, trained: bool) -> Results:
    """Returns the results of `evaluate_similarity` on a task's splits, and the regressor's, each computed when it
    is read.

    The test split is encoded before it returns, the others when one of their keys is read. With `params.splits`,
    exactly those splits are encoded before it returns.

    Args:
        data: all splits of STS-B or SICK-R.
        script: what encodes them.
        trained: whether results also have the keys of `evaluate_regressor`, if all splits are selected.
    """
    params = script.params
    groups = {name: group for name, group in _groups(data).items() if name in (params.splits or SPLITS)}
    prepared = Prepared(script, _sentences(groups))
    name, now = params.current_task, params.splits or ("test",)
    vectors = {split: _encode_sides(group, prepared) for split, group in groups.items() if split in now}
    later = prepared.kept()

    def read(*splits: str) -> dict[str, Any]:
        """Returns the correlations of splits, and of all splits together."""
        _vectors_of(*splits)
        return _similarities({split: groups[split] for split in splits}, vectors, params, pooled=True)

    def _vectors_of(*splits: str) -> None:
        for split in splits:
            if split not in vectors:
                test = groups["test"]["sentence1"].tolist()
                later.resumed(test, vectors["test"][0], f"{name}'s {split} split")
                vectors[split] = _encode_sides(groups[split], later)

    def supervised() -> dict[str, Any]:
        _vectors_of(*groups)
        first, second = (np.concatenate([vectors[split][side] for split in groups]) for side in (0, 1))
        return _regression(replace(data, pairs=pd.concat(groups.values())), first, second, params, "pearson")

    shapes: list[Shape] = [([split], partial(read, split)) for split in groups]
    regressor = (_regression_keys("pearson"), supervised) if trained and len(groups) == len(SPLITS) else None
    return Results(*shapes, (["all"], partial(read, *groups)), on_request=regressor)


Groups = dict[str, pd.DataFrame]
"""The pairs of each subset or split, in the order of the batches."""

Sides = dict[str, tuple[NDArray[np.float32], NDArray[np.float32]]]
"""The vectors of either side of each group's pairs."""


def _groups(data: StsData) -> Groups:
    by = "subset" if data.task in UNSUPERVISED else "split"
    # The original sorts STS12 to STS16 to pad less; the fork does not sort the others.
    pairs = data.pairs.iloc[pair_order(data.pairs)] if by == "subset" else data.pairs
    return {name: pairs[pairs[by] == name] for name in dict.fromkeys(data.pairs[by])}


def _sentences(groups: Groups) -> list[str]:
    return [text for group in groups.values() for side in SIDES for text in group[side]]


def _encode_sides(group: pd.DataFrame, prepared: Prepared) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    first, second = (prepared.encode(group[side].tolist()) for side in SIDES)
    return first, second


def _similarities(groups: Groups, vectors: Sides, params: dotdict, *, pooled: bool) -> dict[str, Any]:
    similarity: Similarity = params.similarity or _default_similarity
    golds = {name: group["gold"].to_numpy(dtype=np.float64) for name, group in groups.items()}
    values = {
        name: np.array([float(similarity(a, b)) for a, b in zip(*vectors[name], strict=True)]) for name in groups
    }
    results: dict[str, Any] = {name: _correlations(values[name], golds[name]) for name in groups}
    whole_task = _correlations(*(np.concatenate(list(parts.values())) for parts in (values, golds)))
    weights = [entry["nsamples"] for entry in results.values()]
    results["all"] = {
        metric: ({"all": float(whole_task[metric][0])} if pooled else {})
        | {
            "mean": float(np.mean([results[name][metric][0] for name in groups])),
            "wmean": float(np.average([results[name][metric][0] for name in groups], weights=weights)),
        }
        for metric in ("pearson", "spearman")
    }
    return results


def _default_similarity(u: NDArray[Any], v: NDArray[Any]) -> float:
    with np.errstate(invalid="ignore", divide="ignore"):
        a, b = (np.nan_to_num(side.astype(np.float64)) for side in (u, v))
        return float(np.nan_to_num(cosine(a, b)))


def _correlations(values: NDArray[np.float64], gold: NDArray[np.float64]) -> dict[str, Any]:
    return {"pearson": pearsonr(values, gold), "spearman": spearmanr(values, gold), "nsamples": len(gold)}


def evaluate_regressor(data: StsData, script: Script, *, stop_by: StopBy) -> Results:
    """Returns the trained regressor's scores: the original's `STSBenchmark` and `SICKRelatedness`."""
    require(MODELS, f"the trained regressor of {data.task}")
    first, second = encode_sides(data.pairs, SIDES, pair_order(data.pairs), script)
    scores = _regression(data, first, second, script.params, stop_by)
    return Results((list(scores), lambda: scores))


def _regression(
    data: StsData, first: NDArray[np.float32], second: NDArray[np.float32], params: dotdict, stop_by: StopBy
) -> dict[str, Any]:
    device = _device_of(params)
    result = regress(data, first, second, stop_by=stop_by, seed=params.seed, device=device)
    yhat = result.predicted
    scores = scores_on_test(yhat, data.pairs["gold"].to_numpy()[result.tested])
    values = (result.dev, *(scores[name] for name in ("pearson", "spearman", "mse")), yhat, result.ndev, len(yhat))
    return dict(zip(_regression_keys(stop_by), values, strict=True))


def _regression_keys(stop_by: StopBy) -> list[str]:
    return [f"dev{stop_by}", "pearson", "spearman", "mse", ARRAY, "ndev", "ntest"]


_SPLITS = {"tr": "train", "va": "dev", "te": "test"}


_PROBING = Source(
    name="senteval-probing",
    title="The probing tasks of SentEval",
    kind="by-hand",
    address="https://github.com/facebookresearch/SentEval",
    roots=("probing", "senteval/probing", "SentEval/data/probing", "data/probing"),
    documentation="https://github.com/facebookresearch/SentEval",
    licence="",
)


def load_probing(task: str, data_dirs: Sequence[Path]) -> LabelledData:
    """Reads a probing task, by SentEval's name: lines of split, label and sentence, separated by tabs."""
    path = find_root(_PROBING, [FILES[task]], task, data_dirs) / FILES[task]
    rows = []
    for number, line in text_lines(path):
        if not line.strip():
            continue
        cells = line.rstrip().split("\t")
        if len(cells) < 3 or cells[0] not in _SPLITS:
            raise UserError(f"{path}, line {number}: expected tr, va or te, a label and a sentence.")
        rows.append((_SPLITS[cells[0]], f"{number}", cells[1], cells[-1], None))
    items = pd.DataFrame(rows, columns=["split", "item_id", "label", "sentence1", "sentence2"], dtype=object)
    classes = sorted(set(items.loc[items["split"] == "train", "label"]))
    strange = items.loc[~items["label"].isin(classes)]
    if len(strange):
        row = strange.iloc[0]
        raise UserError(f"{path}, line {row['item_id']}: label {row['label']!r} does not occur in train.")
    return LabelledData(task, "senteval", items, tuple(classes), "user", "", (), ())
