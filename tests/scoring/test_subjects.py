"""What is analysed: records as they are, models as they are to be loaded, each with a name of its own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stsbench as sb
from stsbench.data.tables import StsData
from stsbench.scoring.subjects import named_subjects

Encode = Callable[[list[str]], Any]


@pytest.fixture
def run(hash_encode: Encode, toy_data: Callable[..., StsData], tmp_path: Path) -> sb.RunRecord:
    return sb.evaluate(hash_encode, toy_data(), intervals=sb.Intervals(None), out=tmp_path / "monday")


def test_two_records_of_one_model_are_named_by_their_folders(run: sb.RunRecord, tmp_path: Path) -> None:
    (tmp_path / "monday").rename(tmp_path / "tuesday")
    again = sb.load_run(tmp_path / "tuesday")
    label, other = named_subjects([run, again])
    assert (label[-9:], other[-10:]) == (" (monday)", " (tuesday)")
