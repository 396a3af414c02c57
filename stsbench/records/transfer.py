"""The parts of a run record that say what came out where something was trained on the vectors."""

from stsbench.records.parts import DataPart, Interval, Part, SignatureText


class TransferPart(Part):
    """The scores of one transfer task: shares between 0 and 1, which print as percent with two decimals.

    Attributes:
        task: for example `TREC`.
        text: the text variant.
        design: `nested` (two levels of cross-validation), `kfold` (on train, then test) or `split`.
        classifier: `logreg`, or the net's name.
        kfold: the number of folds; 0 where none were made.
        seed: of the folds of `kfold` and of the net.
        ndev: how many items `devacc` is over.
        ntest: how many items `acc` is over.
        acc: accuracy on test, the score of the SimCSE and ESimCSE tables.
        devacc: the accuracy that the regulariser was chosen by, the score of MoCoSE's tables.
        f1: of class 1 on test, for two classes of sentence pairs.
        acc_interval: percentile bootstrap over items; None if it was not asked for. So are the other two.
        grid: the regularisers that were tried.
        chosen: the one of each final fit: one for each outer fold, or a single one.
        truncated_sentences: distinct sentences that were longer than the model reads.

    What is not known of an imported score is None, or empty.
    """

    task: str
    text: str
    design: str
    classifier: str
    kfold: int | None
    seed: int | None
    ndev: int
    ntest: int
    acc: float
    devacc: float
    f1: float | None = None
    acc_interval: Interval | None = None
    devacc_interval: Interval | None = None
    f1_interval: Interval | None = None
    grid: tuple[float, ...]
    chosen: tuple[float, ...]
    signature: SignatureText
    data: DataPart
    truncated_sentences: int | None


class SupervisedPart(Part):
    """The scores of a relatedness task whose regressor was trained: correlations between -1 and 1.

    Attributes:
        task: `STS-B` or `SICK-R`.
        text: the text variant.
        stop_by: the correlation on dev that training stopped by.
        seed: of the weights and the order of rows.
        ndev: how many pairs dev has.
        ntest: how many pairs test has.
        dev: the correlation on dev at the end.
        pearson: on test, the original SentEval's headline.
        spearman: on test.
        mse: mean squared error on test, in the gold's own units.
        pearson_interval: percentile bootstrap over the test pairs. So is the other.
        truncated_sentences: distinct sentences that were longer than the model reads.
    """

    task: str
    text: str
    stop_by: str
    seed: int
    ndev: int
    ntest: int
    dev: float
    pearson: float
    spearman: float
    mse: float
    pearson_interval: Interval | None = None
    spearman_interval: Interval | None = None
    signature: SignatureText
    data: DataPart
    truncated_sentences: int
