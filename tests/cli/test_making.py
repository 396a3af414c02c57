"""`train`, `fit`, `embed`, `data`, `doctor` and `cache`: what they print and write."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stsbench.data import fetch
from stsbench.data.sentences import read_sentences

Stsbench = Callable[..., Any]


def test_recipes_are_listed_and_printed(stsbench: Stsbench) -> None:
    listed = stsbench("train", "--list")
    assert (listed.code, "esimcse-roberta-large-released" in listed.out) == (0, True)
    printed = stsbench("train", "esimcse-bert-base", "--print", "--set", "optimiser.batch=32")
    assert "batch: 32" in printed.out
    assert "rate: 0.32" in printed.out


def test_a_fit_is_printed_and_measured(stsbench: Stsbench) -> None:
    rng = np.random.default_rng(0)
    known = {word for text in read_sentences("sample").texts for word in text.lower().split()}
    lines = [f"{word} {' '.join(f'{value:.4f}' for value in rng.normal(size=6))}\n" for word in sorted(known)]
    Path("words.txt").write_text("".join(lines), encoding="utf-8")
    fit = ("fit", "whitening", "-m", "words.txt", "-s", "sample")
    made = stsbench(*fit, "--dimensions", "4", "-o", "white", "--json")
    assert made.code == 0, made.err
    about = json.loads(made.out)
    assert (about["dimensions"], about["width"], about["sentences"]["count"]) == (4, 6, 504)
    assert "measure it: stsbench run --model white" in made.err
    measured = stsbench("run", "-m", "white", "--tasks", "sample", "--no-intervals", "--json", "-q")
    assert "|post:whitening4+sample|" in json.loads(measured.out)["scores"][0]["signature"]
    shown = stsbench("fit", "flow", "-m", "words.txt", "-s", "sample", "--steps", "2", "-o", "flow")
    assert (shown.code, "NLL held out" in shown.out) == (0, True), shown.err
    assert Path("flow/log.jsonl").read_text(encoding="utf-8").count("\n") == 3
    for options, sentence in (
        (("--dimensions", "7", "-o", "new"), r"--dimensions 6"),
        (("-o", "words.txt"), "words.txt: it is a file"),
        (("-o", "."), "choose another folder with --out"),
    ):
        refused = stsbench(*fit, *options)
        assert (refused.code, sentence in refused.err) == (2, True), refused.err


def test_vectors_of_a_file_are_written_and_searched(stsbench: Stsbench, tiny_bert: Path) -> None:
    lines = ["A cat slept.", "", "The ferry left late.", "A dog barked at the cat."]
    Path("lines.txt").write_text("\n".join(lines), encoding="utf-8")
    done = stsbench("embed", "lines.txt", "-m", tiny_bert, "--out", "v.npy", "--json")
    assert json.loads(done.out)[0]["rows"] == 3
    query = ("--corpus", "v.npy", "--query", "A cat slept.", "-k", "1", "--json")
    assert (
        json.loads(stsbench("explain", "retrieve", "-m", tiny_bert, *query).out)[0]["sentence"] == "A cat slept."
    )
    refused = stsbench("embed", "lines.txt", "-m", tiny_bert, "--out", "v.npy", "--max-length", "9")
    refused.demand_one_sentence("v.npy has vectors of another use")


def test_the_doctor_names_what_is_missing_and_ends_with_1(
    stsbench: Stsbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = stsbench("doctor", "--json")
    assert done.code == 1
    problems = [row for row in json.loads(done.out) if row["status"] == "problem"]
    assert [row["subject"] for row in problems] == ["STS data, text senteval", "transfer data, text senteval"]
    assert all("stsbench data get senteval" in row["detail"] for row in problems)
    monkeypatch.setenv("STSBENCH_DATA", "nowhere")
    (problem,) = [row for row in json.loads(stsbench("doctor", "--json").out) if row["status"] == "problem"]
    assert "STSBENCH_DATA names nowhere" in problem["detail"]


@pytest.mark.shared
def test_a_machine_with_the_data_is_well_and_its_data_verifies(
    stsbench: Stsbench, senteval: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = ("--data-dir", shared / "data" / "senteval", "--data-dir", shared / "data" / "sts-raw")
    done = stsbench("data", "verify", *folders)
    assert (done.code, "modified" in done.out + done.err) == (0, False)
    monkeypatch.setenv("STSBENCH_DATA", str(senteval))
    assert stsbench("doctor").code == 0


def test_data_is_listed_and_located(stsbench: Stsbench, sts13: Path) -> None:
    lines = stsbench("data", "list", "--data-dir", sts13).out.splitlines()
    here = {line.split()[0]: line.split()[-1] for line in lines if " senteval " in line and " sts " in line}
    assert {task for task, found in here.items() if found == "yes"} == {"STS13"}
    full = list(csv.DictReader(io.StringIO(stsbench("data", "list", "--csv").out)))
    assert {"licence", "documentation", "source", "found"} < set(full[0])


def test_modified_or_missing_data_ends_with_1(stsbench: Stsbench, sts13: Path) -> None:
    done = stsbench("data", "verify", "--data-dir", sts13, "--json")
    assert (done.code, "6 files modified" in done.err) == (1, True)
    assert {row["status"] for row in json.loads(done.out)} == {"ok", "modified", "missing"}
    missing = stsbench("data", "verify")
    assert (missing.code, "run `stsbench data get senteval`" in missing.err) == (1, True)
    assert stsbench("data", "verify", "sample")[::2] == (0, "8 files ok\n")


def test_getting_data_prints_what_was_fetched(
    stsbench: Stsbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[tuple[str, Path | None]] = []

    def get(what: str = "senteval", progress: object = None, *, to: Path | None = None) -> fetch.Fetched:
        assert progress is not None
        requests.append((what, to))
        known = what == "senteval"
        return fetch.Fetched(tmp_path / "x", verified=known, fresh=known)

    monkeypatch.setattr(fetch, "get", get)
    assert stsbench("data", "get").err == f"downloaded: {tmp_path}/x (verified)\n"
    assert stsbench("data", "get", "wiki1m").err.startswith(
        f"already there: {tmp_path}/x (its hash is not in the catalogue"
    )
    assert stsbench("data", "get", "--quiet", "--to", "data").err == ""
    assert requests == [("senteval", None), ("wiki1m", None), ("senteval", Path("data"))]


def test_the_cache_is_listed_by_prompt_and_cleared(stsbench: Stsbench, tiny_bert: Path) -> None:
    from stsbench.training.token_store import CorpusCounts, tokens_dir

    assert "0 embedding files" in stsbench("cache", "info").err
    for prompt in ("query: ", "passage: "):
        assert stsbench("run", "-m", tiny_bert, "--prompt", prompt, "--tasks", "sample").code == 0
    store = tokens_dir() / "abc"
    store.mkdir(parents=True)
    (store / "about.json").write_text(json.dumps({"counts": vars(CorpusCounts(1, 1, 0, 0, 3))}), encoding="utf-8")
    (store / "tokens.bin").write_bytes(bytes(2_000_000))
    rows = json.loads(stsbench("cache", "info", "--json").out)
    assert {row["prompt"] for row in rows} == {"'query: '", "'passage: '"}
    assert all(row["vectors"] > 0 for row in rows)
    assert "1 tokenised corpora (2.0 MB)" in stsbench("cache", "info").err
    cleared = stsbench("cache", "clear", "--yes")
    assert (cleared.code, cleared.err.startswith("freed ")) == (0, True)
    assert json.loads(stsbench("cache", "info", "--json").out) == []
    assert not store.exists()
