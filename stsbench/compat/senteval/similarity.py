"""The STS tasks: what `eval` returns of them, in either shape."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import pearsonr, spearmanr

from stsbench.compat.senteval.batches import Batcher, Prepare, encode, tokens_of
from stsbench.compat.senteval.labelled import device_of
from stsbench.compat.senteval.utils import cosine, dotdict
from stsbench.datasets import StsData
from stsbench.evaluation.relatedness import StopBy, pair_order, score_relatedness
from stsbench.evaluation.sts import Bootstrap

UNSUPERVISED = ("STS12", "STS13", "STS14", "STS15", "STS16")
SUPERVISED = {"STSBenchmark": "STS-B", "SICKRelatedness": "SICK-R"}
"""SentEval's names of the tasks that it trains a regressor for, and the catalogue's."""

Similarity = Callable[[NDArray[Any], NDArray[Any]], float]


def evaluate_similarity(
    data: StsData, params: dotdict, batcher: Batcher, prepare: Prepare, *, pooled: bool
) -> dict[str, Any]:
    """Return the correlations of each subset (of each split, for a task without subsets), and `all` of them.

    Args:
        data: STS12 to STS16, or all splits of another.
        params: the person's.
        batcher: the person's.
        prepare: the person's.
        pooled: whether the `all` entry has the correlation over all pairs together, as the SimCSE fork's.
    """
    by = "subset" if data.task in UNSUPERVISED else "split"
    # The original sorts STS12 to STS16 to pad less; the fork leaves the others as they are.
    pairs = data.pairs.iloc[pair_order(data.pairs)] if by == "subset" else data.pairs
    groups = {name: pairs[pairs[by] == name] for name in dict.fromkeys(data.pairs[by])}
    whole = [text for group in groups.values() for side in ("sentence1", "sentence2") for text in group[side]]
    prepare(params, tokens_of(whole, params))
    similarity: Similarity = params.similarity or _default_similarity
    results: dict[str, Any] = {}
    found: list[NDArray[np.float64]] = []
    for name, group in groups.items():
        u, v = (encode(group[side].tolist(), params, batcher) for side in ("sentence1", "sentence2"))
        values = np.array([float(similarity(a, b)) for a, b in zip(u, v, strict=True)])
        found.append(values)
        results[name] = _correlations(values, group["gold"].to_numpy(dtype=np.float64))
    gold = np.concatenate([group["gold"].to_numpy(dtype=np.float64) for group in groups.values()])
    whole_task = _correlations(np.concatenate(found), gold)
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


def evaluate_regressor(
    data: StsData, params: dotdict, batcher: Batcher, prepare: Prepare, *, stop_by: StopBy
) -> dict[str, Any]:
    """Return what the trained regressor scores: the original's `STSBenchmark` and `SICKRelatedness`."""
    pairs, sides = data.pairs, ("sentence1", "sentence2")
    splits = list(dict.fromkeys(pairs["split"]))
    whole = [text for split in splits for side in sides for text in pairs.loc[pairs["split"] == split, side]]
    prepare(params, tokens_of(whole, params))
    order = pair_order(pairs)
    vectors = []
    for side in sides:
        found = encode(pairs[side].iloc[order].tolist(), params, batcher)
        placed = np.empty_like(found)
        placed[order] = found
        vectors.append(placed)
    result = score_relatedness(
        data,
        vectors[0],
        vectors[1],
        stop_by=stop_by,
        seed=params.seed,
        bootstrap=Bootstrap(resamples=0),
        device=device_of(params),
    )
    predicted = dict(zip(result.items["pair_id"], result.items["prediction"], strict=True))
    tested = pairs.iloc[order]
    return {
        f"dev{stop_by}": result.dev,
        "pearson": result.pearson,
        "spearman": result.spearman,
        "mse": result.mse,
        "yhat": np.array([predicted[pair] for pair in tested.loc[tested["split"] == "test", "pair_id"]]),
        "ndev": result.ndev,
        "ntest": result.ntest,
    }


def _default_similarity(u: NDArray[Any], v: NDArray[Any]) -> float:
    with np.errstate(invalid="ignore", divide="ignore"):
        a, b = (np.nan_to_num(side.astype(np.float64)) for side in (u, v))
        return float(np.nan_to_num(cosine(a, b)))


def _correlations(values: NDArray[np.float64], gold: NDArray[np.float64]) -> dict[str, Any]:
    return {"pearson": pearsonr(values, gold), "spearman": spearmanr(values, gold), "nsamples": len(gold)}
