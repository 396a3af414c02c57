"""The labelled tasks: what `eval` returns of them."""

from typing import Any

import numpy as np

from stsbench.compat.senteval.batches import Batcher, Prepare, encode, tokens_of
from stsbench.compat.senteval.utils import dotdict
from stsbench.datasets import LabelledData
from stsbench.evaluation.classifiers import Classifier, LogisticRegression
from stsbench.evaluation.folds import arrange
from stsbench.evaluation.mlp import Mlp, net_settings
from stsbench.evaluation.sts import Bootstrap
from stsbench.evaluation.transfer import score_labelled

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


def evaluate_labelled(data: LabelledData, params: dotdict, batcher: Batcher, prepare: Prepare) -> dict[str, Any]:
    """Return `acc`, `devacc`, `ndev` and `ntest`, and `f1` of MRPC."""
    items = data.items
    sides = [name for name in ("sentence1", "sentence2") if items[name].notna().all()]
    splits = list(dict.fromkeys(items["split"]))
    whole = [text for split in splits for side in sides for text in items.loc[items["split"] == split, side]]
    prepare(params, tokens_of(whole, params))
    # Batches follow the sorted rows, as in the original: less padding for the person's encoder.
    order = arrange(data).order
    vectors = []
    for side in sides:
        found = encode(items[side].iloc[order].tolist(), params, batcher)
        placed = np.empty_like(found)
        placed[order] = found
        vectors.append(placed)
    result = score_labelled(
        data,
        *vectors,
        classifier=_classifier(data, params),
        seed=params.seed,
        kfold=params.kfold,
        bootstrap=Bootstrap(resamples=0),
    )
    scores = {"devacc": result.devacc, "acc": result.acc, "ndev": result.ndev, "ntest": result.ntest}
    return scores if result.f1 is None else scores | {"f1": result.f1}


def device_of(params: dotdict) -> str:
    """Return where classifiers compute: what the person said, else CUDA where there is some."""
    if params.device:
        return str(params.device)
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _classifier(data: LabelledData, params: dotdict) -> Classifier:
    if not params.usepytorch:
        return LogisticRegression(device=device_of(params))
    options = dict(params.classifier)
    if data.task == "WordContent":
        # A thousand classes: the original gives it no hidden layer.
        options["nhid"] = 0
    return Mlp(net_settings(options), seed=params.seed, device=device_of(params))
