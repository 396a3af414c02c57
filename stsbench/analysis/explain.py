"""`explain`: every analysis of one or more runs in one go, and the page that shows them."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from stsbench.analysis import density, geometry, retrieve, spectrum
from stsbench.analysis.length_bias import verb as length_bias
from stsbench.analysis.repetition_bias import verb as repetition_bias
from stsbench.base.errors import UserError
from stsbench.base.files import atomic_path
from stsbench.base.progress import Progress, silent
from stsbench.data.benchmarks import load_sample
from stsbench.records.record import RunRecord
from stsbench.render.figures import FORMATS, save_figure
from stsbench.render.table import Table, render
from stsbench.scoring.sts import Bootstrap
from stsbench.scoring.subjects import Subject, Wanted, named_subjects

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = [
    "TITLES",
    "Bootstrap",
    "Part",
    "demand_format",
    "explain",
    "explain_each",
    "figure_beside",
    "write_page",
]

TITLES = {
    "length-bias": "Length bias",
    "geometry": "Alignment and uniformity",
    "spectrum": "Spectrum",
    "density": "Cosine densities",
    "repetition-bias": "Repetition bias",
    "retrieve": "Nearest neighbours",
}
"""The headings of the analyses, by the names of their commands."""

Failed = Callable[[str, UserError], None]


class Part(NamedTuple):
    """One analysis: the command's name, its tidy table, its tables for readers, and how to draw it."""

    name: str
    frame: "pd.DataFrame"
    views: list[Table]
    draw: "Callable[[], Figure]"


def explain(runs: Wanted | Sequence[Wanted] | None = None, **options: Any) -> "dict[str, pd.DataFrame]":
    """Return the tidy table of every analysis of some runs or models, by the name of its command.

    Args:
        runs: records or their folders; or encoders, or what `load` makes one of.
        options: as in `explain_each`.

    Raises:
        UserError: if one of them is not possible.
    """
    return {part.name: part.frame for part in explain_each(runs, **options)}


def _raise(_name: str, error: UserError) -> None:
    raise error


def explain_each(
    runs: Wanted | Sequence[Wanted] | None = None,
    *,
    corpus: str | Path = "sample",
    retrieve_from: str | Path = "sample",
    query: str | Sequence[str] = (),
    published: bool = False,
    bootstrap: Bootstrap | None = None,
    data_dirs: Sequence[str | Path] = (),
    failed: Failed = _raise,
    progress: Progress = silent,
    **options: Any,
) -> Iterator[Part]:
    """Yield every analysis of some runs or models, one after the other, each with its own defaults.

    Args:
        runs: records or their folders; or encoders, or what `load` makes one of.
        corpus: of the repetition probe: a file with one sentence a line, or `sample`.
        retrieve_from: the corpus that neighbours are looked for in.
        query: sentences to look for neighbours of; by default one each from three parts of the sample.
        published: whether the papers' rows stand beside them.
        bootstrap: resamples, level and seed of the intervals.
        data_dirs: folders to look for data in.
        failed: told which analysis was not possible, and why; by default that ends all.
        progress: told how far it is.
        options: how to load models, as in `load`.
    """
    subjects: list[Subject] = list(named_subjects(runs, **options).values())
    data: dict[str, Any] = {"data_dirs": data_dirs}
    intervals: dict[str, Any] = {"published": published, "bootstrap": bootstrap}
    asked = [query] if isinstance(query, str) else list(query)
    todo: dict[str, tuple[ModuleType, Callable[..., pd.DataFrame]]] = {
        "length-bias": (length_bias, partial(length_bias.length_bias, **intervals, **data)),
        "geometry": (geometry, partial(geometry.geometry, **data)),
        "spectrum": (spectrum, partial(spectrum.spectrum, **data)),
        "density": (density, partial(density.density, **data)),
        "repetition-bias": (
            repetition_bias,
            partial(repetition_bias.repetition_bias, corpus=corpus, **intervals),
        ),
        "retrieve": (retrieve, partial(retrieve.retrieve, query=asked or _queries(), corpus=retrieve_from)),
    }
    for name, (module, analyse) in todo.items():
        try:
            frame = analyse(subjects, progress=progress)
        except UserError as error:
            failed(name, error)
            continue
        yield Part(name, frame, module.views(frame), partial(module.figure, frame))


def _queries() -> list[str]:
    pairs = load_sample().pairs
    return [str(text) for text in pairs.drop_duplicates("subset")["sentence1"].head(3)]


def figure_beside(path: Path, name: str) -> Path:
    """Return the file for one figure of several: its name before the ending.

    >>> figure_beside(Path("out.png"), "geometry").name
    'out-geometry.png'
    """
    return path.with_name(f"{path.stem}-{name}{path.suffix}")


def demand_format(kind: str) -> None:
    """Raise unless figures can be written so.

    Raises:
        UserError: naming the formats that there are.
    """
    if kind not in FORMATS:
        raise UserError(f"figures as {kind!r}: choose one of {', '.join(FORMATS)}.")


def write_page(
    parts: Sequence[Part], runs: Sequence[Wanted], folder: Path, *, kind: str = "png", omitted: Sequence[str] = ()
) -> Path:
    """Write a folder with a page of all tables and figures, the figures, and every tidy table as CSV.

    Args:
        parts: the analyses.
        runs: what was analysed, for the signatures of the records among them.
        folder: where to.
        kind: of the figures: `png`, `svg` or `pdf`.
        omitted: a sentence for each analysis that was not possible.

    Returns:
        The page, `README.md` in the folder.

    Raises:
        UserError: if there is no such kind of figure, or the folder cannot be written.
    """
    demand_format(kind)
    folder = folder.expanduser()
    lines = ["# What is behind the scores", ""]
    for label, subject in named_subjects(runs).items() if runs else ():
        if isinstance(subject, RunRecord):
            lines += [f"- {label}: `{subject.signatures[0]}`"]
    lines += [*(f"- not possible: {sentence}" for sentence in omitted)]
    for part in parts:
        figure = save_figure(part.draw(), folder / f"{part.name}.{kind}")
        with atomic_path(folder / f"{part.name}.csv") as path:
            path.write_text(render(part.frame, "csv") + "\n", encoding="utf-8", newline="")
        lines += ["", f"## {TITLES[part.name]}", ""]
        for view in part.views:
            lines += [render(view.frame, "markdown", view.decimals, view.caption), ""]
        lines += [f"![{TITLES[part.name]}]({figure.name})", "", f"All of it: [{part.name}.csv]({part.name}.csv)"]
    page = folder / "README.md"
    with atomic_path(page) as path:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return page
