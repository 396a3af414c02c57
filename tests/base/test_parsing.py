"""JSON and YAML: valid text reads as usual, anything else is an error with its place."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stsbench.base.errors import UserError
from stsbench.base.parsing import parse_json, read_draft

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=20,
)


@given(value=values)
def test_json_reads_as_usual(value: Any) -> None:
    assert parse_json(json.dumps(value)) == value
    assert parse_json(b"\xef\xbb\xbf" + json.dumps(value, ensure_ascii=False).encode()) == value


@pytest.mark.parametrize("text", ["{", "", b"\xff", '[{"a": 1, "a": 2}]'])
def test_invalid_json_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x: !!python/name:os.system", "line 1"),
        ("y: 1\nx: [", "not valid YAML"),
        ("a:\n  b: 1\n  b: 2", "line 3: 'b' occurs twice"),
        ("x: 2020-13-45", "month"),
        ("- 1", "is not a recipe"),
    ],
)
def test_invalid_yaml_is_an_error_with_its_line(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=words):
        read_draft(tmp_path / "r.yaml", "a recipe", "the examples")
