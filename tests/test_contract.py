"""What is stable: the layout of a record, the signature, verbs, commands and exit codes.

`tests/contract.json` holds what is promised; `tests/support/contract.py` says how it is changed.
"""

import inspect
import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import contract
import numpy as np
import pytest

import stsbench as sb
from stsbench.cli.app import EXIT_INTERRUPTED, EXIT_MISTAKE, EXIT_READER_LEFT, main
from stsbench.records.signature import PROTOCOL_FIELDS, Signature
from stsbench.testing import assert_matches_published, assert_no_worse

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


def test_what_is_promised_is_there_and_what_is_there_is_promised(now: dict[str, Any]) -> None:
    for part in ("record", "items", "verbs", "commands"):
        assert now[part].keys() == PROMISED[part].keys(), f"{HELP} python {contract.__file__} writes it down"
    for kind, columns in PROMISED["items"].items():
        assert columns.items() <= now["items"][kind].items(), HELP
    for verb, promised in PROMISED["verbs"].items():
        here = now["verbs"][verb]
        assert here["required"].split() == promised["required"].split(), HELP
        assert set(promised["optional"].split()) <= set(here["optional"].split()), HELP
        kinds = {parameter.kind for parameter in inspect.signature(getattr(sb, verb)).parameters.values()}
        assert inspect.Parameter.VAR_KEYWORD not in kinds
    for command, inner in PROMISED["commands"].items():
        assert set(inner.split()) <= set(now["commands"][command].split()), HELP
    assert PROMISED["verdicts"].items() <= now["verdicts"].items()
    assert (EXIT_MISTAKE, EXIT_INTERRUPTED, EXIT_READER_LEFT) == (2, 130, 141)
    assert PROTOCOL_FIELDS == ("task", "split", "aggregation", "metric", "similarity", "text", "data")


def test_every_public_name_has_a_home_and_importing_the_package_loads_nothing_heavy() -> None:
    assert set(sb._HOMES) < set(sb.__all__)
    assert all(getattr(sb, name) is not None and name in dir(sb) for name in sb.__all__)
    with pytest.raises(AttributeError, match="module 'stsbench' has no attribute 'evaluat'"):
        _ = sb.evaluat
    assert version("stsbench") == sb.__version__
    code = "import sys, stsbench; print({'numpy', 'torch', 'pandas', 'scipy', 'pydantic'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


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


def test_the_default_tasks_are_the_seven_where_they_are_and_else_the_sample(
    benchmark_folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert sb.default_tasks() == "sample"
    assert sb.default_tasks([benchmark_folder]) == "sts"
    (tmp_path / "empty").mkdir()
    with pytest.raises(sb.UserError, match="was not found"):
        sb.default_tasks([tmp_path / "empty"])
    monkeypatch.setenv("STSBENCH_DATA", str(benchmark_folder))
    assert sb.default_tasks() == "sts"


ROW = "mteb-all-minilm-l6-v2/all-minilm-l6-v2"


def test_a_run_is_asserted_to_match_a_published_row(tmp_path: Path) -> None:
    def write(value: float) -> Path:
        path = tmp_path / "x.json"
        path.write_text(json.dumps({"model": "mine", "cosine_spearman": {"STS16": value}}), encoding="utf-8")
        return path

    assert assert_matches_published(write(0.7899), ROW, tolerance=0.01).verdict == "pass"
    with pytest.raises(AssertionError, match=r"fail: mine: 0 of 1 scores (.|\n)*STS16 +78\.99 +70\.00"):
        assert_matches_published(write(0.70), against=ROW)
    with pytest.raises(AssertionError, match="is not comparable with"):
        assert_matches_published(write(0.70), against="gaussian-dropout")
    with pytest.raises(sb.UserError, match="no published row is known for mine"):
        assert_matches_published(write(0.70))
    runs = RECORDS / "minilm-dim16", RECORDS / "minilm"
    assert assert_no_worse(*runs, margin=40).verdict == "within margin"
    with pytest.raises(AssertionError, match=r"worse: minilm(.|\n)*sample +80\.39 +69\.85"):
        assert_no_worse(*runs)


@pytest.mark.shared
def test_the_golden_results_of_mteb_match_their_row_and_senteval_s_do_not_on_sick_r(shared: Path) -> None:
    golden = shared / "golden"
    assert_matches_published(golden / "all-MiniLM-L6-v2.mteb.json", tolerance=0.0001)
    found = sb.check(golden / "all-MiniLM-L6-v2.mean.senteval.json", "minilm", tolerance=0.01)
    assert (len(found.of("pass")), [cell.name for cell in found.of("not comparable")]) == (5, ["SICK-R"])
    assert "split is test, expected all" in found.sentence
