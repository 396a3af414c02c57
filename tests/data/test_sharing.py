"""Which pairs share sentences: the counts of the real graphs, as released and by letters and digits."""

from pathlib import Path

import pytest

from stsbench.base.errors import UserError
from stsbench.data.overlap import TOGETHER, sharing

COMPONENTS = {
    "STS12": (3108, 2063, 141),
    "STS13": (1500, 1181, 170),
    "STS14": (3750, 2708, 161),
    "STS15": (3000, 2182, 58),
    "STS16": (1186, 728, 132),
    "STS-B": (1379, 1178, 25),
    "SICK-R": (4927, 864, 368),
}


@pytest.mark.shared
def test_the_graphs_of_the_sts_tasks_are_known(senteval: Path) -> None:
    found = sharing(data_dirs=[senteval])
    frame = found.frame.set_index(["task", "same"])
    for task, counts in COMPONENTS.items():
        row = frame.loc[task, "as released"]
        assert tuple(row[["pairs", "components", "largest component"]]) == counts
    released = frame.xs("as released", level="same")["sharing"]
    assert released[["SICK-R", "STS16", "STS-B"]].round().tolist() == [98, 47, 20]
    # Three quarters of STS-B's test pairs stand in the other tasks; in one tokenisation 838.
    elsewhere = frame.loc["STS-B"]["elsewhere"] * 1379 / 100
    assert elsewhere["as released"] == pytest.approx(839, abs=1)
    assert elsewhere["letters and digits"] == pytest.approx(1017)
    together = frame.loc[TOGETHER]
    assert together["pairs"].tolist() == [18850, 18850]
    assert together.loc["letters and digits", "sentences"] < together.loc["as released", "sentences"]
    assert len(found.table()[0].frame) == len(COMPONENTS) + 2


def test_one_task_is_shown_both_ways() -> None:
    shown = sharing(["sample"]).table()[0].frame
    assert shown["same"].tolist() == ["as released", "letters and digits"]
    assert shown["elsewhere"].tolist() == [0.0, 0.0]


@pytest.mark.shared
def test_what_has_labels_alone_is_refused(senteval: Path) -> None:
    with pytest.raises(UserError, match="labels, not similarity scores"):
        sharing(["TREC"], data_dirs=[senteval])


def test_an_odd_split_of_the_sample_is_refused() -> None:
    with pytest.raises(UserError, match="name it `sample`"):
        sharing(["sample:dev"])
