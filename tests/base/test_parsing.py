"""JSON, YAML and manifests: valid files read as usual, anything else is an error with its place."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stsbench.base.errors import UserError
from stsbench.base.files import Manifest, fingerprint
from stsbench.base.parsing import dump_yaml, parse_json, read_draft, read_yaml

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=20,
)


@given(value=values)
def test_json_reads_as_usual(value: Any) -> None:
    assert parse_json(json.dumps(value)) == value
    assert parse_json(b"\xef\xbb\xbf" + json.dumps(value, ensure_ascii=False).encode()) == value
    for text in ("{", "", b"\xff", '[{"a": 1, "a": 2}]'):
        with pytest.raises(ValueError, match=r"."):
            parse_json(text)


@given(value=st.floats(allow_nan=False) | st.integers() | st.text("0159eE+-._:x", min_size=1, max_size=6))
def test_yaml_reads_what_was_written_and_numbers_as_json_does(value: Any) -> None:
    assert repr(read_yaml(dump_yaml([value]))) == repr([value])
    assert repr(read_yaml("[1e-5, -2.5E+3, 1e3, -.5, 12]")) == "[1e-05, -2500.0, 1000.0, -0.5, 12]"


def edit(path: Path) -> None:
    path.write_text(path.read_text(encoding="utf-8").replace('"steps": 3', '"steps": 4'), encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x: !!python/name:os.system", "line 1"),
        ("y: 1\nx: [", "not valid YAML"),
        ("a:\n  b: 1\n  b: 2", "line 3: 'b' occurs twice"),
        ("- 1", "is not a recipe"),
    ],
)
def test_invalid_yaml_is_an_error_with_its_line(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=words):
        read_draft(tmp_path / "r.yaml", "a recipe", "the examples")


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
        (lambda folder: (folder / "m.json").write_text("[]"), "m.json is damaged"),
        (lambda folder: edit(folder / "m.json"), "m.json was edited"),
    ],
)
def test_a_change_is_an_error_with_the_remedy(spoil: Callable[[Path], object], where: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    Manifest.of(tmp_path, {"steps": 3}, ["a"]).write(tmp_path, "m.json")
    spoil(tmp_path)
    with pytest.raises(UserError, match=rf"{where}.*: delete it\.$"):
        Manifest.read(tmp_path, "m.json", "delete it")
