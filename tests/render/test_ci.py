"""Verdicts for continuous integration: valid XML and one-line commands, whatever a model is called."""

import xml.etree.ElementTree as ET

import pytest

from stsbench.render.ci import Case, annotation, to_junit

CASES = [
    Case("STS12", "passed"),
    Case("STS13", "failed", "1 & 2 < 3"),
    Case("SICK-R", "error", "split"),
    Case("Avg.", "skipped", "not measured"),
]


def test_junit_counts_its_cases_and_tells_why() -> None:
    (suite,) = ET.fromstring(to_junit("a row", CASES))
    assert suite.attrib == {"name": "a row", "tests": "4", "failures": "1", "errors": "1", "skipped": "1"}
    found = {case.attrib["name"]: [(node.tag, node.attrib["message"]) for node in case] for case in suite}
    assert found == {
        "STS12": [],
        "STS13": [("failure", "1 & 2 < 3")],
        "SICK-R": [("error", "split")],
        "Avg.": [("skipped", "not measured")],
    }


@pytest.mark.parametrize("name", ["a\x00b", "<&>\"'", "\ud800", "\x1b[31mred", "模型"])
def test_junit_is_valid_xml_whatever_the_names(name: str) -> None:
    (suite,) = ET.fromstring(to_junit(name, [Case(name, "failed", name)]).encode())
    assert len(suite) == 1


def test_an_annotation_stays_on_its_line_and_within_its_field() -> None:
    line = annotation("error", "a: b, c", "100 %\nnext, and: on")
    assert line == "::error title=a%3A b%2C c::100 %25%0Anext, and: on"
