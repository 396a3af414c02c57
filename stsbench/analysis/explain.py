"""`explain`: every analysis of one or more runs in one go, and the page that shows them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from stsbench.analysis import analyses
from stsbench.analysis.inputs import analysable, sharing
from stsbench.analysis.result import AnalysisResult
from stsbench.base.errors import UserError
from stsbench.base.files import atomic_path
from stsbench.base.progress import Progress, silent
from stsbench.base.words import storable, suggestion
from stsbench.data.benchmarks import load_sample
from stsbench.records.record import RunRecord
from stsbench.render.figures import FORMATS, save_figure
from stsbench.render.result import Result
from stsbench.render.table import Tables
from stsbench.scoring.settings import Intervals
from stsbench.scoring.subjects import Wanted


@dataclass(frozen=True, eq=False)
class Explanation(Result):
    """The analyses of some runs or models.

    Attributes:
        parts: the results by the names of their commands, in their order.
        missing: for each analysis that was not possible, why.
        signatures: of the records among what was analysed, by their models' names.
    """

    parts: Mapping[str, AnalysisResult]
    missing: Mapping[str, str] = field(default_factory=dict)
    signatures: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> AnalysisResult:
        """Return the result of one analysis."""
        return self.parts[name]

    @property
    def frame(self) -> pd.DataFrame:
        """The tidy tables below one another; the column `analysis` says which is which."""
        frames = [part.frame.assign(analysis=name) for name, part in self.parts.items()]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=["analysis"])

    def table(self) -> Tables:
        """Return the tables of all analyses."""
        return Tables(table for part in self.parts.values() for table in part.table())

    def to_dict(self) -> dict[str, Any]:
        """Return the rows of each analysis by its name."""
        return {name: part.to_dict() for name, part in self.parts.items()}

    def left_out(self) -> list[str]:
        """Return each reason for which analyses were not possible, after the names of these."""
        names: dict[str, list[str]] = {}
        for name, reason in self.missing.items():
            names.setdefault(reason, []).append(name)
        return [f"{', '.join(those)}: {reason}" for reason, those in names.items()]

    def save(self, folder: str | Path, kind: str = "png") -> Path:
        """Write a folder with a page of all tables and figures, the figures, and every tidy table as CSV.

        Args:
            folder: where to.
            kind: of the figures: `png`, `svg` or `pdf`.

        Returns:
            The page, `README.md` in the folder.

        Raises:
            UserError: if there is no such kind of figure, or the folder cannot be written.
        """
        require_kind(kind)
        folder = Path(folder).expanduser()
        lines = ["# What is behind the scores", ""]
        lines += [f"- {label}: `{signature}`" for label, signature in self.signatures.items()]
        lines += [f"- not possible: {storable(line)}" for line in self.left_out()]
        for name, part in self.parts.items():
            figure = save_figure(part.plot(), folder / f"{name}.{kind}")
            with atomic_path(folder / f"{name}.csv") as path:
                path.write_text(part.to("csv") + "\n", encoding="utf-8", newline="")
            lines += ["", f"## {part.title}", "", part.table().to("markdown"), ""]
            lines += [f"![{part.title}]({figure.name})", "", f"All of it: [{name}.csv]({name}.csv)"]
        page = folder / "README.md"
        with atomic_path(page) as path:
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return page


def require_kind(kind: str) -> None:
    """Refuse figures of a format that there is not."""
    if kind not in FORMATS:
        raise UserError(f"figures as {kind!r}: {suggestion(kind, FORMATS)}")


def explain(
    runs: Wanted | Sequence[Wanted] | None = None,
    *,
    corpus: str | Path = "sample",
    retrieve_from: str | Path = "sample",
    query: str | Sequence[str] = (),
    published: bool = False,
    data: Sequence[str | Path] = (),
    intervals: Intervals | None = None,
    data_dirs: Sequence[str | Path] = (),
    leave_out: bool = False,
    progress: Progress = silent,
    finished: Callable[[AnalysisResult], None] = lambda _: None,
) -> Explanation:
    """Make every analysis of some runs or models, each with its own defaults.

    Args:
        runs: records or their folders; or encoders, or what `load` makes one of.
        corpus: the corpus of the repetition probe, and the other sentences of `compress`: a file with one sentence
            a line, or `sample`.
        retrieve_from: the corpus in which neighbours are looked for: a file with one sentence a line, or `sample`.
        query: a sentence to look for neighbours of, or several; by default one each from three parts of the
            sample.
        published: whether to put the papers' rows beside the results.
        data: files with the sentences of runs on pairs of your own; repeatable. Records hold no sentences.
        intervals: how intervals are computed.
        data_dirs: folders to look for data in.
        leave_out: whether an analysis that is not possible is left out, and told in `missing`; by default it ends
            all.
        progress: told how far it is, by analysis.
        finished: given each analysis when it is done.

    Raises:
        UserError: if a record was imported, which has nothing to analyse; or if an analysis is not possible.

    >>> encode = lambda texts: [[len(text), text.count("e"), 1.0] for text in texts]
    >>> explain(encode, intervals=Intervals(None))["geometry"].frame["sentences"].tolist()
    [504]
    """
    subjects = analysable(runs)
    queries = [query] if isinstance(query, str) else list(query)
    options = {
        "corpus": corpus,
        "retrieve_from": retrieve_from,
        "query": queries or _queries(),
        "published": published,
        "data": data,
        "intervals": intervals,
        "data_dirs": data_dirs,
    }
    parts, missing = {}, {}
    with sharing():
        for name, command in analyses().items():
            try:
                parts[name] = command.verb(
                    list(subjects.values()), progress=_within(name, progress), **command.explained(options)
                )
                finished(parts[name])
            except UserError as error:
                if not leave_out:
                    raise
                missing[name] = str(error)
    records = {name: subject for name, subject in subjects.items() if isinstance(subject, RunRecord)}
    return Explanation(parts, missing, {name: str(record.signatures[0]) for name, record in records.items()})


def _within(name: str, progress: Progress) -> Progress:
    """Return a progress that says which analysis a stage is of: `geometry: encoding 12 sentences`."""
    return lambda stage, done, total: progress(f"{name}: {stage}", done, total)


def _queries() -> list[str]:
    pairs = load_sample().pairs
    return [str(text) for text in pairs.drop_duplicates("subset")["sentence1"].head(3)]
