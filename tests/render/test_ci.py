"""Verdicts for continuous integration: valid XML, whatever a model is called."""

import xml.etree.ElementTree as ET

import pytest

from stsbench.render.ci import Case, to_junit

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
