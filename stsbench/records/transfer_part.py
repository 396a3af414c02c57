"""What a run record keeps of transfer tasks: the scores here, each item's prediction in `items.parquet`."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from stsbench.records.record import DataPart, Interval

ITEM_COLUMNS = ("task", "split", "item_id", "label", "prediction", "correct", "fold")
"""The columns of `items.parquet`: one row per prediction; `fold` is -1 where no fold held the item out."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TransferPart(_Part):
    """
    The scores of one transfer task. Scores and intervals are in percent, as SentEval prints them.

    Attributes:
        design: `nested`, `kfold` or `split`: where the regulariser was chosen and what was predicted.
        classifier: for example `logreg` or `mlp-adam`.
        kfold: the number of folds; 0 where none were made.
        seed: of folds and classifier.
        acc: accuracy on test (out of fold where there is none), the score of the SimCSE and ESimCSE tables.
        devacc: the accuracy that the regulariser was chosen by, the score of MoCoSE's.
        f1: of class 1 on test, for two classes of sentence pairs.
        grid: the regularisers to choose from.
        chosen: the one of each final fit.
        signature: of `acc`.
    """

    task: str
    text: str
    design: Literal["nested", "kfold", "split"]
    classifier: str
    kfold: int
    seed: int
    ndev: int
    ntest: int
    acc: float
    acc_interval: Interval | None = None
    devacc: float
    devacc_interval: Interval | None = None
    f1: float | None = None
    f1_interval: Interval | None = None
    grid: tuple[float, ...]
    chosen: tuple[float, ...]
    signature: str = ""
    data: DataPart
    notes: tuple[str, ...] = ()


class RelatednessPart(_Part):
    """
    The scores of the original SentEval's supervised STS-B or SICK-R. Correlations are between -1 and 1.

    Attributes:
        dev: the Pearson correlation on dev that training stopped by.
        pearson: on test, the headline.
        spearman: on test.
        mse: mean squared error on test.
    """

    task: str
    text: str
    seed: int
    ndev: int
    ntest: int
    dev: float
    pearson: float
    pearson_interval: Interval | None = None
    spearman: float
    spearman_interval: Interval | None = None
    mse: float
    signature: str = ""
    data: DataPart
    notes: tuple[str, ...] = ()


class ItemsFile(_Part):
    """The item table that belongs to the record."""

    file: str
    rows: int
    sha256: str
