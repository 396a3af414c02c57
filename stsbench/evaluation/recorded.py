"""From the results of what is trained on vectors to their parts of the record and its item table."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stsbench.datasets import LabelledData
from stsbench.evaluation.relatedness import RelatednessResult, Supervised
from stsbench.evaluation.sts import Bootstrap
from stsbench.evaluation.transfer import Interval, TransferResult
from stsbench.records.parts import AveragePart, DataPart
from stsbench.records.signature import Signature
from stsbench.records.transfer import SupervisedPart, TransferPart
from stsbench.statistics import generator, percentile_interval
from stsbench.statistics.ratios import bootstrap_ratio

if TYPE_CHECKING:
    import pandas as pd


def transfer_part(
    result: TransferResult, task: LabelledData, signature: Signature, data: DataPart, *, truncated_sentences: int
) -> TransferPart:
    """Return a transfer task's part of the record: its percents as shares."""
    return TransferPart(
        task=result.task,
        text=task.text,
        design=result.design,
        classifier=result.classifier,
        kfold=result.kfold,
        seed=result.seed,
        ndev=result.ndev,
        ntest=result.ntest,
        acc=_share(result.acc),
        devacc=_share(result.devacc),
        f1=None if result.f1 is None else _share(result.f1),
        acc_interval=_shares(result.acc_interval),
        devacc_interval=_shares(result.devacc_interval),
        f1_interval=_shares(result.f1_interval),
        grid=result.grid,
        chosen=result.chosen,
        signature=str(signature),
        data=data,
        truncated_sentences=truncated_sentences,
    )


def supervised_part(
    result: RelatednessResult, task: Supervised, signature: Signature, data: DataPart, *, truncated_sentences: int
) -> SupervisedPart:
    """Return the part of the record of a relatedness task with a trained regressor."""
    return SupervisedPart(
        task=result.task,
        text=task.data.text,
        stop_by=signature.metric,
        seed=result.seed,
        ndev=result.ndev,
        ntest=result.ntest,
        dev=result.dev,
        pearson=result.pearson,
        spearman=result.spearman,
        mse=result.mse,
        pearson_interval=result.pearson_interval,
        spearman_interval=result.spearman_interval,
        signature=str(signature),
        data=data,
        truncated_sentences=truncated_sentences,
    )


def average_accuracy(results: Sequence[TransferResult], bootstrap: Bootstrap) -> AveragePart | None:
    """Return the plain mean of the tasks' `acc` with its interval; None for a single task.

    Tasks are resampled independently, so the k-th replicates of all tasks average to one of the mean.
    """
    if len(results) < 2:
        return None
    interval = None
    if bootstrap.resamples:
        replicates = np.mean([_replicates(result, bootstrap) for result in results], axis=0)
        interval = percentile_interval(replicates, bootstrap.level)
    mean = float(np.mean([result.acc for result in results]))
    return AveragePart(
        tasks=tuple(result.task for result in results), score=_share(mean), of_rounded=mean, interval=interval
    )


def item_table(
    transfer: Sequence[tuple[LabelledData, TransferResult]],
    supervised: Sequence[tuple[Supervised, RelatednessResult]],
) -> "pd.DataFrame | None":
    """Return one table of all predictions (see `RunRecord.items`), None if there are none."""
    import pandas as pd

    tables = [result.items.assign(text=data.text, gold=np.nan, estimate=np.nan) for data, result in transfer]
    tables += [
        result.items.rename(columns={"pair_id": "item_id", "prediction": "estimate"}).assign(
            text=task.data.text, label=None, prediction=None, correct=None, fold=-1
        )
        for task, result in supervised
    ]
    columns = ["task", "text", "split", "item_id", "label", "prediction", "correct", "fold", "gold", "estimate"]
    # A supervised task has nothing to be correct: pandas' own boolean holds that, and Parquet too.
    tables = [table[columns].astype({"correct": "boolean"}) for table in tables]
    return pd.concat(tables, ignore_index=True) if tables else None


def _replicates(result: TransferResult, bootstrap: Bootstrap) -> NDArray[np.float64]:
    items = result.items
    tested = items if result.design == "nested" else items[items["split"] == "test"]
    rng = generator(bootstrap.seed, result.task, "acc")
    return bootstrap_ratio(tested["correct"].to_numpy(), rng=rng, resamples=bootstrap.resamples)


def _share(percent: float) -> float:
    # Two decimals of a percent are four of a share: the nearest such number, not the quotient's last bit.
    return round(percent / 100, 12)


def _shares(interval: Interval | None) -> Interval | None:
    return None if interval is None else (interval[0] / 100, interval[1] / 100)
