"""JSON and YAML: valid text reads as usual, anything else is a ValueError or a YAML error."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stsbench.base.parsing import parse_json, parse_yaml

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=20,
)


@given(value=values)
def test_json_reads_as_usual(value: Any) -> None:
    assert parse_json(json.dumps(value)) == value
    assert parse_json(b"\xef\xbb\xbf" + json.dumps(value, ensure_ascii=False).encode()) == value


@pytest.mark.parametrize(
    "text", ["{", "", b"\xff", '[{"a": 1, "a": 2}]', "9" * 5000, "[" * 100_000 + "]" * 100_000]
)
def test_invalid_json_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


@pytest.mark.parametrize("text", ["x: !!python/object/apply:os.system [true]", "x: [", "x: \x00", "x: *none"])
def test_invalid_yaml_is_the_parsers_error(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        parse_yaml(text)


@pytest.mark.parametrize("text", ["[" * 2000 + "]" * 2000, "x: 2020-13-45"])
def test_other_mistakes_in_yaml_are_value_errors(text: str) -> None:
    with pytest.raises(ValueError, match=r"nested|month"):
        parse_yaml(text)
