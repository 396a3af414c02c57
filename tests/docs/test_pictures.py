"""The pictures of README and the documentation are of this version, small, and of what their record says."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import stsbench as sb

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / "docs" / "_static"
AGAIN = "`python docs/pictures.py` takes the pictures anew"


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    if not (ROOT / "docs" / "index.md").is_file():
        pytest.skip("needs docs/")
    told: dict[str, Any] = json.loads((PLACE / "pictures.json").read_text("utf-8"))
    return told


def test_the_pictures_are_of_this_version_and_the_record_and_small(record: dict[str, Any]) -> None:
    old = {name: of["version"] for name, of in record.items() if of["version"] != sb.__version__}
    assert record
    assert not old, f"{old} are of another version than {sb.__version__}: {AGAIN}"
    told = {name: digest for of in record.values() for name, digest in of["pictures"].items()}
    here = {path.name: path.read_bytes() for path in PLACE.glob("*.png")}
    assert {name: sha256(data).hexdigest() for name, data in here.items()} == told, AGAIN
    assert {name: len(data) for name, data in here.items() if len(data) >= 200_000} == {}


def test_no_sentence_of_a_data_set_is_shown(record: dict[str, Any]) -> None:
    """A page of pairs is of the sample, which is ours, or without text."""
    for of in record.values():
        *measured, shown = of["commands"]
        if shown.startswith("stsbench explore"):
            assert "--without-text" in shown or all("--tasks sample" in command for command in measured)
