"""A record takes another's place unasked only if it is of the same measurement."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import stsbench as sb

Stsbench = Callable[..., Any]

CHOICES = [
    ("--interval", "independent"),
    ("--classifier-seed", "7"),
    ("--kfold", "3"),
    ("--aggregation", "mean"),
]


@pytest.fixture
def sorted_pairs(tmp_path: Path) -> Path:
    """Return a file of pairs with two columns that could be subsets."""
    rows = [f"a{number} bird\t{number} birds\t{number}\t{number % 2}\t{number // 6}\n" for number in range(12)]
    path = tmp_path / "pairs.tsv"
    path.write_text("s1\ts2\tscore\todd\thalf\n" + "".join(rows), encoding="utf-8")
    return path


def measure(stsbench: Stsbench, *options: object) -> Any:
    return stsbench("run", "-m", "toys:words", "-o", "mine", *options)


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: choice[0])
def test_a_run_with_another_choice_takes_no_records_place(choice: tuple[str, str], stsbench: Stsbench) -> None:
    trains = choice[0] in {"--classifier-seed", "--kfold"}
    tasks = ("--tasks", "sample-questions" if trains else "sample")
    assert measure(stsbench, *tasks).code == 0
    before = sb.load_run("mine")
    refused = measure(stsbench, *tasks, *choice)
    assert refused.code == 2
    assert "stsbench: mine holds another measurement" in refused.err
    assert sb.load_run("mine") == before


def test_where_nobody_named_a_folder_each_measurement_has_its_own(stsbench: Stsbench) -> None:
    plain = ("run", "-m", "toys:words", "--tasks", "sample")
    for _ in range(2):
        assert stsbench(*plain).code == 0
        assert stsbench(*plain, "--interval", "independent").code == 0
    intervals = {sb.load_run(path).protocol.interval for path in Path("runs").iterdir()}
    assert (len(list(Path("runs").iterdir())), intervals) == (2, {"dyadic", "independent"})


def test_other_subsets_of_ones_own_pairs_are_another_measurement(stsbench: Stsbench, sorted_pairs: Path) -> None:
    own = ("--data", sorted_pairs, "--aggregation", "mean")
    assert measure(stsbench, *own, "--subset-column", "odd").code == 0
    refused = measure(stsbench, *own, "--subset-column", "half")
    assert (refused.code, "holds another measurement" in refused.err) == (2, True)
    assert measure(stsbench, *own, "--subset-column", "ODD").code == 0


def test_scores_over_other_subsets_neither_share_a_column_nor_are_judged(
    stsbench: Stsbench, sorted_pairs: Path
) -> None:
    own = ("--data", sorted_pairs, "--aggregation", "mean", "-m", "toys:words")
    for column in ("odd", "half"):
        assert stsbench("run", *own, "--subset-column", column, "-o", column).code == 0
    one, other = (sb.load_run(column).signatures[0] for column in ("odd", "half"))
    assert one.data != other.data
    judged = stsbench("check", "odd", "--baseline", "half")
    assert "not comparable" in judged.out
    assert "data" in judged.out
    refused = stsbench("compare", "odd", "half")
    assert (refused.code, "data is" in refused.err) == (2, True)


def test_the_subset_column_itself_keeps_the_hash_of_the_file(sorted_pairs: Path) -> None:
    from stsbench.data.own_pairs import load_pairs

    text = sorted_pairs.read_text(encoding="utf-8")
    sorted_pairs.write_text(text.replace("odd", "Subset"), encoding="utf-8")
    (file,) = load_pairs(sorted_pairs).files
    assert file.name == "pairs.tsv"
    assert load_pairs(sorted_pairs, "subset").sha256 == load_pairs(sorted_pairs).sha256
    (by_half,) = load_pairs(sorted_pairs, "HALF").files
    assert by_half.name == "pairs.tsv, subsets by half"


def test_the_same_vectors_beside_other_sentences_are_another_measurement(
    stsbench: Stsbench, hash_encode: Callable[..., Any], pairs_file: Path
) -> None:
    texts = list(dict.fromkeys(t for line in pairs_file.read_text().splitlines() for t in line.split("\t")[:2]))
    np.save("vectors.npy", hash_encode(texts))
    given = ("run", "--vectors", "vectors.npy", "--sentences", "texts.txt", "--data", pairs_file, "-o", "mine")
    Path("texts.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    assert stsbench(*given).code == 0
    Path("texts.txt").write_text("\n".join(reversed(texts)) + "\n", encoding="utf-8")
    refused = stsbench(*given)
    assert (refused.code, "holds another measurement" in refused.err) == (2, True)


def test_a_function_with_other_results_takes_no_records_place(stsbench: Stsbench, toys: ModuleType) -> None:
    assert measure(stsbench, "--tasks", "sample").code == 0
    assert "replaced the record of the same measurement" in measure(stsbench, "--tasks", "sample").err
    before = sb.load_run("mine")
    toys.words = toys.letters
    refused = measure(stsbench, "--tasks", "sample")
    assert refused.code == 2
    assert "mine holds other results of toys:words, which has no hash" in refused.err
    assert sb.load_run("mine") == before
    (beside,) = set(Path().glob("mine-*"))
    assert f"this measurement is saved in {beside}; " in refused.err
    assert sb.load_run(beside).scores[0].value != before.scores[0].value
    # Once more, and it is where it was.
    assert measure(stsbench, "--tasks", "sample").code == 2
    assert set(Path().glob("mine-*")) == {beside}
    assert measure(stsbench, "--tasks", "sample", "--overwrite").code == 0
    assert sb.load_run("mine").scores[0].value == sb.load_run(beside).scores[0].value


def test_a_changed_function_gets_a_folder_of_its_own_where_nobody_named_one(
    stsbench: Stsbench, toys: ModuleType
) -> None:
    plain = ("run", "-m", "toys:words", "--tasks", "sample")
    stsbench(*plain)
    toys.words = toys.letters
    done = stsbench(*plain)
    assert done.code == 0
    folders = sorted(path.name for path in Path("runs").iterdir())
    assert len(folders) == 2
    assert f"recorded in runs/{folders[1]}" in done.err


def test_of_two_runs_into_one_folder_at_once_the_later_loses_nothing(
    stsbench: Stsbench, toys: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = sys.modules["toys"].words

    def meanwhile(sentences: list[str]) -> Any:
        if not Path("mine").exists():
            sb.evaluate(toys.letters, "sample", out="mine")
        return first(sentences)

    toys.words = meanwhile
    loser = measure(stsbench, "--tasks", "sample")
    assert loser.code == 2
    winner = sb.load_run("mine")
    assert "holds another measurement" in loser.err
    (beside,) = set(Path().glob("mine-*"))
    assert str(beside) in loser.err
    assert sb.load_run(beside).scores[0].value != winner.scores[0].value
    with pytest.raises(sb.UserError, match="is saved in"):
        sb.evaluate(_after(lambda: sb.evaluate(toys.letters, "sample", out="other"), first), "sample", out="other")


def _after(act: Callable[[], object], encode: Callable[..., Any]) -> Callable[[list[str]], Any]:
    def acted(sentences: list[str]) -> Any:
        act()
        return encode(sentences)

    return acted
