"""Data is looked for in one order, in every usual layout, and its absence is said with what to do."""

import os
import shutil

import pytest

from stsbench.base.errors import UserError
from stsbench.data import reading
from stsbench.data.catalogue import source
from stsbench.data.reading import find_root, places

CHECKOUT_DATA = reading.checkout_data
"""Before the tests' surroundings take it away."""

FILE = "STS/STS12-en-test/STS.gs.MSRpar.txt"


def put(root, path=FILE, text="4\n"):
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


def found(*data_dirs, paths=(FILE,)):
    return find_root(source("senteval"), list(paths), "STS12", list(data_dirs))


@pytest.mark.parametrize(
    "layout", ["downstream", "senteval/downstream", "SentEval/data/downstream", "data/downstream", "."]
)
def test_every_usual_layout_is_recognised(tmp_path, layout):
    put(tmp_path / "here" / layout)
    assert found(tmp_path / "here") == tmp_path / "here" / layout


def test_named_folders_come_first_then_the_variable_then_the_cache(tmp_path, monkeypatch):
    names = ["named", "named-too", "variable", "variable-too"]
    folders = [tmp_path / name for name in names]
    for folder in folders:
        folder.mkdir()
    monkeypatch.setenv("STSBENCH_DATA", os.pathsep.join(map(str, folders[2:])))
    order = places(folders[:2])
    assert [place.folder for place in order] == [*folders, tmp_path / "cache" / "data"]
    assert [place.origin for place in order] == ["--data-dir"] * 2 + ["STSBENCH_DATA"] * 2 + ["cache"]

    in_order = [*folders, tmp_path / "cache" / "data" / "senteval"]
    for folder in in_order:
        put(folder / "downstream")
    for folder in in_order:
        assert found(*folders[:2]) == folder / "downstream"
        shutil.rmtree(folder / "downstream")


def test_a_checkout_looks_into_its_folder_data_after_the_variable(tmp_path, monkeypatch):
    checkout = tmp_path / "clone" / "data"
    for folder in (checkout, tmp_path / "clone" / "stsbench"):
        folder.mkdir(parents=True)
    (tmp_path / "clone" / "pyproject.toml").write_text('[project]\nname = "stsbench"\n')
    monkeypatch.setattr(reading, "files", lambda _package: tmp_path / "clone" / "stsbench")
    monkeypatch.setattr(reading, "checkout_data", CHECKOUT_DATA)
    monkeypatch.delenv("STSBENCH_DATA")
    (tmp_path / "variable").mkdir()
    put(checkout / "senteval" / "downstream")
    assert found() == checkout / "senteval" / "downstream"
    monkeypatch.setenv("STSBENCH_DATA", str(tmp_path / "variable"))
    assert [place.origin for place in places()] == ["STSBENCH_DATA", "checkout", "cache"]
    assert found() == checkout / "senteval" / "downstream"
    put(tmp_path / "variable" / "downstream")
    assert found() == tmp_path / "variable" / "downstream"
    monkeypatch.setenv("STSBENCH_DATA", "")
    assert [place.origin for place in places()] == ["cache"]
    # Beside an installed package there is no pyproject.toml.
    monkeypatch.delenv("STSBENCH_DATA")
    (checkout.parent / "pyproject.toml").unlink()
    assert [place.origin for place in places()] == ["cache"]


def test_data_or_a_named_folder_that_does_not_exist_is_an_error(tmp_path, monkeypatch):
    for name in "ab":
        (tmp_path / name).mkdir()
    monkeypatch.setenv("STSBENCH_DATA", str(tmp_path / "b"))
    searched = r"not found in .*/a \(--data-dir\), .*/b \(STSBENCH_DATA\), .*/data \(cache\)"
    with pytest.raises(UserError, match=rf"{searched}, .* `stsbench data get senteval`"):
        found(tmp_path / "a")
    with pytest.raises(UserError, match=r"--data-dir names .*nowhere"):
        places([tmp_path / "nowhere"])
    monkeypatch.setenv("STSBENCH_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(UserError, match=r"STSBENCH_DATA names .*nowhere"):
        places()


def test_a_task_is_never_put_together_from_two_folders(tmp_path):
    other = "STS/STS12-en-test/STS.input.MSRpar.txt"
    put(tmp_path / "half" / "downstream")
    put(tmp_path / "full" / "downstream")
    put(tmp_path / "full" / "downstream", other)
    with pytest.raises(UserError, match=r"half.*STS\.input\.MSRpar\.txt"):
        found(tmp_path / "half", tmp_path / "full", paths=(FILE, other))
