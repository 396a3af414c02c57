"""`explain`: all analyses of one or more runs, and a page that shows them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from stsbench.analysis import analyses
from stsbench.analysis.base import Analysis
from stsbench.analysis.inputs import analysable
from stsbench.base.errors import UserError
from stsbench.base.files import atomic_path
from stsbench.base.progress import Progress, silent
from stsbench.records.record import RunRecord
from stsbench.render.figures import save_figure
from stsbench.render.table import Result, Tables
from stsbench.scoring.settings import Intervals
from stsbench.scoring.subjects import Wanted


@dataclass(frozen=True, eq=False)
class Explanation(Result):
    """The analyses of some runs or models.

    Attributes:
        parts: the analyses by name, in order.
        missing: the reason for each analysis that was not possible.
        signatures: the signatures of the records, by the names of their models.
    """

    parts: Mapping[str, Analysis]
    missing: Mapping[str, str] = field(default_factory=dict)
    signatures: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Analysis:
        return self.parts[name]

    @property
    def frame(self) -> pd.DataFrame:
        """The tidy tables of all analyses, which the column `analysis` names."""
        frames = [part.frame.assign(analysis=name) for name, part in self.parts.items()]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=["analysis"])

    def table(self) -> Tables:
        return Tables(table for part in self.parts.values() for table in part.table())

    def to_dict(self) -> dict[str, Any]:
        """Returns the rows of each analysis by name."""
        return {name: part.to_dict() for name, part in self.parts.items()}

    def left_out(self) -> list[str]:
        """Returns the reasons why analyses were not possible, each after their names."""
        names: dict[str, list[str]] = {}
        for name, reason in self.missing.items():
            names.setdefault(reason, []).append(name)
        return [f"{', '.join(of_reason)}: {reason}" for reason, of_reason in names.items()]

    def save(self, folder: str | Path) -> Path:
        """Writes a folder with a page of all tables and figures, the figures as PNG, and all tidy tables as CSV.

        Returns:
            The page, `README.md` in the folder.
        """
        folder = Path(folder).expanduser()
        lines = ["# What is behind the scores", ""]
        lines += [f"- {label}: `{signature}`" for label, signature in self.signatures.items()]
        lines += [f"- not possible: {line}" for line in self.left_out()]
        for name, part in self.parts.items():
            figure = save_figure(part.plot(), folder / f"{name}.png")
            with atomic_path(folder / f"{name}.csv") as path:
                path.write_text(part.to("csv") + "\n", encoding="utf-8", newline="")
            lines += ["", f"## {part.title}", "", part.table().to("markdown"), ""]
            lines += [f"![{part.title}]({figure.name})", "", f"All of it: [{name}.csv]({name}.csv)"]
        page = folder / "README.md"
        with atomic_path(page) as path:
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return page


def explain(
    runs: Wanted | Sequence[Wanted] | None = None,
    *,
    corpus: str | Path = "sample",
    query: str | Sequence[str] = (),
    published: bool = False,
    data: Sequence[str | Path] = (),
    intervals: Intervals | None = None,
    data_dirs: Sequence[str | Path] = (),
    leave_out: bool = False,
    progress: Progress = silent,
    finished: Callable[[Analysis], None] = lambda _: None,
) -> Explanation:
    """Run all analyses of runs or models, with their default parameters.

    Args:
        runs: records or their folders, or encoders or what `load` makes one of.
        corpus: the corpus of `repetition-bias`, `compress` and `retrieve`, one sentence a line, or `sample`.
        query: one or more queries for `retrieve`; by default three sentences of the sample.
        published: whether to add the rows of the papers.
        data: files with the sentences of runs on your own pairs; records hold no sentences.
        intervals: how intervals are computed.
        data_dirs: folders to look for data in.
        leave_out: whether `missing` records analyses that are not possible; by default they raise an error.
        progress: called with the progress.
        finished: called with each analysis when it is done.

    Raises:
        UserError: if a record was imported, or an analysis is not possible.

    >>> encode = lambda texts: [[len(text), text.count("e"), 1.0] for text in texts]
    >>> explain(encode, intervals=Intervals(None))["geometry"].frame["sentences"].tolist()
    [504]
    """
    subjects = analysable(runs)
    options: dict[str, Any] = {"corpus": corpus, "query": query, "published": published}
    options |= {"data": data, "intervals": intervals, "data_dirs": data_dirs}
    parts: dict[str, Analysis] = {}
    missing: dict[str, str] = {}
    shared: dict[str, Any] = {}
    for name, kind in analyses().items():
        try:
            part = kind(**{key: value for key, value in options.items() if key in kind.parameters})
            part.shared = shared
            parts[name] = part.run(list(subjects.values()), _within(name, progress))
            finished(part)
        except UserError as error:
            if not leave_out:
                raise
            missing[name] = str(error)
    records = {name: subject for name, subject in subjects.items() if isinstance(subject, RunRecord)}
    return Explanation(parts, missing, {name: str(record.signatures[0]) for name, record in records.items()})


def _within(name: str, progress: Progress) -> Progress:
    """Adds the name of the analysis to each stage: `geometry: encoding 12 sentences`."""
    return lambda stage, done, total: progress(f"{name}: {stage}", done, total)
