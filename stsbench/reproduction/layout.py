"""What is trained and measured for a table at a scale, and why the rest is not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stsbench.data.locate import places
from stsbench.published.catalogue import checkpoint_of_system
from stsbench.reproduction.scales import Scale, ScaleName, scales
from stsbench.reproduction.table_plan import PlannedRow, RowPlan, TablePlan


@dataclass(frozen=True)
class Made:
    """One thing that is trained or measured for a table.

    Attributes:
        row: the row that it fills.
        column: the column that it fills; empty for all of them.
        changes: as an experiment's axis has them.
    """

    row: str
    column: str
    changes: Mapping[str, Any]

    @property
    def label(self) -> str:
        """What it is called on the experiment's axis."""
        return f"{self.row}, {self.column}" if self.column else self.row

    @property
    def checkpoint(self) -> str:
        """The checkpoint that is measured as it is; empty for a training."""
        return str(self.changes.get("checkpoint", ""))

    @property
    def is_trained(self) -> bool:
        """Whether it is trained here."""
        return "recipe" in self.changes


@dataclass(frozen=True)
class Layout:
    """What is made for an exhibit at a scale.

    Attributes:
        made: in the order of the rows.
        shares: by row, the row whose trainings it shares.
        missing: by row (or `row, column`), why it is not made.
    """

    made: tuple[Made, ...]
    shares: Mapping[str, str]
    missing: Mapping[str, str]

    def filling(self, row: str, column: str) -> Made | None:
        """Return what fills a cell of the table; None for nothing."""
        by_place = {(made.row, made.column): made for made in self.made}
        source = self.shares.get(row, row)
        return by_place.get((source, column)) or by_place.get((source, ""))


def layout(plan: TablePlan, name: str, scale: ScaleName, data_dirs: Sequence[Path] = ()) -> Layout:
    """Return what is trained and measured for an exhibit at a scale, and why the rest is not.

    Args:
        plan: of the exhibit.
        name: the exhibit.
        scale: that it is made at.
        data_dirs: folders of the person's, in which files of word vectors are looked for first.

    Raises:
        UserError: if a folder that the person named is not there.

    >>> from stsbench.reproduction.table_plan import plan_of
    >>> rates = layout(plan_of("esimcse-coling2022-9"), "esimcse-coling2022-9", "laptop")
    >>> rates.made[0].label, rates.made[0].changes["views.key.rate"]
    ('dup_rate-0.08', 0.08)
    """
    made: list[Made] = []
    shares: dict[str, str] = {}
    missing: dict[str, str] = {}
    chosen = plan.made_at.get(scale)
    if plan.counts:
        return Layout((), {}, {})
    for row, planned in plan.rows_of(name).items():
        if chosen is not None and row not in {label.partition(", ")[0] for label in chosen}:
            missing[row] = planned.cannot or f"left out at the scale {scale}, which makes a few rows alone"
            continue
        if planned.of:
            shares[row] = planned.of
            continue
        for column, place in planned.cells.items() or (("", planned),):
            label = f"{row}, {column}" if column else row
            if chosen is not None and not {row, label} & set(chosen):
                missing[label] = f"left out at the scale {scale}, which makes a few cells alone"
                continue
            changes = _changes(plan, planned, place, scale, data_dirs)
            if isinstance(changes, str):
                missing[label] = changes
            else:
                made.append(Made(row, column, changes))
    return Layout(tuple(made), shares, missing)


def _changes(
    plan: TablePlan, row: PlannedRow, place: RowPlan, scale: ScaleName, data_dirs: Sequence[Path]
) -> dict[str, Any] | str:
    """Return how a row or a cell is made at a scale as changes of an experiment, or why it is not."""
    size = scales()[scale]
    why = place.cannot or row.cannot or place.cannot_at.get(scale) or row.cannot_at.get(scale)
    if as_it_is := why or _as_it_is(row, place, size, data_dirs):
        return as_it_is
    recipes = (place.recipe_at, place.recipe, row.recipe_at, row.recipe, plan.recipe_at, plan.recipe)
    named = (recipe if isinstance(recipe, str) else recipe.get(scale, "") for recipe in recipes)
    recipe = next(filter(None, named), "")
    if not recipe:
        if size.checkpoints:
            return "no public checkpoint is known, and no recipe trains it"
        return "measured from a checkpoint, at the scale paper alone"
    name = size.stands_in.get(recipe, recipe) if size.stands_in else recipe
    if size.stands_in and recipe not in size.stands_in:
        return f"{recipe}: {size.without}"
    changes: dict[str, Any] = {"recipe": name, **size.set, **row.set, **row.set_at.get(scale, {})}
    return changes | dict(place.set) | dict(place.set_at.get(scale, {}))


def _as_it_is(row: PlannedRow, place: RowPlan, size: Scale, data_dirs: Sequence[Path]) -> dict[str, Any] | str:
    """Return the changes of what is measured as it is, or why it is not; nothing where it is to be trained."""
    if pattern := place.file or row.file:
        if size.tried:
            return {"checkpoint": pattern}
        for data in places(data_dirs):
            for path in sorted(data.folder.glob(pattern)):
                if path.is_file():
                    return {"checkpoint": str(path.absolute())}
        return f"no file {pattern} is in a data folder: put word vectors there, or name a folder with --data-dir"
    system = place.checkpoint or row.checkpoint
    known = checkpoint_of_system(system) if system and size.checkpoints else None
    if known is None or not known.hub:
        return {}
    post = place.postprocessing or row.postprocessing
    return {"checkpoint": known.hub, "pooling": known.pooling} | ({"postprocessing": post} if post else {})
