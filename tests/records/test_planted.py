"""Wrong values planted in a record and its items are found.

A small record of every kind of task is measured once. Then values of `run.json` and cells of the table are
changed; `told` opens the result as `check`, `compare` and `report` do. The number of variants is asserted, too.
"""

import json
import math
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from changed_records import with_digest

import stsbench as sb
from stsbench.base.files import sha256_of
from stsbench.data.tables import StsData
from stsbench.records.items import ITEMS
from stsbench.records.record import RECORD
from stsbench.scoring.kinds.relatedness import Relatedness
from stsbench.scoring.recompute import require_recomputed

Path_ = tuple[str | int, ...]
Content = dict[str, Any]

_measured: dict[str, Path] = {}


@pytest.fixture
def folder(
    hash_encode: Callable[..., Any],
    toy_data: Callable[..., StsData],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Return a folder with a record of all kinds of tasks; beside it, `other`, one of another model."""
    if not _measured:
        base = tmp_path_factory.mktemp("planted")
        related = toy_data("related", pairs=60, split="all", seed=7)
        splits = [("train", "dev", "test")[number % 3] for number in range(60)]
        trained = Relatedness(replace(related, pairs=related.pairs.assign(split=splits)))
        transfer = ["sample-paraphrases", "sample-movies", "sample-sentiment"]
        sb.evaluate(hash_encode, [toy_data(), toy_data("other", seed=100), *transfer, trained], out=base / "run")
        sb.evaluate(
            lambda sentences: [[len(s), s.count("e"), s.count("o")] for s in sentences],
            [toy_data(), toy_data("other", seed=100), *transfer, trained],
            out=base / "other",
        )
        _measured["base"] = base
    shutil.copytree(_measured["base"], tmp_path / "planted")
    return tmp_path / "planted" / "run"


def told(folder: Path) -> str:
    """Return in which sentence a record is refused; empty if it passes."""
    try:
        require_recomputed(sb.load_run(folder))
    except sb.UserError as error:
        sentence = str(error)
        assert "\n" not in sentence
        assert sentence.endswith(".")
        return sentence
    return ""


def leaves(content: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Yield every value of a record with the way to it."""
    items: Any = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in items:
        if isinstance(value, dict | list) and value:
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key), value


@contextmanager
def changed(content: Content, path: Path_, value: Any) -> Iterator[None]:
    """Put another value in a place of a record for a while."""
    place: Any = content
    for key in path[:-1]:
        place = place[key]
    held = copy(place)
    if value is _GONE:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    yield
    if isinstance(place, dict):
        place.clear()
        place.update(held)
    else:
        place[:] = held


_GONE = object()


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def variants(value: float) -> list[float]:
    """Return a number a little off, and by a lot to either side."""
    little = value + 1 if isinstance(value, int) else math.nextafter(value, math.inf)
    return [little, -value - 1, value * 1e9 + 1e9]


def read(folder: Path) -> Content:
    content: Content = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    return content


def write(folder: Path, content: Content, *, seal: bool = False) -> None:
    if seal:
        content = with_digest(content)
    (folder / RECORD).write_text(json.dumps(content), encoding="utf-8")


def test_an_untouched_record_passes(folder: Path) -> None:
    assert told(folder) == told(folder.with_name("other")) == ""
    content = read(folder)
    # White space and the order of keys say nothing.
    write(folder, dict(sorted(content.items(), reverse=True)))
    assert told(folder) == ""


def test_no_value_of_a_record_can_be_changed_removed_or_retyped_unseen(folder: Path) -> None:
    content = read(folder)
    others = cycle([None, "x", [0.5], True, {}, math.nan, "0.5"])
    planted = 0
    for path, value in list(leaves(content)):
        for other in (_GONE, next(others), *(variants(value) if is_number(value) else ())):
            if other is value or other == value == {}:
                continue
            with changed(content, path, other):
                write(folder, content)
            with pytest.raises(sb.UserError, match=r"run\.json .*(edited after|is not a run|schema version)"):
                sb.load_run(folder)
            planted += 1
    assert planted > 900


# What a record says once, and no table gives: only the digest knows it. All other numbers are known twice.
HELD_ONCE = {
    *("environment", "seconds", "encoding", "truncated_sentences", "max_length", "rows"),
    *("seed", "kfold", "grid", "chosen"),
}
# Of the fits that choose a regulariser, or the moment to stop.
STATED_ALONE = {"devacc", "dev"}


def is_held_once(content: Content, path: Path_) -> bool:
    if path[0] == "scores" and path[2] == "numbers":
        return content["scores"][path[1]]["numbers"][path[3]]["statistic"] in STATED_ALONE
    return not HELD_ONCE.isdisjoint(path)


def test_a_score_that_was_changed_is_known_without_the_digest_too(folder: Path) -> None:
    content = read(folder)
    counts: Counter[bool] = Counter()
    for path, value in list(leaves(content)):
        if not is_number(value) or path[0] == "schema_version" or is_held_once(content, path):
            continue
        # The last digit of a sum may differ on another processor.
        for other in (value + 1e-6, *variants(value)[1:]) if isinstance(value, float) else variants(value):
            with changed(content, path, other):
                write(folder, content, seal=True)
            assert told(folder), (path, value, other)
            counts["interval" in str(path)] += 1
    assert counts[False] > 150
    assert counts[True] > 60


def test_a_record_whose_bytes_were_cut_or_flipped_is_refused(folder: Path) -> None:
    file = folder / RECORD
    written = file.read_bytes()
    whole = sb.load_run(folder)
    places = range(0, len(written), len(written) // 100)
    for place in places:
        file.write_bytes(written[:place])
        assert told(folder)
        for bit in (1, 64):
            file.write_bytes(written[:place] + bytes([written[place] ^ bit]) + written[place + 1 :])
            # A space may become a tab: no value has changed then.
            if not told(folder):
                assert sb.load_run(folder) == whole
    assert len(places) >= 100


Plant = Callable[[pd.DataFrame], pd.DataFrame]


def cell(column: str, change: Callable[[Any], Any], row: int | None = None) -> Plant:
    """Change the value in a row of a column, by default the last that there is."""

    def plant(table: pd.DataFrame) -> pd.DataFrame:
        values, place = table[column].tolist(), table[column].last_valid_index() if row is None else row
        values[place] = change(values[place])
        return table.assign(**{column: pd.Series(values, index=table.index, dtype=table[column].dtype)})

    return plant


STATED = {"gold", "cosine", "supervised", "correct"}
"""The columns of numbers that scores are computed from."""

KEYS = {"kind", "task", "split", "text", "subset"}
"""The columns that say which score a row belongs to."""


def plants(table: pd.DataFrame) -> Iterator[tuple[str, Plant, bool]]:
    """Yield ways to spoil a table, each with whether a recomputed number rests on it."""
    for column in table.columns:
        yield f"without {column}", lambda t, c=column: t.drop(columns=c), column in STATED | KEYS
        if str(table[column].dtype) == "float64":
            for what, change in (
                ("a little off", lambda v: v + 1e-3),
                ("huge", lambda _: 1e300),
                ("undefined", lambda _: math.nan),
                ("infinite", lambda _: math.inf),
            ):
                yield f"{column} {what}", cell(column, change), column in STATED
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


def test_no_table_can_be_spoiled_unseen(folder: Path) -> None:
    content, table = read(folder), pd.read_parquet(folder / ITEMS)
    planted: Counter[str] = Counter()
    for what, plant, is_stated in plants(table):
        plant(table).to_parquet(folder / ITEMS, index=False)
        write(folder, content)
        assert "is not the table that run.json was computed from" in told(folder), what
        file = content["items_file"] | {"sha256": sha256_of(folder / ITEMS)}
        # The hash written into the record, and the record sealed anew: only the numbers are left to tell.
        write(folder, content | {"items_file": file})
        assert "edited after it was written" in told(folder), what
        planted["known"] += 2
        if is_stated:
            write(folder, content | {"items_file": file}, seal=True)
            assert told(folder), what
            planted["by the numbers"] += 1
    assert planted["known"] > 100
    assert planted["by the numbers"] > 35


@pytest.mark.parametrize("garbage", [None, b"", b"PAR1", b"PAR1" * 100])
def test_another_table_is_known_even_with_its_hash_in_a_sealed_record(folder: Path, garbage: bytes | None) -> None:
    content = read(folder)
    table = (folder.with_name("other") / ITEMS).read_bytes() if garbage is None else garbage
    (folder / ITEMS).write_bytes(table)
    assert "is not the table" in told(folder)
    content["items_file"]["sha256"] = sha256_of(folder / ITEMS)
    write(folder, content)
    assert "edited after it was written" in told(folder)
    write(folder, content, seal=True)
    assert ("cannot be read as a table" if garbage is not None else f"in run.json, and {ITEMS} gives ") in told(
        folder
    )


def test_every_verb_that_states_scores_computes_them_again(folder: Path, tmp_path: Path) -> None:
    other, content = folder.with_name("other"), read(folder)
    # Wrong by the same amount wherever it stands: the record agrees with itself.
    by_pearson = [number for number in content["scores"][0]["numbers"] if number["statistic"] == "pearson"]
    for number in by_pearson:
        number["value"] += 1e-6
    assert len(by_pearson) == 5
    write(folder, content, seal=True)
    assert told(folder)
    assert sb.load_run(folder).to_dict()["scores"] == content["scores"]
    for verb in (
        lambda: sb.check(folder, baseline=other),
        lambda: sb.check(other, baseline=folder),
        lambda: sb.check(folder, against="minilm"),
        lambda: sb.compare(folder, other),
        lambda: sb.compare([folder], [other]),
        lambda: sb.report([other, folder], tmp_path / "report", analyse=False),
    ):
        with pytest.raises(
            sb.UserError, match=r"the pearson of toy by all is 0\.\d+ in run\.json, and items\.parquet gives 0"
        ):
            verb()
    assert not (tmp_path / "report").exists()


def test_what_cannot_be_computed_again_is_said(folder: Path, tmp_path: Path) -> None:
    (folder / ITEMS).unlink()
    told_so = "were not recomputed: items.parquet is missing."
    other = folder.with_name("other")
    assert any(note.endswith(told_so) for note in sb.check(folder, baseline=other).notes)
    assert any(note.endswith(told_so) for note in sb.compare([folder], [other]).notes)
    page = sb.report([folder], tmp_path / "report", analyse=False)
    assert told_so in page.read_text(encoding="utf-8")
