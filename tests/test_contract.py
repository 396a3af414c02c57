"""What is stable: the layout of a record, the signature, verbs, commands and exit codes.

`tests/contract.json` holds what is promised; `tests/support/contract.py` says how it is changed.
"""

import json
import sys
from pathlib import Path
from typing import Any

import contract
import numpy as np
import pytest

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.cli.app import EXIT_INTERRUPTED, EXIT_MISTAKE, EXIT_READER_LEFT, main
from stsbench.records.items import ITEMS
from stsbench.records.signature import PROTOCOL_FIELDS, Signature

RECORDS = Path(__file__).resolve().parents[1] / "examples" / "records"
PROMISED: dict[str, Any] = json.loads(contract.FILE.read_text(encoding="utf-8"))
HELP = "It is promised: see tests/support/contract.py before you change it."


@pytest.fixture(scope="module")
def now() -> dict[str, Any]:
    return contract.described()


def test_every_field_of_a_record_is_there_with_its_type(now: dict[str, Any]) -> None:
    assert now["schema_version"] == PROMISED["schema_version"], HELP
    kept = {place: now["record"].get(place) for place in PROMISED["record"]}
    assert kept == PROMISED["record"], HELP


@pytest.mark.parametrize("kind", PROMISED["items"])
def test_every_column_of_the_items_table_is_there_with_its_type(now: dict[str, Any], kind: str) -> None:
    columns = now["items"][kind]
    assert {name: columns.get(name) for name in PROMISED["items"][kind]} == PROMISED["items"][kind], HELP


@pytest.mark.parametrize("verb", PROMISED["verbs"])
def test_every_verb_takes_what_it_took_and_asks_for_no_more(now: dict[str, Any], verb: str) -> None:
    here, promised = now["verbs"][verb], PROMISED["verbs"][verb]
    assert here["required"].split() == promised["required"].split(), HELP
    assert set(promised["optional"].split()) <= set(here["optional"].split()), HELP


@pytest.mark.parametrize("command", PROMISED["commands"])
def test_every_command_is_there(now: dict[str, Any], command: str) -> None:
    assert set(PROMISED["commands"][command].split()) <= set(now["commands"][command].split()), HELP


def test_what_is_promised_is_written_down_in_full(now: dict[str, Any]) -> None:
    """A release promises what it has: what came to the code since stands in the file, too."""
    unwritten = {
        part: sorted(now[part].keys() - PROMISED[part].keys()) for part in ("record", "items", "verbs", "commands")
    }
    assert not any(unwritten.values()), f"{unwritten}: python {contract.__file__} writes it down"


@pytest.mark.parametrize(("name", "score"), [("minilm", 0.8038976087), ("minilm-dim16", 0.6984794329)])
def test_a_record_that_was_written_once_is_read_for_good(name: str, score: float) -> None:
    record = sb.load_run(RECORDS / name)
    assert record.schema_version == 6
    assert record.scores[0].value == pytest.approx(score, abs=1e-9)
    items = record.items
    assert set(PROMISED["items"][""]) | set(PROMISED["items"]["sts"]) <= set(items.columns)
    ranks = [np.asarray(items[column].rank()) for column in ("gold", "cosine")]
    assert np.corrcoef(*ranks)[0, 1] == pytest.approx(score, abs=1e-9)


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (
            "STS16:test:all|spearman|cosine|text:senteval|data:3f2a91||avg|len256|fp32|norm|stsbench:0.8.0",
            {"task": "STS16", "split": "test", "text": "senteval", "data": "3f2a91", "version": "0.8.0"},
        ),
        (
            "STS12:test:wmean|pearson|dot|text:raw|data:ab2363||cls|len512|bf16|dim64|stsbench:1.2.3",
            {"aggregation": "wmean", "metric": "pearson", "similarity": "dot", "text": "raw"},
        ),
        (
            "TREC:test:kfold10|acc|logreg|text:senteval|data:96284b||cls_before_pooler|len512|openvino-int8|"
            "stsbench:0.8.0",
            {"aggregation": "kfold10", "metric": "acc", "similarity": "logreg"},
        ),
        (
            "a%3Ab%7Cc:all:all|spearman|cosine|text:user|data:000000||own|fp32|post:whitening256+STS-B-test%2Cwhiten|"
            "stsbench:0.8.0",
            {"task": "a:b|c", "fitted": "whitening256+STS-B-test"},
        ),
        ("STS13:test:all|spearman|cosine|text:-|data:-||-|-|stsbench:0.8.0", {"text": "-", "data": "-"}),
    ],
)
def test_a_signature_keeps_its_grammar(text: str, fields: dict[str, str]) -> None:
    read = Signature.parse(text)
    assert str(read) == text
    assert {name: getattr(read, name) for name in fields} == fields


def test_two_scores_compare_by_the_same_fields_as_ever() -> None:
    assert PROTOCOL_FIELDS == ("task", "split", "aggregation", "metric", "similarity", "text", "data")


def code_of(*arguments: str | Path) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["stsbench", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
    return int(end.value.code or 0)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("show", RECORDS / "minilm"), 0),
        (("check", RECORDS / "minilm", "--baseline", RECORDS / "minilm-dim16", "--margin", "1"), 0),
        (("check", RECORDS / "minilm-dim16", "--baseline", RECORDS / "minilm", "--margin", "1"), 1),
        (("check", RECORDS / "minilm-dim16", "--baseline", RECORDS / "minilm", "--margin", "10"), 3),
        (("check", RECORDS / "minilm", "--against", "no such row"), 2),
        (("show", RECORDS / "minilm", "--no-such-option"), 2),
        (("no-such-command",), 2),
    ],
    ids=lambda value: str(value)[-40:],
)
def test_a_command_ends_with_the_code_that_was_promised(
    arguments: tuple[str | Path, ...],
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert code_of(*arguments) == code
    capsys.readouterr()


def test_the_codes_of_verdicts_and_of_ends_by_others_stay() -> None:
    assert PROMISED["verdicts"].items() <= contract.described()["verdicts"].items()
    assert (EXIT_MISTAKE, EXIT_INTERRUPTED, EXIT_READER_LEFT) == (2, 130, 141)


def test_a_record_of_another_layout_is_refused_in_one_sentence(tmp_path: Path) -> None:
    record = json.loads((RECORDS / "minilm" / "run.json").read_text(encoding="utf-8"))
    (tmp_path / "run.json").write_text(json.dumps(record | {"schema_version": 5}), encoding="utf-8")
    (tmp_path / ITEMS).write_bytes((RECORDS / "minilm" / ITEMS).read_bytes())
    with pytest.raises(UserError) as told:
        sb.load_run(tmp_path)
    assert "5" in str(told.value)
    assert "\n" not in str(told.value)
