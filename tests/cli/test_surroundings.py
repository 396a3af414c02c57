"""`stsbench doctor`, `data` and `cache`: what is here, and whether it is whole."""

import csv
import io
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stsbench.data import fetch
from stsbench.data.overview import bundled_root

Stsbench = Callable[..., Any]


def test_the_doctor_says_what_is_missing_and_ends_with_one(stsbench: Stsbench) -> None:
    done = stsbench("doctor")
    assert done.code == 1
    assert {line.split()[0] for line in done.out.splitlines()} >= {
        "versions",
        "torch",
        "device",
        "STS",
        "transfer",
        "embedding",
    }
    problems = [row for row in json.loads(stsbench("doctor", "--json").out) if row["status"] == "problem"]
    assert [row["subject"] for row in problems] == ["STS data, text senteval", "transfer data, text senteval"]
    assert all("stsbench data get senteval" in row["detail"] for row in problems)


@pytest.mark.shared
def test_the_doctor_finds_a_machine_with_the_data_well(
    stsbench: Stsbench, senteval: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STSBENCH_DATA", str(senteval))
    assert stsbench("doctor").code == 0


def test_the_doctor_finds_a_broken_data_folder_and_ends_with_one(
    stsbench: Stsbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STSBENCH_DATA", "nowhere")
    done = stsbench("doctor", "--json")
    assert done.code == 1
    (problem,) = [row for row in json.loads(done.out) if row["status"] == "problem"]
    assert problem["subject"] == "data"
    assert problem["detail"].startswith("STSBENCH_DATA names nowhere, which is not a folder")


def test_the_data_list_names_every_task_and_whether_it_is_here(stsbench: Stsbench, sts13: Path) -> None:
    rows = stsbench("data", "list", "--data-dir", sts13).out.splitlines()
    here = {line.split()[0]: line.split()[-1] for line in rows if " senteval " in line and " sts " in line}
    assert set(here) == {"STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R"}
    assert {task for task, found in here.items() if found == "yes"} == {"STS13"}
    full = list(csv.DictReader(io.StringIO(stsbench("data", "list", "--csv").out)))
    assert {"licence", "documentation", "source", "found"} < set(full[0])


def test_the_places_of_data_are_listed_in_order(
    stsbench: Stsbench, sts13: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STSBENCH_DATA", str(tmp_path))
    rows = json.loads(stsbench("data", "where", "--data-dir", sts13, "--json").out)
    assert list(dict.fromkeys(row["origin"] for row in rows)) == ["--data-dir", "STSBENCH_DATA", "cache"]
    assert rows[0]["files"].startswith("6 of ")


def test_data_is_listed_verified_and_located_in_every_format(stsbench: Stsbench, sts13: Path) -> None:
    for verb in ("list", "verify", "where"):
        asked = ("data", verb, "--data-dir", sts13)
        for name in ("json", "csv", "markdown", "latex"):
            assert stsbench(*asked, "--format", name).out == stsbench(*asked, f"--{name}").out != ""
        assert stsbench(*asked, "--format", "table").out == stsbench(*asked).out
    stsbench("data", "where", "--json", "--csv").demand_one_sentence("--json and --csv cannot go together")


def test_modified_data_is_found_out_and_ends_with_one(stsbench: Stsbench, sts13: Path) -> None:
    done = stsbench("data", "verify", "--data-dir", sts13)
    assert done.code == 1
    assert "6 files modified" in done.err
    modified = [line for line in done.out.splitlines() if line.endswith("modified")]
    assert len(modified) == 6
    assert all("STS13" in line for line in modified)
    rows = json.loads(stsbench("data", "verify", "--data-dir", sts13, "--json").out)
    assert {row["status"] for row in rows} == {"ok", "modified", "missing"}


def test_data_that_is_missing_fails_and_it_is_said_how_to_get_it(stsbench: Stsbench) -> None:
    done = stsbench("data", "verify")
    assert done.code == 1
    assert "132 files missing" in done.err
    assert "run `stsbench data get senteval`" in done.err
    assert "get it by hand from" in done.err
    only = stsbench("data", "verify", "sample")
    assert (only.code, only.err) == (0, "8 files ok\n")
    stsbench("data", "verify", "STS1").demand_one_sentence("there is no task or source 'STS1' to verify: did you")


@pytest.mark.shared
def test_the_real_data_verifies(stsbench: Stsbench, shared: Path) -> None:
    done = stsbench(
        "data", "verify", "--data-dir", shared / "data" / "senteval", "--data-dir", shared / "data" / "sts-raw"
    )
    assert done.code == 0
    assert "modified" not in done.out + done.err


def test_an_unknown_source_of_data_is_told_in_a_sentence(stsbench: Stsbench) -> None:
    stsbench("data", "get", "imagenet").demand_one_sentence("there is no data source 'imagenet': choose one of")


def test_getting_data_tells_what_was_fetched(
    stsbench: Stsbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stsbench.data.fetch import Fetched

    asked: list[tuple[str, Path | None]] = []

    def get(what: str = "senteval", progress: object = None, *, to: Path | None = None) -> Fetched:
        assert progress is not None
        asked.append((what, to))
        return Fetched(what, tmp_path / "x", "ab" * 32, verified=what == "senteval", fresh=what == "senteval")

    monkeypatch.setattr(fetch, "get", get)
    assert stsbench("data", "get").err == f"downloaded: {tmp_path}/x (verified)\n"
    done = stsbench("data", "get", "wiki1m")
    assert done.err.startswith(f"already there: {tmp_path}/x (not verified by the catalogue, sha256 abab")
    assert (asked, done.out) == ([("senteval", None), ("wiki1m", None)], "")
    assert stsbench("data", "get", "--quiet", "--to", "data/senteval").err == ""
    assert asked[-1] == ("senteval", Path("data/senteval"))


def test_the_cache_tells_what_it_holds_and_is_cleared_on_demand(stsbench: Stsbench, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("the 1 0\na 0 1\nof 1 1\n", encoding="utf-8")
    empty = stsbench("cache", "info")
    assert (empty.code, empty.out) == (0, "")
    assert "0 embedding files" in empty.err
    assert stsbench("run", "-m", tmp_path / "words.txt", "--tasks", "sample").code == 0
    (row,) = json.loads(stsbench("cache", "info", "--json").out)
    assert row["model"].endswith("words.txt")
    assert (row["pooling"], row["precision"], row["vectors"] > 0) == ("avg", "fp32", True)
    assert "words.txt" in stsbench("cache", "info").out
    cleared = stsbench("cache", "clear", "--yes")
    assert (cleared.code, cleared.err.startswith("freed ")) == (0, True)
    assert json.loads(stsbench("cache", "info", "--json").out) == []


def test_the_cache_tells_prompts_apart_and_shows_and_clears_what_else_it_holds(
    stsbench: Stsbench, tiny_bert: Path
) -> None:
    from stsbench.encoders.cache import compiled_dir, embeddings_dir, kept_by_board

    for prompt in ("query: ", "passage: "):
        assert stsbench("run", "-m", tiny_bert, "--prompt", prompt, "--tasks", "sample").code == 0
    rows = json.loads(stsbench("cache", "info", "--json").out)
    assert {row["prompt"] for row in rows} == {"'query: '", "'passage: '"}
    kept_by_board().parent.mkdir()
    kept_by_board().write_bytes(bytes(3_000_000))
    (compiled_dir() / "abc").mkdir(parents=True)
    (compiled_dir() / "abc" / "network.bin").write_bytes(bytes(2_000_000))
    told = stsbench("cache", "info").err
    assert "other back ends (2.0 MB) and what the board keeps of records (3.0 MB)" in told
    assert stsbench("cache", "clear", "--yes").code == 0
    assert not kept_by_board().exists()
    assert not compiled_dir().exists()
    assert [path.name for path in embeddings_dir().iterdir()] == []


def test_tokenised_corpora_are_counted_and_cleared_with_the_cache(stsbench: Stsbench) -> None:
    from stsbench.training.token_store import CorpusCounts, tokens_dir

    store = tokens_dir() / "abc"
    store.mkdir(parents=True)
    (store / "about.json").write_text(json.dumps({"counts": vars(CorpusCounts(1, 1, 0, 0, 3))}), encoding="utf-8")
    (store / "tokens.bin").write_bytes(bytes(2_000_000))
    assert "1 tokenised corpora (2.0 MB)" in stsbench("cache", "info").err
    assert stsbench("cache", "clear", "--yes").err.startswith("freed 2.0 MB")
    assert not store.exists()


def test_the_sample_comes_with_the_package() -> None:
    from stsbench.data.catalogue import source

    assert (bundled_root(source("sample")) / "pairs.tsv").is_file()


def test_paths_that_are_not_utf_8_are_read_written_and_named(
    stsbench: Stsbench, pairs_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(os.fsdecode(b"caf\xe9"))
    folder.mkdir()
    data = folder / os.fsdecode(b"p\xe9.tsv")
    data.write_bytes(pairs_file.read_bytes())
    out = folder / os.fsdecode(b"r\xe9")
    done = stsbench("run", "-m", "toys:words", "--data", data, "--out", out)
    assert (done.code, (out / "run.json").is_file()) == (0, True), done.err
    assert stsbench("show", out).code == 0
    monkeypatch.setenv("STSBENCH_CACHE", str(folder / "cache"))
    assert stsbench("data", "where", "--data-dir", folder).code == 0
    assert "Traceback" not in stsbench("doctor").err


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("run", "-m", "toys:words", "--tasks", "sample"), "stsbench: the working folder was deleted"),
        (("show", "runs/x"), "stsbench: no run record at runs/x"),
        (("data", "verify", "--data-dir", "x"), "stsbench: --data-dir names x, which is not a folder"),
    ],
)
def test_a_working_folder_that_was_deleted_ends_in_a_sentence(
    stsbench: Stsbench, tmp_path: Path, asked: tuple[str, ...], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    done = stsbench(*asked)
    (sentence,) = done.err.splitlines()
    assert (done.code, sentence[: len(told)]) == (2, told)


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        (("run", "-m", "toys:words", "--tasks", "STS-BB"), "did you mean STS-B?"),
        (("run", "-m", "toys:words", "--tasks", "sample", "--protocol", "simsce"), "did you mean simcse?"),
        (("run", "-m", "minilm", "--tasks", "sample", "--pooling", "agv"), "choose one of auto"),
        (("run", "-m", "minilm", "--tasks", "sample", "--pooling", "avg_top3"), "did you mean avg_top2?"),
        (("train", "esimsce-bert-base"), "did you mean esimcse-bert-base?"),
        (("published", "row", "esimsce-bert-base"), "did you mean esimcse"),
        (("data", "get", "sentevl"), "did you mean senteval?"),
    ],
)
def test_a_misspelt_name_is_answered_with_what_was_meant(
    stsbench: Stsbench, asked: tuple[str, ...], meant: str
) -> None:
    stsbench(*asked).demand_one_sentence(re.escape(meant))


@pytest.mark.parametrize("said", ["noon", "-1", "99999999999999999"])
def test_an_epoch_that_is_no_moment_is_told_before_a_library_stumbles_over_it(
    stsbench: Stsbench, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", said)
    done = stsbench("doctor")
    assert done.code == 2
    assert f"SOURCE_DATE_EPOCH is '{said}': give seconds since 1970, or leave it out." in done.err


def test_an_empty_epoch_asks_for_nothing(stsbench: Stsbench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "")
    assert stsbench("data", "list").code == 0
    assert "SOURCE_DATE_EPOCH" not in os.environ
