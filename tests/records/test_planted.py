"""Wrong values planted in a record of several kinds of tasks and in its items are found."""

import json
import math
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import stsbench as sb
from stsbench.base.files import sha256_of
from stsbench.records.kinds import ITEMS, KEY
from stsbench.records.record import RECORD
from stsbench.scoring.kinds.relatedness import Relatedness
from stsbench.scoring.recompute import require_recomputed

Place = tuple[str | int, ...]
Content = dict[str, Any]
Plant = Callable[[pd.DataFrame], pd.DataFrame]


@pytest.fixture(scope="module")
def measured(hash_encode: Any, toy_data: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("planted")
    related = toy_data("related", pairs=60, split="all", seed=7)
    splits = [("train", "dev", "test")[number % 3] for number in range(60)]
    trained = Relatedness(replace(related, pairs=related.pairs.assign(split=splits)))
    transfer = ["sample-paraphrases", "sample-movies", "sample-sentiment"]
    tasks = [toy_data(), toy_data("other", seed=100), *transfer, trained]
    sb.evaluate(hash_encode, tasks, out=base / "run")
    sb.evaluate(lambda texts: [[len(s), s.count("e"), s.count("o")] for s in texts], tasks, out=base / "other")
    return base


@pytest.fixture
def folder(measured: Path, tmp_path: Path) -> Path:
    """Return the folder of a record; beside it is `other`, one of another model."""
    return Path(shutil.copytree(measured, tmp_path / "planted")) / "run"


def reported(folder: Path) -> str:
    """Return the sentence with which a record is rejected; empty if it passes."""
    try:
        require_recomputed(sb.load_run(folder))
    except sb.UserError as error:
        return str(error)
    return ""


def leaves(content: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    items: Any = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in items:
        if isinstance(value, dict | list) and value:
            yield from leaves(value, (*place, key))
        else:
            yield (*place, key), value


def with_value(content: Content, place: Place, value: Any) -> Content:
    """Return a copy of a record with another value at a place."""
    part = copied = deepcopy(content)
    for key in place[:-1]:
        part = part[key]  # type: ignore[index]
    part[place[-1]] = value  # type: ignore[index]
    return copied


def read(folder: Path) -> Content:
    content: Content = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    return content


def write(folder: Path, content: Content) -> None:
    (folder / RECORD).write_text(json.dumps(content), encoding="utf-8")


def test_an_untouched_record_passes(folder: Path) -> None:
    assert reported(folder) == reported(folder.with_name("other")) == ""
    write(folder, dict(sorted(read(folder).items(), reverse=True)))  # the order of keys means nothing
    assert reported(folder) == ""


# Fields that no table determines. All other numbers can be recomputed.
HELD_ONCE = {
    *("environment", "seconds", "encoding", "truncated_sentences", "max_length", "rows"),
    *("seed", "kfold", "grid", "chosen"),
}
# The statistics of fits that choose a regulariser, or when to stop.
STATED_ALONE = {"devacc", "dev"}


def is_held_once(content: Content, place: Place) -> bool:
    if place[0] == "scores" and place[2] == "numbers":
        return content["scores"][place[1]]["numbers"][place[3]]["statistic"] in STATED_ALONE
    return not HELD_ONCE.isdisjoint(place)


def test_a_score_that_was_changed_is_found(folder: Path) -> None:
    content = read(folder)
    counts: Counter[bool] = Counter()
    for place, value in leaves(content):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or place[0] == "schema_version" or is_held_once(content, place):
            continue
        # The last digit of a sum may differ on another processor.
        for other in (value + (1e-6 if isinstance(value, float) else 1), -value - 1, value * 1e9 + 1e9):
            write(folder, with_value(content, place, other))
            assert reported(folder), (place, value, other)
            counts["interval" in str(place)] += 1
    assert counts[False] > 150
    assert counts[True] > 60


def cell(column: str, value: Callable[[Any], Any], row: int | None = None) -> Plant:
    """Change a cell of a column, by default the last valid one."""

    def plant(table: pd.DataFrame) -> pd.DataFrame:
        values, place = table[column].tolist(), table[column].last_valid_index() if row is None else row
        values[place] = value(values[place])
        return table.assign(**{column: pd.Series(values, index=table.index, dtype=table[column].dtype)})

    return plant


STATED = {"gold", "cosine", "supervised", "correct"}
"""The columns of numbers that scores are computed from."""

KEYS = {*KEY, "subset"}


def plants(table: pd.DataFrame) -> Iterator[tuple[str, Plant, bool]]:
    """Yield changes of a table, each with whether a recomputed number depends on it."""
    for column in table.columns:
        yield f"without {column}", lambda t, c=column: t.drop(columns=c), column in STATED | KEYS
        if str(table[column].dtype) == "float64":
            for other in (1e300, math.nan, math.inf):
                yield f"{column} {other}", cell(column, lambda _, v=other: v), column in STATED
            yield f"{column} a little off", cell(column, lambda v: v + 1e-3), column in STATED
        elif str(table[column].dtype) == "bool":
            yield f"{column} turned", cell(column, lambda v: not v, row=3), True
        elif column in KEYS:
            yield f"{column} of a row", cell(column, lambda v: f"{v}x", row=3), True
            yield f"all {column}", lambda t, c=column: t.assign(**{c: "x"}), True
    yield "without the first row", lambda t: t.iloc[1:], True
    yield "without all rows", lambda t: t.iloc[:0], True
    yield "twice", lambda t: pd.concat([t, t]), True
    yield "a row in place of another", lambda t: pd.concat([t.iloc[:1], t.iloc[:1], t.iloc[2:]]), True
    yield "reversed gold", lambda t: t.assign(gold=t["gold"].to_numpy()[::-1]), True


def test_every_change_of_the_table_is_found(folder: Path) -> None:
    content, table = read(folder), pd.read_parquet(folder / ITEMS)
    planted: Counter[bool] = Counter()
    for what, plant, is_stated in plants(table):
        plant(table).to_parquet(folder / ITEMS, index=False)
        write(folder, content)
        assert "is not the table that run.json was computed from" in reported(folder), what
        # With the hash written anew, only the numbers can show it.
        if is_stated:
            write(folder, content | {"items_file": content["items_file"] | {"sha256": sha256_of(folder / ITEMS)}})
            assert reported(folder), what
        planted[is_stated] += 1
    assert planted[True] > 35
    assert planted.total() > 50


@pytest.mark.parametrize("garbage", [None, b"", b"PAR1", b"PAR1" * 100])
def test_another_table_is_found_even_with_its_hash_in_the_record(folder: Path, garbage: bytes | None) -> None:
    content, table = read(folder), (folder.with_name("other") / ITEMS).read_bytes()
    (folder / ITEMS).write_bytes(table if garbage is None else garbage)
    content["items_file"]["sha256"] = sha256_of(folder / ITEMS)
    write(folder, content)
    assert ("in run.json, and items.parquet gives " if garbage is None else "as a table") in reported(folder)


def test_every_verb_that_states_scores_recomputes_them(folder: Path, tmp_path: Path) -> None:
    other, content = folder.with_name("other"), read(folder)
    # All are wrong by the same amount, so the record is consistent.
    by_pearson = [number for number in content["scores"][0]["numbers"] if number["statistic"] == "pearson"]
    for number in by_pearson:
        number["value"] += 1e-6
    write(folder, content)
    for verb in (
        lambda: sb.check(folder, baseline=other),
        lambda: sb.check(other, baseline=folder),
        lambda: sb.check(folder, against="minilm"),
        lambda: sb.compare(folder, other),
        lambda: sb.compare([folder], [other]),
        lambda: sb.report([other, folder], tmp_path / "report", analyse=False),
    ):
        with pytest.raises(sb.UserError, match=r"pearson of toy by all is .* in run\.json"):
            verb()
    assert not (tmp_path / "report").exists()
