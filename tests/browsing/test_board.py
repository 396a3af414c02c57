"""The board: comparable runs, their comparisons, records that are left out, and the cache."""

import json
import re
import shutil
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stsbench as sb
from stsbench.base.files import cache_dir
from stsbench.browsing import sections
from stsbench.judging.published import published_beside
from stsbench.published.catalogue import row
from stsbench.records.parts import DataPart
from stsbench.records.store import save_run

Runs = Callable[..., Path]

HOSTILE = '<img src=x onerror="alert(1)"> {{ 7 * 7 }}'

KNOWN = {"alpha": 0.0, "beta": 0.5, "gamma": 0.53, "delta": 0.56}


def test_the_highest_runs_are_compared_as_compare_and_rank_do(
    board_runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = board_runs(**KNOWN)
    (section,) = sb.board(root).sections
    records = [run.record for run in section.runs]
    for high, low in combinations(range(len(records)), 2):
        sentence = sb.compare(records[low], records[high]).sentence
        assert section.sentence(low, high) == section.sentence(high, low) == sentence
    assert section.sentence(1, 1) == ""
    ranking = sb.rank([root / name for name in KNOWN])
    average = ranking.of("Avg.")
    assert [run.name for run in section.runs] == average["model"].tolist()
    theirs = dict(zip(average["model"], map(set, average["letters"]), strict=True))
    ours = {section.runs[place].name: set(letters) for place, letters in section.letters["Avg."].items()}
    for one, other in combinations(ours, 2):
        assert bool(ours[one] & ours[other]) == bool(theirs[one] & theirs[other])
    tied = {model for model, p in zip(average["model"], ranking.p["Avg."][0], strict=True) if p >= 0.05}
    assert {section.runs[place].name for place in section.ties["Avg."]} == tied
    assert 1 < len(tied) < len(theirs)
    monkeypatch.setattr(sections, "COMPARED", 3)
    (few,) = sb.board(root).sections
    assert sorted(few.compared) == [0, 1, 2]
    assert few.sentence(0, 2) == section.sentence(0, 2)
    assert few.sentence(0, 3) == ""


def test_scores_intervals_and_costs_are_the_records_own(board_runs: Runs, tiny_bert: Path) -> None:
    board = sb.board(board_runs(**KNOWN))
    frame = board.frame.set_index(["model", "task"])
    for name in KNOWN:
        record = sb.load_run(board_runs() / name)
        for told in record.frame[record.frame["subset"] == ""].query("metric == 'spearman'").to_dict("records"):
            shown = frame.loc[(name, told["task"]), ["score", "low", "high"]].tolist()
            assert shown == pytest.approx([told["score"], told["low"], told["high"]])
    run = next(run for run in board.sections[0].runs if run.name == "alpha")
    record = run.record
    assert run.facts["dimensions"] == record.encoding["dimensions"] > 0
    assert run.facts["ms"] == pytest.approx(1000 * record.seconds["encode"] / record.encoding["encoded"])
    assert run.facts["seconds"] == pytest.approx(sum(record.seconds.values()))
    assert (run.facts["run"], run.facts["weight_mb"]) == ("alpha", None)
    measured = sb.evaluate(str(tiny_bert), "sample", use_cache=False)
    assert measured.encoding["weight_bytes"] == (tiny_bert / "model.safetensors").stat().st_size
    # Without items, only intervals of the board's level are shown.
    place = board_runs() / "beta"
    (place / "items.parquet").unlink()
    for level, is_shown in ((0.95, True), (0.9, False)):
        (section,) = sb.board(place, level=level).sections
        assert [score[1] is not None for score in section.runs[0].scores] == [is_shown] * 3


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
    assert whys["alone"].startswith("scores only")
    assert first.why == ""
    assert any("items.parquet is missing" in note for note in board.notes)


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


def test_names_are_text_and_items_are_matched_by_name_in_any_order(board_runs: Runs) -> None:
    root = board_runs(**{HOSTILE: 0.0, "beta": 0.4})
    page = sb.board(root).html
    assert "<img" not in page
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, flags=re.DOTALL)
    assert HOSTILE in {run["name"] for run in json.loads(text)["sections"][0]["runs"]}
    sentence = sb.board(root).sections[0].sentence(0, 1)
    record = sb.load_run(root / "beta")

    def replaced(table: Any) -> Any:
        save_run(record.with_items(table, root / "beta"), root / "beta", overwrite=True)
        return sb.board(root).sections

    table = record.items
    (section,) = replaced(table.iloc[::-1].reset_index(drop=True))
    assert section.sentence(0, 1) == sentence
    ids = np.array([f"x{number}" for number in table["item_id"]], dtype=object)
    assert (
        replaced(table.assign(item_id=ids))[1].why == "the items or their gold scores differ from the first table"
    )


def test_records_that_cannot_be_trusted_are_left_out_with_a_note(board_runs: Runs, tmp_path: Path) -> None:
    root = board_runs(alpha=0.0, beta=0.4, gamma=0.7, delta=2.0, omega=0.3)
    (root / "beta" / "run.json").write_text("{")
    for name, change in (("gamma", lambda of: of["model"].update(name=None)), ("delta", _higher)):
        edited = json.loads((root / name / "run.json").read_text())
        change(edited)
        (root / name / "run.json").write_text(json.dumps(edited))
    board = sb.board(root)
    assert {run.name for section in board.sections for run in section.runs} == {"alpha", "omega"}
    expected = {"beta/run.json is not valid JSON", "gamma/run.json is not a run record", "delta does not match"}
    assert all(any(text in note for note in board.notes) for text in expected)
    assert all(note.startswith("left out: ") for note in board.notes)
    for folder, message in ((tmp_path / "absent", "absent is not a folder"), (root / "beta", "not valid JSON")):
        with pytest.raises(sb.UserError, match=message):
            sb.board(folder)
    (tmp_path / "empty").mkdir()
    with pytest.raises(sb.UserError, match=r"no run.json below .*empty"):
        sb.board(tmp_path / "empty")


def _higher(record: Any) -> None:
    record["scores"][0]["numbers"][1]["value"] += 0.01


def test_a_damaged_cache_is_made_again_and_one_that_cannot_be_written_is_noted(board_runs: Runs) -> None:
    root = board_runs(alpha=0.0, beta=0.4)
    expected, folder = sb.board(root).html, cache_dir() / "board"
    files = sorted(folder.iterdir())
    texts = [file.read_text() for file in files]
    for damage in (lambda text: text.replace("0.", "1."), lambda text: text[:20], lambda _: ""):
        for file, text in zip(files, texts, strict=True):
            file.write_text(damage(text))
        board = sb.board(root)
        assert board.html == expected
        assert [file.read_text() for file in files] == texts
    shutil.rmtree(folder)
    folder.write_text("in the way")
    board = sb.board(root)
    assert board.sections[0].sentence(0, 1)
    assert "cannot be written" in board.notes[-1]
