"""The mistakes of users of analyses: each is one sentence that names the field."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stsbench as sb
from stsbench.analysis import ANALYSES, analysis
from stsbench.data.benchmarks import load_sample
from stsbench.data.corpus import load_corpus

FIRST_PAIR = tuple(load_sample().pairs.iloc[0][["sentence1", "sentence2"]])


def same(texts: list[str]) -> Any:
    return np.ones((len(texts), 3))


def zero(texts: list[str]) -> Any:
    return np.zeros((len(texts), 3))


def narrow(texts: list[str]) -> Any:
    return [[len(text)] for text in texts]


def plain(texts: list[str]) -> Any:
    return [[len(text), text.count("e") - 2.0, 1.0] for text in texts]


def one_pair(texts: list[str]) -> Any:
    return [[len(text), 1.0] if text in FIRST_PAIR else [0.0, 0.0] for text in texts]


FILES = {"empty.txt": "\n\n"}

MISTAKES: list[tuple[str, Callable[..., Any], dict[str, Any], str]] = [
    ("dimensions", same, {}, "gives all 504 sentences of sample the same direction"),
    ("dimensions", zero, {}, "every sentence of sample a zero vector"),
    ("dimensions", narrow, {}, "gives all 504 sentences of sample the same direction"),
    ("hubness", same, {}, "gives all 504 sentences of sample the same direction"),
    ("hubness", plain, {"k": 503}, "503 neighbours: sample has 504"),
    ("length-collapse", zero, {}, "every sentence of sample a zero vector"),
    ("length-collapse", one_pair, {}, "sample has no two unrelated sentences of similar length"),
    ("length-collapse", plain, {"length": "subwords"}, "in subwords are unknown"),
    ("length-bias", plain, {"length": "letters"}, "--length 'letters': choose one of words, subwords, characters"),
    ("length-bias", plain, {"length": "subwords"}, "in subwords are unknown, .* --length words"),
    ("length-bias", plain, {"threshold": -1}, "--threshold -1: expected 0 to 1,000,000"),
    ("length-bias", plain, {"bins": (1, 2)}, "--bins 1,2: give rising numbers from 0"),
    ("length-bias", plain, {"bins": (0, 4, 2)}, "--bins 0,4,2: give rising numbers from 0"),
    ("length-bias", plain, {"published": True, "threshold": 2}, "leave out --published"),
    ("threshold", plain, {"positive": 9}, "no pairs of sample have a gold score of 9 and above: set --positive"),
    ("threshold", plain, {"carry": 0.5}, "give --carry and --from together"),
    (
        "threshold",
        plain,
        {"min_recall": 0.5, "min_precision": 0.5},
        "give one of --max-false-match, --min-precision",
    ),
    ("threshold", plain, {"max_false_match": 2.0}, "--max-false-match 2.0: expected 0 to 1"),
    ("threshold", plain, {"tasks": ["sample-questions"]}, "sample-questions does not have pairs with two labels"),
    ("compress", plain, {"sizes": [9]}, r"--sizes 9: the vectors of .* have 3 dimensions; give 1 to 3\."),
    ("compress", plain, {"sizes": [0]}, "--sizes 0: the vectors of .* have 3 dimensions"),
    ("compress", plain, {"margin": 0.0}, "a margin of 0 points: give a positive number"),
    ("compress", plain, {"corpus": "none.txt"}, r"none\.txt"),
    ("compress", plain, {"corpus": "few.txt", "sizes": [2]}, "^2 principal components need 3 .* has 2: "),
    ("compress", plain, {"corpus": "own.txt", "sizes": [2]}, "outside the tasks, but the corpus has 0: name"),
    ("compress", same, {}, r"has no score on sample \(its similarities are constant\)"),
    ("evalrank", plain, {"share": 1.5}, "--share 1.5: expected 0 to 1"),
    ("evalrank", plain, {"share": 0.001}, r"--share 0\.001 selects none of the 252 pairs"),
    ("density", plain, {"buckets": 0}, "--buckets 0: expected 1 to 1,000"),
    ("spectrum", zero, {}, "gives every sentence a zero vector"),
    ("stability", same, {}, "gives all 252 pairs the same similarity"),
    ("probes", same, {}, r"every sentence of the triples \(bundled\) the same vector"),
    ("probes", zero, {}, r"every sentence of the triples \(bundled\) the same vector"),
    ("repetition-bias", plain, {"queries": 0}, "--queries 0: expected 1 to 1,000,000"),
    ("repetition-bias", plain, {"queries": 9000}, r"of the 400 sentences of the corpus have a candidate"),
    ("retrieve", plain, {"query": " "}, "--query is empty: give a sentence"),
    ("retrieve", plain, {"query": "a", "k": 900}, "900 neighbours: .* nonzero vectors of 400 sentences only"),
    ("retrieve", zero, {"query": "a"}, "gives a query a zero vector"),
    ("retrieve", plain, {"query": "a", "corpus": "empty.txt"}, r"empty.txt has no sentences: give one per line"),
    ("geometry", plain, {"positive": 2e6}, "--positive 2000000.0: expected -1,000,000 to 1,000,000"),
    ("pair-kinds", plain, {"data": ["none.tsv"], "tasks": ["none"]}, "none"),
    ("ties", plain, {"tasks": ["STS99"]}, "STS99"),
]


@pytest.mark.parametrize(
    ("name", "encode", "options", "message"),
    MISTAKES,
    ids=[f"{number}-{row[0]}" for number, row in enumerate(MISTAKES)],
)
def test_a_mistake_is_one_sentence(
    name: str, encode: Any, options: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for file, text in (
        FILES | {"few.txt": "\n".join(load_corpus("sample")[:2]), "own.txt": FIRST_PAIR[0]}
    ).items():
        Path(file).write_text(text, encoding="utf-8")
    parameters = analysis(name).parameters
    data = {"tasks": ["sample"]} if "tasks" in parameters else {"task": "sample"} if "task" in parameters else {}
    options = data | options
    with pytest.raises(sb.UserError, match=message) as error:
        analysis(name).verb(encode, **options)
    assert len(error.value.args) == 1
    assert {row[0] for row in MISTAKES} == set(ANALYSES)
