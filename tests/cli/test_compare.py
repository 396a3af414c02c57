"""`stsbench compare` as a person types it."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from changed_records import with_columns

import stsbench as sb
from stsbench.data.benchmarks import load_sample

Stsbench = Callable[..., Any]


@pytest.fixture
def runs(stsbench: Stsbench, on_sample: Callable[..., None]) -> Stsbench:
    """Measure two functions on the sample."""
    on_sample("a", "words")
    on_sample("b", "letters")
    return stsbench


def test_two_runs_make_a_table_and_a_sentence(runs: Stsbench) -> None:
    done = runs("compare", "a", "b")
    assert done.code == 0
    assert done.out.startswith("A: toys:words\nB: toys:letters\n\ntask ")
    assert re.search(r"^sample +\d\d\.\d\d +\d\d\.\d\d ", done.out, re.MULTILINE)
    assert done.out.splitlines()[-1] == sb.compare("a", "b").sentence
    assert re.search(r"^sample +everyday ", runs("compare", "a", "b", "--subsets").out, re.MULTILINE)


def test_a_comparison_gives_the_same_bytes_again(runs: Stsbench) -> None:
    assert runs("compare", "a", "b", "--json").out == runs("compare", "a", "b", "--json").out


def test_its_intervals_rest_on_the_draws_of_the_records(runs: Stsbench) -> None:
    record = sb.load_run("a")
    (whole, *_) = sb.compare(with_columns(record, cosine=np.zeros(252)), record).rows
    assert str(whole.difference) == "nan"
    (whole, *_) = sb.compare("a", "b", intervals=sb.Intervals(level=0.5)).rows
    (wider, *_) = sb.compare("a", "b", intervals=sb.Intervals(level=0.9)).rows
    assert wider.low < whole.low < whole.difference < whole.high < wider.high


def test_the_method_of_intervals_is_a_choice(stsbench: Stsbench) -> None:
    pairs = load_sample().pairs
    # Four pairs of one sentence, and of scores that are alike, depend on each other.
    rows = [
        f"{pairs['sentence1'][n // 4]}\t{pairs['sentence2'][n]}\t{pairs['gold'][n // 4] + n / 100:.2f}\n"
        for n in range(24)
    ]
    Path("pairs.tsv").write_text("".join(rows), encoding="utf-8")

    def measured(folder: str, toy: str, *options: str) -> None:
        done = stsbench("run", "-m", f"toys:{toy}", "--data", "pairs.tsv", "--out", folder, *options)
        assert done.code == 0, done.err

    measured("a", "words")
    measured("b", "letters")
    told = {
        name: json.loads(stsbench("compare", "a", "b", "--json", "--interval", name).out)
        for name in ("dyadic", "independent")
    }
    assert {name: {row["interval"] for row in found["rows"]} for name, found in told.items()} == {
        name: {name} for name in told
    }
    assert told["dyadic"]["rows"][0]["difference"] == told["independent"]["rows"][0]["difference"]
    assert "--interval dyadic" in " ".join(told["independent"]["notes"])
    assert {"se_dyadic", "se_components", "se_independent", "df"} <= set(told["dyadic"]["rows"][0]["details"])
    measured("c", "words", "--interval", "independent")
    measured("d", "letters", "--interval", "independent")
    of_records = json.loads(stsbench("compare", "c", "d", "--json").out)
    assert of_records["rows"] == told["independent"]["rows"]
    assert "those of this comparison dyadic" in stsbench("compare", "a", "d").err
    wrong = stsbench("compare", "a", "b", "--interval", "dyadik")
    assert wrong.code == 2
    assert "--interval" in wrong.err
    assert "dyadic" in wrong.err
    assert stsbench("compare", "a", "b", "--interval", "bootstrap").code == 2


def test_programs_get_everything(runs: Stsbench) -> None:
    told = json.loads(runs("compare", "a", "b", "--json").out)
    assert told["sentence"] == sb.compare("a", "b").sentence
    assert (told["a"], told["b"]) == ("toys:words", "toys:letters")
    assert {"p", "p_holm", "test_p_holm", "effect_low", "details"} < set(told["rows"][0])
    header, first, *_ = runs("compare", "a", "b", "--csv").out.splitlines()
    assert header.startswith("kind,task,subset,size,a,b,difference,low,high,p,")
    assert header.endswith("williams_t,steiger_z,steiger_p")
    assert first.startswith("sts,sample,,252,")


@pytest.mark.parametrize(("style", "start"), [("--markdown", "| task | A | B |"), ("--latex", r"\begin{tabular}")])
def test_papers_get_the_table_and_the_rest_beside_it(runs: Stsbench, style: str, start: str) -> None:
    done = runs("compare", "a", "b", style)
    assert done.out.startswith(start)
    assert done.err.startswith("A: toys:words\nB: toys:letters\n")
    assert runs("compare", "a", "b", style, "--quiet").err == ""
    assert runs("compare", "a", "b", "--format", style.removeprefix("--")).out == done.out
    mixed = runs("compare", "a", "b", style, "--csv")
    assert (mixed.code, mixed.out) == (2, "")


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_the_figure_is_drawn_the_same_each_time(runs: Stsbench, kind: str) -> None:
    done = runs("compare", "a", "b", "--figure", f"one.{kind}")
    assert f"drawn in one.{kind}" in done.err
    runs("compare", "a", "b", "--figure", f"two.{kind}")
    assert Path(f"one.{kind}").read_bytes() == Path(f"two.{kind}").read_bytes()


def test_a_figure_is_as_wide_as_asked(runs: Stsbench) -> None:
    for size, width in (("column", "237.6"), ("page", "360")):
        assert runs("compare", "a", "b", "--figure", "one.svg", "--figure-size", size).code == 0
        assert f'width="{width}pt"' in Path("one.svg").read_text(encoding="utf-8")


def test_a_size_without_a_figure_and_one_that_there_is_not_are_refused(runs: Stsbench) -> None:
    assert "add --figure" in runs("compare", "a", "b", "--figure-size", "page").err
    assert "poster" in runs("compare", "a", "b", "--figure", "one.svg", "--figure-size", "poster").err
    assert not Path("one.svg").exists()


def test_a_figure_may_lie_below_the_home_folder(
    runs: Stsbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    assert runs("compare", "a", "b", "--figure", "~/one.svg").code == 0
    assert (tmp_path / "home" / "one.svg").is_file()


def test_a_figure_of_another_kind_is_refused(runs: Stsbench) -> None:
    done = runs("compare", "a", "b", "--figure", "one.jpg")
    assert (done.code, done.out) == (2, "")
    assert "cannot write a figure to one.jpg" in done.err


@pytest.mark.parametrize("how", [("--a", "a", "--b", "b"), ("--a=a", "--b=b"), ("--b", "b", "--a", "a")])
def test_methods_are_named_with_options(runs: Stsbench, how: tuple[str, ...]) -> None:
    done = runs("compare", *how)
    assert done.code == 0, done.err
    assert done.out.startswith("A: a\nB: b\n")
    assert "no claim: that takes 5 runs of each." in done.out


def test_all_runs_that_follow_an_option_belong_to_it_as_a_shell_writes_them(
    stsbench: Stsbench, runs: Stsbench
) -> None:
    for number in (1, 2):
        stsbench("run", "-m", "toys:words", "--tasks", "sample", "--out", f"seeds/w{number}")
        stsbench("run", "-m", "toys:letters", "--tasks", "sample", "--out", f"seeds/l{number}")
    written = stsbench("compare", "--a", "seeds/w1", "seeds/w2", "--b", "seeds/l1", "seeds/l2", "--quiet")
    assert written.code == 0, written.err
    assert written.out.startswith("A: seeds/w\nB: seeds/l\n")
    assert "over 2 runs" in written.out
    assert stsbench("compare", "--a", "seeds/w?", "--b", "seeds/l*", "--quiet").out == written.out
    mixed = stsbench("compare", "--quiet", "--a=seeds/w1", "seeds/w2", "--b", "seeds/l1", "--b=seeds/l2")
    assert mixed.out == written.out, mixed.err
    assert stsbench("compare", "--a", "seeds/w1", "--b", "seeds/w2").out.startswith("A: seeds/w1\nB: seeds/w2\n")
    told = json.loads(stsbench("compare", "--a", "seeds/*", "--json").out)
    assert told["rows"][0]["a_runs"] == 4
    assert told["rows"][0]["p"] is None


def test_a_corpus_is_searched_for_the_test_sentences(runs: Stsbench) -> None:
    own = load_sample().pairs["sentence1"].unique()[:7]
    Path("corpus.txt").write_text("\n".join([*own, "and nothing else"]), encoding="utf-8")
    done = runs("compare", "a", "b", "--corpus", "corpus.txt")
    assert re.search(r"^corpus\.txt +sample +\d+ +7 ", done.out, re.MULTILINE)
    assert re.search(r"^corpus\.txt holds 7 of \d+ test sentences \(\d\.\d%\)", done.err, re.MULTILINE)
    tables = runs("compare", "a", "b", "--corpus", "corpus.txt", "--markdown").out.split("\n\n")
    assert [table.partition(" | ")[0] for table in tables] == ["| task", "| corpus"]
    (entry,) = json.loads(runs("compare", "--a", "a", "--corpus", "corpus.txt", "--json").out)["overlaps"]
    assert entry["found"] == 7


def test_sentences_of_one_s_own_are_told_not_to_be_found(stsbench: Stsbench, pairs_file: Path) -> None:
    stsbench("run", "-m", "toys:words", "--data", pairs_file, "--out", "a")
    Path("corpus.txt").write_text("x\n", encoding="utf-8")
    done = stsbench("compare", "a", "a", "--corpus", "corpus.txt")
    assert done.code == 0
    assert "note: the sentences of pairs are in a file of your own" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name two runs, as in"),
        (("a",), "name two runs, as in"),
        (("a", "b", "a"), "name two runs, as in"),
        (("a", "b", "--a", "a"), "leave out the one or the other"),
        (("--b", "b"), "name two runs, as in"),
        (("a", "nowhere"), "no run record at nowhere"),
        (("--a", "seed*"), r"no run matches seed\*"),
        (("--a", "a", "a"), "a is named twice"),
        (("--a", "-q"), "--a.* requires an argument"),
        (("a", "b", "--level", "95"), "level 95"),
        (("a", "b", "--corpus", "nowhere.txt"), "cannot read the corpus nowhere.txt"),
        (("a", "c"), "do not compare on sample: metric is spearman in one and pearson in the other"),
        (("--a", "a", "--b", "c"), "a and c do not compare on sample: metric is spearman"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(runs: Stsbench, arguments: tuple[str, ...], message: str) -> None:
    runs("run", "-m", "toys:words", "--tasks", "sample", "--out", "c", "--metric", "pearson")
    done = runs("compare", *arguments)
    assert (done.code, done.out) == (2, "")
    assert re.search(message, done.err.strip().splitlines()[-1]), done.err


def test_a_pair_table_that_is_gone_is_told(runs: Stsbench) -> None:
    Path("a/items.parquet").unlink()
    done = runs("compare", "a", "b")
    assert (done.code, done.out) == (2, "")
    assert "a/items.parquet is missing" in done.err
    assert runs("compare", "--a", "a", "--b", "b").code == 0
