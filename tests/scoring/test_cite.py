"""What to cite for a record."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import stsbench as sb
from stsbench.data.tables import StsData
from stsbench.records.show import cite
from stsbench.records.store import save_run


def test_tasks_and_a_known_model_have_their_papers(
    hash_encode: Callable[..., Any], toy_data: Callable[..., StsData], tmp_path: Path
) -> None:
    catalogued = [StsData(**(vars(toy_data(name)) | {"status": "verified"})) for name in ("STS12", "STS-B")]
    record = sb.evaluate(hash_encode, catalogued)
    model = record.model.model_copy(update={"name": "princeton-nlp/unsup-simcse-bert-base-uncased"})
    save_run(record.model_copy(update={"model": model}).with_items(record.items), tmp_path / "run")
    found = cite([tmp_path / "run"])
    assert list(found) == ["princeton-nlp/unsup-simcse-bert-base-uncased", "STS12", "STS-B"]
    assert all(citation.startswith("@") and citation.endswith("}") for citation in found.values())
    assert "gao" in found["princeton-nlp/unsup-simcse-bert-base-uncased"].lower()
    assert "SemEval-2012" in found["STS12"].replace("{", "").replace("}", "")


def test_an_unknown_model_and_data_of_one_s_own_are_told_as_such(
    hash_encode: Callable[..., Any], toy_data: Callable[..., StsData], tmp_path: Path
) -> None:
    # A file of one's own may be called as a task is.
    sb.evaluate(hash_encode, [toy_data("STS12"), toy_data("mine")], out=tmp_path / "run")
    name, *tasks = cite([tmp_path / "run"]).items()
    assert name[1] == "not known here: see its model card."
    assert tasks == [("STS12", "a file of your own."), ("mine", "a file of your own.")]
