"""A manifest notices every change of itself and of the files that it names."""

from collections.abc import Callable
from pathlib import Path

import pytest

from stsbench.base.errors import UserError
from stsbench.base.manifest import Manifest, fingerprint


def test_what_is_written_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\x00\xff")
    written = Manifest.of(tmp_path, {"steps": 3, "rate": 0.1}, ["a"])
    written.write(tmp_path, "m.json")
    assert Manifest.read(tmp_path, "m.json", "delete it") == written
    assert written.files["a"] == "06eb7d6a69ee19e5fbdf749018d3d2abfa04bcbd1365db312eb86dc7169389b8"
    assert fingerprint("ab") != fingerprint("a", "b")


@pytest.mark.parametrize(
    ("spoil", "where"),
    [
        (lambda folder: (folder / "a").write_bytes(b"other"), "/a is not the file"),
        (lambda folder: (folder / "a").unlink(), "lacks a"),
        (lambda folder: (folder / "m.json").write_text("{"), "m.json is damaged"),
        (lambda folder: (folder / "m.json").write_text("[]"), "m.json is damaged"),
        (lambda folder: (folder / "m.json").unlink(), "m.json is damaged"),
        (lambda folder: edit(folder / "m.json", '"steps": 3', '"steps": 4'), "m.json was edited"),
    ],
)
def test_a_change_is_an_error_with_the_remedy(spoil: Callable[[Path], object], where: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    Manifest.of(tmp_path, {"steps": 3}, ["a"]).write(tmp_path, "m.json")
    spoil(tmp_path)
    with pytest.raises(UserError, match=rf"{where}.*: delete it\.$"):
        Manifest.read(tmp_path, "m.json", "delete it")


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
