"""The board: what stands together, what is said of it, what is left out, and what is made only once."""

import json
import re
import sqlite3
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stsbench as sb
from stsbench.base.files import cache_dir
from stsbench.browsing import sections
from stsbench.judging.matching import published_beside
from stsbench.published.catalogue import row
from stsbench.records.parts import DataPart
from stsbench.records.record import RunRecord
from stsbench.records.store import save_run

Runs = Callable[..., Path]

HOSTILE = '<img src=x onerror="alert(1)"> {{ 7 * 7 }}'

KNOWN = {"alpha": 0.0, "beta": 0.5, "gamma": 0.53, "delta": 0.56}


def test_every_two_runs_are_told_what_compare_says(board_runs: Runs) -> None:
    (section,) = sb.board(board_runs(**KNOWN)).sections
    records = [run.record for run in section.runs]
    for high, low in combinations(range(len(records)), 2):
        said = sb.compare(records[low], records[high]).sentence
        assert section.sentence(low, high) == section.sentence(high, low) == said
    assert section.sentence(1, 1) == ""


def test_scores_and_intervals_are_the_records_own(board_runs: Runs) -> None:
    board = sb.board(board_runs(**KNOWN))
    frame = board.frame.set_index(["model", "task"])
    for name in KNOWN:
        record = sb.load_run(board_runs() / name)
        for told in record.frame[record.frame["subset"] == ""].query("metric == 'spearman'").to_dict("records"):
            shown = frame.loc[(name, told["task"]), ["score", "low", "high"]].tolist()
            assert shown == pytest.approx([told["score"], told["low"], told["high"]])


def test_groups_are_those_of_rank(board_runs: Runs) -> None:
    root = board_runs(**KNOWN)
    (section,) = sb.board(root).sections
    ranking = sb.rank([root / name for name in KNOWN]).headlines[0]
    theirs = {ranked.model: set(ranked.letters) for ranked in ranking.rows}
    ours = {section.runs[place].name: set(letters) for place, letters in section.letters["Avg."].items()}
    for one, other in combinations(ours, 2):
        assert bool(ours[one] & ours[other]) == bool(theirs[one] & theirs[other])
    first = ranking.p[0]
    alike = {ranked.model for ranked, p in zip(ranking.rows, first, strict=True) if p >= 0.05}
    assert {section.runs[place].name for place in section.alike["Avg."]} == alike
    assert 1 < len(alike) < len(theirs)
    # The page gets them as lists: names such as "1" and "10" share no character by chance.
    given = json.loads(json.dumps(section.as_dict()["letters"]))["Avg."]
    assert {place: tuple(letters) for place, letters in given} == section.letters["Avg."]
    assert all(isinstance(letters, list) for _, letters in given)


def test_only_the_highest_are_judged_where_there_are_many(
    board_runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sections, "COMPARED", 3)
    (section,) = sb.board(board_runs(**KNOWN)).sections
    assert sorted(section.judged) == [0, 1, 2]
    assert section.sentence(0, 2) != ""
    assert section.sentence(0, 3) == ""
    assert 3 not in section.letters["Avg."]


def test_what_does_not_compare_stands_apart_and_says_why(
    board_runs: Runs, hash_encode: Callable[..., Any], toy_data: Callable[..., Any]
) -> None:
    root = board_runs(**KNOWN)
    data = [toy_data("toy", pairs=60), toy_data("other", pairs=50, seed=1)]
    sb.evaluate(hash_encode, data, protocol=sb.protocol(metric="pearson"), use_cache=False, out=root / "pearson")
    sb.evaluate(hash_encode, data[:1], use_cache=False, out=root / "one")
    (root / "alone").mkdir()
    (root / "alone" / "run.json").write_bytes((root / "alpha" / "run.json").read_bytes())
    board = sb.board(root)
    first, *others = board.sections
    assert [len(section.runs) for section in board.sections] == [4, 1, 1, 1]
    whys = {section.runs[0].facts["run"]: section.why for section in others}
    assert whys["pearson"] == "metric is pearson here and spearman in the first table (toy and other)"
    assert whys["one"] == "without other"
    assert whys["alone"].startswith("only the scores are here")
    assert first.why == ""
    assert any("items.parquet is missing" in note for note in board.notes)


def test_recorded_intervals_stand_only_where_they_are_of_the_boards_kind(board_runs: Runs) -> None:
    place = board_runs(beta=0.5) / "beta"
    (place / "items.parquet").unlink()
    for level, shown in ((0.95, True), (0.9, False)):
        (section,) = sb.board(place, level=level).sections
        assert [score[1] is not None for score in section.runs[0].scores] == [shown] * 3


def test_other_items_of_the_same_name_stand_apart(board_runs: Runs) -> None:
    root = board_runs(alpha=0.0, beta=0.4)
    record = sb.load_run(root / "beta")
    table = record.items
    ids = np.array([f"x{number}" for number in table["item_id"]], dtype=object)
    save_run(record.with_items(table.assign(item_id=ids), root / "beta"), root / "beta", overwrite=True)
    _, other = sb.board(root).sections
    assert other.why == "the items, or what people gave them, are others than in the first table"


def test_the_order_of_the_items_does_not_matter(board_runs: Runs) -> None:
    root = board_runs(alpha=0.0, beta=0.4)
    said = sb.board(root).sections[0].sentence(0, 1)
    record = sb.load_run(root / "beta")
    table = record.items
    turned = record.with_items(table.iloc[::-1].reset_index(drop=True), root / "beta")
    save_run(turned, root / "beta", overwrite=True)
    (section,) = sb.board(root).sections
    assert section.sentence(0, 1) == said


def test_a_record_that_cannot_be_trusted_is_named_and_left_out(board_runs: Runs) -> None:
    root = board_runs(alpha=0.0, beta=0.4, gamma=0.7, delta=2.0, omega=0.3)
    (root / "beta" / "run.json").write_text("{")
    edited = json.loads((root / "gamma" / "run.json").read_text())
    edited["model"]["name"] = None
    (root / "gamma" / "run.json").write_text(json.dumps(edited))
    forged = json.loads((root / "delta" / "run.json").read_text())
    forged["scores"][0]["numbers"][1]["value"] += 0.01
    (root / "delta" / "run.json").write_text(json.dumps(forged))
    board = sb.board(root)
    assert [run.name for section in board.sections for run in section.runs] in (
        ["alpha", "omega"],
        ["omega", "alpha"],
    )
    beta, gamma, delta = board.notes
    assert "beta/run.json is not valid JSON" in beta
    assert "gamma/run.json is not a run record" in gamma
    assert "delta does not match its items" in delta
    assert all(note.startswith("left out: ") for note in board.notes)


def test_where_nothing_can_be_shown_it_says_why(tmp_path: Path, board_runs: Runs) -> None:
    with pytest.raises(sb.UserError, match=r"there is no run.json below .*: `stsbench run --out` writes one"):
        sb.board(tmp_path)
    with pytest.raises(sb.UserError, match="absent is no folder"):
        sb.board(tmp_path / "absent")
    (board_runs(alpha=0.0) / "alpha" / "run.json").write_text("{")
    with pytest.raises(sb.UserError, match=r"^.*run.json is not valid JSON"):
        sb.board(board_runs())


def _read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of the records whose items are read from now on."""
    read, plain = [], RunRecord._table

    def table(self: RunRecord) -> Any:
        if self._items is None:
            read.append(self.model.name)
        return plain(self)

    monkeypatch.setattr(RunRecord, "_table", table)
    return read


def test_made_again_it_makes_only_what_is_new(board_runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    first = sb.board(board_runs(alpha=0.0, beta=0.4)).html
    read = _read(monkeypatch)
    assert sb.board(board_runs()).html == first
    assert read == []
    board_runs(gamma=0.7)
    read.clear()
    (section,) = sb.board(board_runs()).sections
    assert [name.rpartition(":")[2] for name in read] == ["gamma"]
    assert section.sentence(0, 2)
    # Another table in the place of one that is known is read, and refused.
    (board_runs() / "beta" / "items.parquet").write_bytes((board_runs() / "alpha" / "items.parquet").read_bytes())
    assert "beta/items.parquet is not the table" in sb.board(board_runs()).notes[0]


@pytest.mark.parametrize("harm", ["garbage", "empty", "foreign", "changed", "no items"])
def test_a_damaged_or_foreign_cache_is_made_again(
    harm: str, board_runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = sb.board(board_runs(alpha=0.0, beta=0.4)).html
    file = cache_dir() / "board" / "kept.sqlite"
    if harm in {"garbage", "empty"}:
        file.write_bytes(b"SQLite format 3\0 not at all" * 100 if harm == "garbage" else b"")
    else:
        with sqlite3.connect(file) as held:
            if harm == "foreign":
                held.execute("DROP TABLE kept")
                held.execute("CREATE TABLE kept (something TEXT)")
            elif harm == "changed":
                held.execute("UPDATE kept SET said = replace(said, '0.', '1.')")
            else:  # and what is said of the section, so that the items are asked for
                held.execute("UPDATE kept SET digest = '' WHERE said LIKE '%board%' OR said LIKE '%letters%'")
        held.close()
    read = _read(monkeypatch)
    board = sb.board(board_runs())
    assert board.html == expected
    assert len(read) == 2
    read.clear()
    assert sb.board(board_runs()).html == expected
    assert read == []


def test_without_a_cache_it_says_so_and_goes_on(board_runs: Runs) -> None:
    root = board_runs(alpha=0.0, beta=0.4)
    (cache_dir() / "board" / "kept.sqlite").mkdir(parents=True)
    board = sb.board(root)
    assert "kept.sqlite cannot be used" in board.notes[-1]
    assert board.sections[0].sentence(0, 1)


def test_seeds_of_a_recipe_are_told_as_compare_tells_them(board_runs: Runs, as_seeds: Callable[..., None]) -> None:
    root = board_runs(**KNOWN)
    as_seeds(root, "alpha", "beta", "gamma")
    (section,) = sb.board(root).sections
    (fold,) = section.folds
    assert {section.runs[place].name for place in fold.places} == {"alpha", "beta", "gamma"}
    rows = sb.compare([root / name for name in ("alpha", "beta", "gamma")]).frame.set_index("task")
    for column, score in zip(section.columns, fold.scores, strict=True):
        wanted = rows.loc[column.name, ["a_mean", "a_low", "a_high", "a_sd"]].tolist()
        assert score == pytest.approx(wanted)


def test_runs_of_other_recipes_and_of_the_same_weights_are_not_folded(
    board_runs: Runs, as_seeds: Callable[..., None]
) -> None:
    root = board_runs(**KNOWN)
    as_seeds(root, "alpha", "beta")
    (root / "beta" / "recipe.yaml").write_text("seed: 1\nrate: 0.2\n")
    assert sb.board(root).sections[0].folds == ()
    as_seeds(root, "alpha")
    as_seeds(root, "beta")  # of the same weights
    assert sb.board(root).sections[0].folds == ()
    # Nor is one whose model's name is too long for a path, or whose recipe is none.
    as_seeds(root, "alpha", "beta")
    (root / "beta" / "recipe.yaml").write_text("- [")
    record = sb.load_run(root / "gamma")
    model = record.model.model_copy(update={"name": "x" * 5000, "weights_sha256": "f" * 64})
    named = record.model_copy(update={"model": model}).with_items(record.items, root / "gamma")
    save_run(named, root / "gamma", overwrite=True)
    (section,) = sb.board(root).sections
    assert len(section.runs) == len(KNOWN)
    assert section.folds == ()


def _published(record: sb.RunRecord) -> sb.RunRecord:
    """Return a record of one task as if it were of the released STS16."""
    (score,) = record.scores
    signature = score.signature.replace("toy:", "STS16:").replace("text:toy", "text:senteval")
    data = DataPart(status="verified", sha256=score.data.sha256)
    changed = {"task": "STS16", "text": "senteval", "signature": signature, "data": data}
    return record.model_copy(update={"scores": (score.model_copy(update=changed),)})


def test_published_rows_that_compare_stand_beside(hash_encode: Callable[..., Any], toy_data: Any) -> None:
    make = [
        sb.evaluate(hash_encode, toy_data("toy"), use_cache=False, protocol=sb.protocol(metric=metric))
        for metric in ("spearman", "kendall")
    ]
    spearman, kendall = map(_published, make)
    beside = {row.name: values for row, values in published_beside(spearman)}
    simcse = row("unsup-simcse-bert-base")
    assert beside[simcse.name] == {("sts", "STS16"): simcse.cell("STS16").score}
    assert simcse.name not in {row.name for row, _ in published_beside(kendall)}
    # Of data that is not the released one nothing is published.
    assert list(published_beside(make[0])) == []


def test_names_are_text_and_never_markup(board_runs: Runs) -> None:
    page = sb.board(board_runs(**{HOSTILE: 0.0, "beta": 0.4})).html
    assert "<img" not in page
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, flags=re.DOTALL)
    assert HOSTILE in {run["name"] for run in json.loads(text)["sections"][0]["runs"]}


def test_what_a_run_cost_is_told(board_runs: Runs) -> None:
    (section,) = sb.board(board_runs(alpha=0.0)).sections
    (run,) = section.runs
    record = run.record
    assert run.facts["dimensions"] == record.encoding["dimensions"] > 0
    assert run.facts["ms"] == pytest.approx(1000 * record.seconds["encode"] / record.encoding["encoded"])
    assert run.facts["seconds"] == pytest.approx(sum(record.seconds.values()))
    assert (run.facts["run"], run.facts["weight_mb"]) == ("alpha", None)


def test_the_weights_of_a_checkpoint_have_their_size(tiny_bert: Path) -> None:
    record = sb.evaluate(str(tiny_bert), "sample", use_cache=False)
    size = (tiny_bert / "model.safetensors").stat().st_size
    assert (record.encoding["weight_bytes"], record.encoding["dimensions"]) == (size, 32)
