"""Every command that prints results: exit codes, keys of the JSON, formats, and files."""

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import stsbench as sb
from stsbench.analysis import ANALYSES
from stsbench.cli.app import BEST_KNOWN
from stsbench.data.sentences import read_sentences
from stsbench.data.tables import load_pairs
from stsbench.published.catalogue import row
from stsbench.training.batches import CorpusCounts, tokens_dir

Stsbench = Callable[..., Any]
ROW = "mteb-all-minilm-l6-v2/all-minilm-l6-v2"
AGAINST = "--against all-minilm-l6-v2"
KEPT = Path(__file__).parents[2] / "reports" / "examples" / "reproductions" / "simcse-slides-dropout"
SIMILARITIES = "\n".join(str(number / 252) for number in range(252))

OPTIONS = dict.fromkeys(ANALYSES, "") | {
    "compress": "--draws 2",
    "hubness": "-k 5",
    "repetition-bias": "--queries 10 --seeds 2",
    "probes": "--kinds negation,typo",
    "retrieve": "--query bridge -k 2",
    **dict.fromkeys(("length-bias", "pair-kinds", "length-collapse", "dimensions", "stability"), "--no-intervals"),
}

TABLE = [
    ("run -m toys:words --tasks sample", 0, "scores model protocol encoding"),
    ("import given.txt --gold sample --out given", 0, "scores model protocol"),
    ("show a", 0, "scores model protocol"),
    ("compare a b", 0, "a b rows sentence notes"),
    ("rank a b --draws 100", 0, "simultaneous rows"),
    ("plan a b --difference 20 --seed-spread 5", 0, "difference"),
    ("compare --a a b --number 50", 0, "number"),
    ("check a --baseline b --margin 100", 0, "verdict cells against"),
    ("diagnose -m toys:words --tasks sample --claim 99.99", 0, "explained explanations"),
    ("fit whitening -m words.txt -s sample --dimensions 4 -o white", 0, "dimensions width sentences"),
    *((f"explain {name} a b {OPTIONS[name]}", 0, "model") for name in ANALYSES),
    ("data list", 0, "licence documentation source found"),
    ("data verify sample", 0, "status"),
    ("data verify", 1, "status"),
    ("data describe pairs.tsv -q", 0, "about what value"),
    ("doctor", 1, "subject status detail"),
    ("embed given.txt -m toys:words -o v.npy --overwrite", 0, "path model key rows dimensions"),
    ("published list", 0, "table title rows cells paper"),
    ("published show mocose-acl2022-1", 0, "row column value task metric split"),
    ("published row esimcse-bert-base", 0, "row column value task metric split"),
    ("sweep kept --status", 0, "job row seed state seconds folder dev"),
    ("reproduce --list", 0, "table shows demo laptop paper claims"),
    ("reproduce esimcse-coling2022-9 --scale demo --status", 0, "job row seed state folder"),
    ("train --list", 0, "recipe what"),
]


def words(line: str) -> list[str]:
    return line.split()


@pytest.fixture
def folder(stsbench: Stsbench, on_sample: Callable[..., None]) -> Stsbench:
    """Records of two functions on the sample, and files to read."""
    on_sample("a", "words")
    on_sample("b", "letters")
    Path("kept").symlink_to(KEPT)
    Path("given.txt").write_text(SIMILARITIES, encoding="utf-8")
    Path("pairs.tsv").write_text("An owl.\tA bus.\t1\nRain fell.\tIt rained.\t4\nTea.\tCoffee.\t2\n")
    rng = np.random.default_rng(0)
    known = {word for text in read_sentences("sample").texts for word in text.lower().split()}
    lines = [f"{word} {' '.join(f'{value:.4f}' for value in rng.normal(size=6))}\n" for word in sorted(known)]
    Path("words.txt").write_text("".join(lines), encoding="utf-8")
    scores = {cell.column: cell.score / 100 for cell in row(ROW).cells if cell.score is not None}
    scores["STSBenchmark"] = scores.pop("STS-B")
    for name, off in (("good", 0.0), ("bad", -0.01)):
        table = scores | {"STS12": scores["STS12"] + off}
        Path(f"{name}.json").write_text(json.dumps({"model": "minilm", "cosine_spearman": table}))
    return stsbench


@pytest.mark.parametrize(("line", "code", "keys"), TABLE)
def test_json_has_these_keys_and_other_formats_the_same_rows(
    folder: Stsbench, line: str, code: int, keys: str
) -> None:
    done = folder(*line.split(), "--json")
    assert done.code == code, done.err
    content = json.loads(done.out)
    assert set(keys.split()) <= set(content[0] if isinstance(content, list) else content)
    rows = list(csv.reader(io.StringIO(folder(*line.split(), "--csv").out)))
    assert len(rows) > 1
    assert {len(cells) for cells in rows} == {len(rows[0])}
    if line.startswith("explain"):
        assert (len(rows) - 1, rows[0]) == (len(content), list(content[0]))
        assert {cells["model"] for cells in content} == {"toys:words", "toys:letters"}
        assert {"toys:words", "toys:letters"} <= set(re.findall(r"toys:\w+", folder(*line.split()).out))
    if not line.startswith("data verify"):  # prints a table only for modified files
        assert re.search(r"^\| :?---", folder(*line.split(), "--markdown").out, re.MULTILINE)
        assert r"\begin{tabular}" in folder(*line.split(), "--latex").out
    if line.startswith(("show", "compare", "check")):
        assert folder(*line.split(), "--format", "json").out == done.out


@pytest.mark.parametrize("command", ANALYSES)
def test_a_model_needs_no_run_and_a_figure_is_written(command: str, folder: Stsbench) -> None:
    kind, start = {"spectrum": ("svg", b"<?xml"), "density": ("pdf", b"%PDF")}.get(command, ("png", b"\x89PNG"))
    done = folder(command, "--model", "toys:words", *OPTIONS[command].split(), "--figure", f"new/out.{kind}")
    assert done.code == 0, done.err
    assert Path(f"new/out.{kind}").read_bytes().startswith(start)
    # Without benchmark data the sample is measured, with a note.
    assert ("SAMPLE" in done.err) == (command not in {"repetition-bias", "probes", "retrieve"})
    assert (f"has `stsbench explain {command}` only" in done.err) == (command != BEST_KNOWN)


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        (f"check good.json {AGAINST} --tolerance 0.01", 0, "pass"),
        ("check good.json", 2, "no published row is known for minilm"),
        (f"check bad.json {AGAINST}", 1, "STS12 -1.00"),
        ("check good.json --against unsup-simcse-bert-base", 2, "SICK-R: split is all, expected test"),
        (f"check bad.json {AGAINST}", 1, "Next: stsbench diagnose --model MODEL --claim row:"),
        ("check good.json --baseline bad.json", 2, "was imported with its scores only"),
        ("check a --baseline a/run.json", 0, "0.3 points is the default margin"),
        ("compare a b", 0, "Next: stsbench "),
        ("rank a b", 0, "Next: stsbench report a b"),
        ("diagnose a", 2, "no published row is known for toys:words"),
        ("diagnose a --claim 99.99 --tasks sample --budget 0", 0, "None of "),
        ("train esimcse-bert-base --print --set optimiser.batch=32", 0, "batch: 32"),
        ("compare --a unsup-simcse-bert-base", 0, "76.25"),
        ("length-bias a --no-intervals --published", 0, "SimCSE-BERT-base (published)"),
        ("length-bias a --length characters --threshold 7 --bins 0,10 --no-intervals", 0, "10+"),
        ("fit flow -m words.txt -s sample --steps 2 -o flow", 0, "NLL held out"),
        ("fit whitening -m words.txt -s sample --dimensions 7 -o new", 2, "--dimensions 6"),
        ("fit whitening -m words.txt -s sample -o .", 2, "choose another folder with --out"),
        ("cite a --json", 0, '"sample": "as stsbench itself"'),
        ("cache clear --yes", 0, "freed 0.0 MB"),
        ("compare --a a --b b", 0, "A: a\nB: b\n"),
        ("compare --b=b --a=a", 0, "A: a\nB: b\n"),
        ("compare a b --subsets", 0, "everyday"),
        ("show a b --subsets", 0, "everyday"),
        ("explore a b --out pairs.html", 0, "do not publish it"),
    ],
)
def test_a_command_ends_with_its_code_and_prints(folder: Stsbench, line: str, code: int, words: str) -> None:
    done = folder(*line.split())
    assert (done.code, words in done.out + done.err) == (code, True), done


@pytest.fixture
def more(folder: Stsbench, pairs_file: Path) -> Path:
    """A record of the second function on the sample and other pairs, `more`, and the file of those."""
    sb.evaluate("toys:letters", ["sample", load_pairs(pairs_file)], out="more")
    return pairs_file


@pytest.mark.parametrize(
    "line",
    [
        "show a more --csv",
        "show a more",
        "compare a more --json",
        "compare --a a more --json",
        "compare --a a more --number 50 --json",
        "rank a more --draws 100 --json",
        "plan a more --json",
        "check more --baseline a --margin 100 --json",
    ],
)
def test_records_of_other_tasks_keep_their_scores(folder: Stsbench, more: Path, line: str) -> None:
    done = folder(*line.split())
    assert done.code == 0, done.err
    for record in map(sb.load_run, ("a", "more")):
        share = next(score.value or 0.0 for score in record.scores if score.task == "sample")
        assert (f"{100 * share:.2f}" if line == "show a more" else f"{100 * share}") in done.out
    assert (more.stem in done.out) != line.startswith("check")  # tasks that the baseline lacks do not matter


def test_records_of_other_tasks_are_explained_cited_and_explored(folder: Stsbench, more: Path) -> None:
    both = {"toys:words", "toys:letters"}
    explained = json.loads(folder("explain", "a", "more", "--data", more, "--no-intervals", "--json").out)
    models = {name: {cells["model"] for cells in rows} for name, rows in explained.items()}
    assert models == dict.fromkeys(ANALYSES, both)
    assert set(json.loads(folder("cite", "a", "more", "--json").out)) == {*both, "sample", more.stem}
    done = folder("explore", "a", "more", "--without-text")
    assert f"not all records hold {more.stem}: left out" in done.err
    assert both <= set(re.findall(r"toys:\w+", Path("pairs.html").read_text(encoding="utf-8")))


def test_show_prints_what_run_printed_and_several_records_side_by_side(folder: Stsbench) -> None:
    measured = folder("run", "-m", "toys:words", "--tasks", "sample", "--out", "c")
    shown = folder("show", "c")
    assert (shown.code, shown.out) == (0, measured.out)
    assert sb.RunRecord.model_validate_json(folder("show", "c", "--json").out) == sb.load_run("c")
    Path("c/items.parquet").unlink()
    assert folder("show", "c/run.json").out == shown.out
    both = json.loads(folder("show", "a", "b", "--json").out)
    assert [entry["model"]["name"] for entry in both] == ["toys:words", "toys:letters"]
    Path("c/run.json").write_text("{", encoding="utf-8")
    assert folder("show", "b", "c").err.startswith("stsbench: c/run.json is not valid JSON")


def test_a_comparison_has_a_sentence_a_figure_and_its_own_intervals(
    folder: Stsbench, on_sample: Callable[..., None]
) -> None:
    done = folder("compare", "a", "b", "--figure", "one.svg", "--figure-size", "page")
    assert done.out.startswith("A: toys:words\nB: toys:letters\n\ntask ")
    assert done.out.splitlines()[-1] == sb.compare("a", "b").sentence
    assert 'width="360pt"' in Path("one.svg").read_text(encoding="utf-8")
    folder("compare", "a", "b", "--figure", "two.svg", "--figure-size", "page")
    assert Path("one.svg").read_bytes() == Path("two.svg").read_bytes()
    on_sample("d", "words", "--interval", "independent")
    on_sample("e", "letters", "--interval", "independent")
    by = {
        how: json.loads(folder("compare", *how.split(), "--json").out)["rows"][0]
        for how in ("a b", "d e", "a b --interval independent", "a d")
    }
    assert [line["interval"] for line in by.values()] == ["dyadic", "dyadic", "independent", "dyadic"]
    assert by["d e"] == by["a b"] != by["a b --interval independent"]
    for seed in (1, 2):
        on_sample(f"seeds/w{seed}", "words")
        on_sample(f"seeds/l{seed}", "letters")
    together = folder(*words("compare --a seeds/w1 seeds/w2 --b seeds/l1 seeds/l2 -q"))
    assert together.out.startswith("A: seeds/w\nB: seeds/l\n")
    assert folder(*words("compare --a=seeds/w1 seeds/w2 --b seeds/l1 --b=seeds/l2 -q")).out == together.out
    one_side = folder(*words("compare --a seeds/w1 seeds/w2 seeds/l1 seeds/l2 --json"))
    (first, *_) = json.loads(one_side.out)["rows"]
    assert (first["a_runs"], first["p"]) == (4, None)


def test_rank_leaves_experiments_out_and_its_options_matter(folder: Stsbench) -> None:
    Path("tried").mkdir()
    Path("tried/experiment.yaml").write_text("name: tried\n")
    done = folder("rank", "a", "b", "tried", "--draws", "100", "--figure", "ranks.svg")
    assert {"rank", "model", "sample", "groups"} <= set(done.out.splitlines()[0].split())
    assert sb.rank(["a", "b"], draws=100).sentence in done.out
    assert Path("ranks.svg").stat().st_size > 1000
    assert "note: left out: tried is an experiment" in done.err
    both = [json.loads(folder("rank", "a", "b", "--json", *more).out) for more in ((), ("--simultaneous",))]
    assert [result["simultaneous"] for result in both] == [False, True]


def test_explain_prints_a_line_for_each_analysis_and_reports_failures_last(folder: Stsbench) -> None:
    done = folder("explain", "a", "b", "--no-intervals")
    head, columns, _, *lines = done.out.splitlines()
    assert (done.code, head.count("sample")) == (0, 2)
    assert columns.split() == ["analysis", "question", "toys:words", "toys:letters", "references"]
    assert [line.split()[0] for line in lines] == list(ANALYSES)
    assert done.err.splitlines()[-1] == "Next: stsbench explain NAME a b"
    assert list(json.loads(folder("explain", "a", "--no-intervals", "--json").out)) == list(ANALYSES)
    folder("import", "given.txt", "--gold", "sample", "--out", "given")
    done = folder("explain", "given", "--no-intervals")
    assert (done.code, re.search(r"(?m)^geometry .*\? +– +–$", done.out) is not None) == (2, True)
    assert ["geometry, spectrum" in line for line in done.err.splitlines()[-2:]] == [True, False]


def test_the_next_command_is_possible_with_the_run(folder: Stsbench) -> None:
    done = folder("run", "-m", "toys:words", "--tasks", "sample-questions", "--out", "questions")
    folder("import", "good.json", "--out", "theirs", "--model", "m")
    shown = {name: folder("show", name).err for name in ("a", "questions", "theirs")}
    for name, err in (shown | {"questions": done.err + shown["questions"]}).items():
        commands = set(re.findall(rf"Next: stsbench (\w+) {name}\n", err))
        assert commands == {"explain" if name == "a" else "report"}, name


def test_the_sample_does_not_replace_data_unnoticed(folder: Stsbench) -> None:
    assert folder("run", "-m", "toys:words", "--data", "pairs.tsv", "--out", "own").code == 0
    for line, has_note in (("geometry own", 1), ("geometry own --task sample", 0), ("density own", 0), ("own", 1)):
        assert folder("explain", *line.split()).err.count("this is the SAMPLE") == has_note, line


def test_a_diagnosis_names_the_setting(folder: Stsbench, toys: Any) -> None:
    record = sb.evaluate(toys.words, "sample", protocol=sb.protocol(metric="pearson"))
    claim = f"{100 * (record.scores[0].value or 0):.2f}"
    diagnose = ("diagnose", "-m", "toys:words", "--tasks", "sample", "--claim", claim)
    done = folder(*diagnose)
    assert f"The claimed {claim} on sample comes from metric pearson" in done.out
    assert "--tasks sample --metric pearson" in done.out
    found = json.loads(folder(*diagnose, "--json").out)
    assert (found["explained"], found["explanations"][0]["changes"]) == (True, {"metric": "pearson"})
    rows = list(csv.DictReader(io.StringIO(folder(*diagnose, "--csv").out)))
    assert [line["setting"] for line in rows] == ["claimed", "your setting", "metric pearson"]


def test_the_command_that_diagnose_prints_gives_the_number(
    stsbench: Stsbench, tiny_bert: Path, benchmark_folder: Path
) -> None:
    where = ("-m", str(tiny_bert), "--device", "cpu", "--data-dir", str(benchmark_folder))

    def score(*options: str) -> float:
        rows = list(csv.DictReader(io.StringIO(stsbench("run", *where, *options, "--csv").out)))
        return float(rows[0]["score"])

    value = score("--tasks", "SICK-R:all", "--metric", "pearson", "--pooling", "cls")
    claim = ("--claim", f"SICK-R={value:.6f}%", "--tolerance", "0.0001")
    found = json.loads(stsbench("diagnose", *where, *claim, "--json").out)
    options = found["sentence"].partition("add `")[2].removesuffix("` to `stsbench run`.").split()
    assert score(*options) == pytest.approx(value, abs=1e-4)


def test_a_report_a_card_and_a_board_are_written(folder: Stsbench, tmp_path: Path) -> None:
    done = folder("report", "a", "--out", "deep/report", "--no-analyses", "--title", "Mine")
    assert (done.code, done.out) == (0, "")
    assert "<title>Mine</title>" in Path("deep/report/index.html").read_text(encoding="utf-8")
    assert Path("deep/report/README.md").read_text(encoding="utf-8").startswith("# Mine\n")
    card = folder("report", "a", "--model-card")
    head = yaml.safe_load(card.out.split("---")[1])
    assert head["model-index"][0]["results"][0]["dataset"]["name"] == "sample"
    assert folder("report", "a", "--model-card", "--out", tmp_path / "card.md").code == 0
    assert (tmp_path / "card.md").read_text(encoding="utf-8") == card.out
    Path("broken").mkdir()
    Path("broken/run.json").write_text("{")
    done = folder("board", ".", "--out", "all.html")
    assert (done.code, done.err.splitlines()[-1]) == (0, "written to all.html: open it in a browser.")
    assert "note: left out: broken/run.json is not valid JSON" in done.err


def test_vectors_of_a_file_are_written_and_searched(stsbench: Stsbench, tiny_bert: Path) -> None:
    Path("lines.txt").write_text(
        "A cat slept.\n\nThe ferry left late.\nA dog barked at the cat.", encoding="utf-8"
    )
    done = stsbench("embed", "lines.txt", "-m", tiny_bert, "--out", "v.npy", "--json")
    assert json.loads(done.out)[0]["rows"] == 3
    query = ("--corpus", "v.npy", "--query", "A cat slept.", "-k", "1", "--json")
    (best,) = json.loads(stsbench("explain", "retrieve", "-m", tiny_bert, *query).out)
    assert best["sentence"] == "A cat slept."
    refused = stsbench("embed", "lines.txt", "-m", tiny_bert, "--out", "v.npy", "--max-length", "9")
    refused.demand_one_sentence("v.npy has vectors of another model, use or file")


def test_data_is_found_verified_and_missed(
    stsbench: Stsbench, sts13: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = json.loads(stsbench("data", "list", "--data-dir", sts13, "--json").out)
    assert {line["task"] for line in rows if line["text"] == "senteval" and line["found"]} == {"STS13"}
    done = stsbench("data", "verify", "--data-dir", sts13, "--json")
    assert (done.code, "6 files modified" in done.err) == (1, True)
    assert {line["status"] for line in json.loads(done.out)} == {"ok", "modified", "missing"}
    assert "run `stsbench data get senteval`" in stsbench("data", "verify").err
    for place, words in (("", "stsbench data get senteval"), ("nowhere", "STSBENCH_DATA names nowhere")):
        monkeypatch.setenv("STSBENCH_DATA", place)
        problems = [line for line in json.loads(stsbench("doctor", "--json").out) if line["status"] == "problem"]
        assert problems
        assert all(words in problem["detail"] for problem in problems)


@pytest.mark.shared
def test_a_machine_with_the_data_has_no_problem(
    stsbench: Stsbench, senteval: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = ("--data-dir", shared / "data" / "senteval", "--data-dir", shared / "data" / "sts-raw")
    done = stsbench("data", "verify", *folders)
    assert (done.code, "modified" in done.out + done.err) == (0, False)
    monkeypatch.setenv("STSBENCH_DATA", str(senteval))
    assert stsbench("doctor").code == 0


def test_the_cache_is_listed_by_prompt_and_cleared(stsbench: Stsbench, tiny_bert: Path) -> None:
    for prompt in ("query: ", "passage: "):
        assert stsbench("run", "-m", tiny_bert, "--prompt", prompt, "--tasks", "sample").code == 0
    store = tokens_dir() / "abc"
    store.mkdir(parents=True)
    (store / "about.json").write_text(json.dumps({"counts": vars(CorpusCounts(1, 1, 0, 0, 3))}), encoding="utf-8")
    (store / "tokens.bin").write_bytes(bytes(2_000_000))
    listed = stsbench("cache", "info", "--json")
    assert {line["prompt"] for line in json.loads(listed.out)} == {"'query: '", "'passage: '"}
    assert "tokenised corpora (2.0 MB)" in listed.err
    assert stsbench("cache", "clear", "--yes").err.startswith("freed ")
    assert json.loads(stsbench("cache", "info", "--json").out) == []
    assert stsbench("cache", "info", "--csv").out.startswith("model,pooling,prompt,")
    assert not store.exists()
