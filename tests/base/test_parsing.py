"""JSON and YAML of people's files, within bounds: what would fill memory or stack is told at once."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stsbench.base.parsing import DEEPEST, MOST_NODES, parse_json, parse_yaml

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=20,
)


@given(value=values)
def test_json_reads_as_ever(value: Any) -> None:
    assert parse_json(json.dumps(value)) == value
    assert parse_json(json.dumps(value, ensure_ascii=False).encode()) == value


def test_a_byte_order_mark_is_none_of_the_text() -> None:
    assert parse_json(b'\xef\xbb\xbf{"a": 1}') == parse_json('\ufeff{"a": 1}') == {"a": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000 + "]" * 100_000, "nested more than 100 levels deep"),
        ('{"a":' * 5000 + "1" + "}" * 5000, "nested more than 100 levels deep"),
        ("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1), "nested more than 100 levels deep"),
        ("9" * 5000, "a number has 5,000 digits"),
        ("1." + "9" * 5000, "a number has 5,002 digits"),
        ("[1e999]", "the number 1e999 is too large"),
        ("[-1e999]", "the number -1e999 is too large"),
        ("{", "Expecting"),
        ("", "Expecting"),
        (b"\xff", "utf-8"),
    ],
)
def test_json_beyond_bounds_is_a_value_error_that_says_why(text: str | bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_json(text)


def test_json_as_deep_as_allowed_is_read() -> None:
    assert parse_json("[" * DEEPEST + "]" * DEEPEST)
    # Many brackets beside one another are not deep.
    assert len(parse_json("[" + ",".join(["[]"] * 1000) + "]")) == 1000


def test_a_name_that_stands_twice_is_refused_where_asked_for() -> None:
    assert parse_json('{"a": 1, "a": 2}') == {"a": 2}
    with pytest.raises(ValueError, match="'a' stands there twice"):
        parse_json('[{"a": 1, "a": 2}]', once=True)


def test_what_is_no_number_in_json_is_refused_where_asked_for() -> None:
    assert parse_json("[Infinity]") == [float("inf")]
    with pytest.raises(ValueError, match="NaN is no number in JSON"):
        parse_json("[NaN]", nan=False)


def bomb() -> str:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (bomb(), f"more than {MOST_NODES:,} values, with what aliases repeat"),
        ("a: &a [*a]", "an alias is part of itself"),
        ("a: &a\n  b: *a", "an alias is part of itself"),
        ("[" * 2000 + "]" * 2000, "nested more than 100 levels deep"),
        ("x: " + "9" * 5000, "digit"),
        ("x: 1.0e+999", "a number is infinite or too large"),
        ("- .inf", "a number is infinite or too large"),
        ("x: 2020-13-45", "month"),
    ],
)
def test_yaml_beyond_bounds_is_a_value_error_that_says_why(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_yaml(text)


@pytest.mark.parametrize("text", ["x: !!python/object/apply:os.system [true]", "x: [", "x: \x00", "x: *none"])
def test_yaml_that_is_none_is_the_parsers_error(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        parse_yaml(text)


@pytest.mark.parametrize("text", ["", "a: &a [1, 2]\nb: [*a, *a]", "rate: 1.0e-5\nwhen: on", "- {x: 1}\n- null"])
def test_yaml_reads_as_ever(text: str) -> None:
    assert parse_yaml(text) == yaml.safe_load(text)
