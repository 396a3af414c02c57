"""Verdicts for continuous integration as JUnit XML."""

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Status = Literal["passed", "failed", "error", "skipped"]

_ELEMENTS: dict[Status, str] = {"failed": "failure", "error": "error", "skipped": "skipped"}


@dataclass(frozen=True)
class Case:
    """A test case: its name, its status and a message.

    `failed` is a value that deviates, `error` one that cannot be compared, `skipped` one that is missing.
    """

    name: str
    status: Status
    message: str = ""


def to_junit(suite: str, cases: Sequence[Case]) -> str:
    """Returns a test suite as JUnit XML.

    >>> print(to_junit("a row", [Case("STS12", "failed", "72.37, expected 68.40 (+3.97)")]))
    <?xml version='1.0' encoding='utf-8'?>
    <testsuites>
      <testsuite name="a row" tests="1" failures="1" errors="0" skipped="0">
        <testcase classname="a row" name="STS12">
          <failure message="72.37, expected 68.40 (+3.97)" />
        </testcase>
      </testsuite>
    </testsuites>
    """
    count = {status: sum(case.status == status for case in cases) for status in _ELEMENTS}
    root = ET.Element("testsuites")
    numbers = {"failures": count["failed"], "errors": count["error"], "skipped": count["skipped"]}
    attributes = {"name": suite, "tests": len(cases), **numbers}
    parent = ET.SubElement(root, "testsuite", {name: _legal(str(value)) for name, value in attributes.items()})
    for case in cases:
        node = ET.SubElement(parent, "testcase", {"classname": _legal(suite), "name": _legal(case.name)})
        if case.status in _ELEMENTS:
            ET.SubElement(node, _ELEMENTS[case.status], {"message": _legal(case.message)})
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text.decode() + "\n"


def _legal(text: str) -> str:
    # XML cannot represent most control characters.
    return "".join(character if character.isprintable() or character in "\n\t" else "\ufffd" for character in text)
