"""What is analysed: records as they are, models as they are to be loaded, each with a name of its own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stsbench as sb
from stsbench.data.tables import StsData
from stsbench.encoders.use import Use
from stsbench.scoring.subjects import load_subjects, named_subjects

Encode = Callable[[list[str]], Any]


@pytest.fixture
def run(hash_encode: Encode, toy_data: Callable[..., StsData], tmp_path: Path) -> sb.RunRecord:
    return sb.evaluate(hash_encode, toy_data(), intervals=sb.Intervals(None), out=tmp_path / "monday")


def test_two_records_of_one_model_are_named_by_their_folders(run: sb.RunRecord, tmp_path: Path) -> None:
    (tmp_path / "monday").rename(tmp_path / "tuesday")
    again = sb.load_run(tmp_path / "tuesday")
    label, other = named_subjects([run, again])
    assert (label[-9:], other[-10:]) == (" (monday)", " (tuesday)")


@pytest.mark.parametrize(
    ("options", "name"), [(Use(pooling="cls"), "--pooling"), (Use(max_length=9), "--max-length")]
)
def test_an_option_of_loading_is_refused_if_there_is_no_model_to_load(
    options: Use, name: str, run: sb.RunRecord
) -> None:
    folder = str(run.folder)
    for runs, models in (([folder], []), ([], [folder])):
        with pytest.raises(sb.UserError, match=f"^{name} is for models that are to be loaded"):
            load_subjects(runs, models, options)
        assert load_subjects(runs, models, Use()) == [folder]
    assert load_subjects([folder], [], options, has_others=True) == [folder]


def test_a_wrong_keyword_of_an_analysis_is_not_swallowed(run: sb.RunRecord) -> None:
    with pytest.raises(TypeError, match="tasks"):
        sb.spectrum(run, tasks="STS16")  # type: ignore[call-arg]
