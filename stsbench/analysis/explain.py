"""`explain`: all analyses of one or more runs, with one answer each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from stsbench.analysis import ANALYSES, analyses, analysis
from stsbench.analysis.base import Analysis, Row
from stsbench.analysis.geometry import score_beside
from stsbench.analysis.inputs import analysable
from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.records.kinds import ALL_TASKS, AVERAGE, STS
from stsbench.records.record import RunRecord
from stsbench.render.table import Result, Table, Tables
from stsbench.scoring.settings import Intervals
from stsbench.scoring.subjects import Subject, Wanted

# Parameters that may differ from their defaults and still be compared with references; tasks must match.
_FREE = {"tasks", "task", "data", "data_dirs", "intervals", "published"}


@cache
def references() -> pd.DataFrame:
    """Returns the answers of reference models: `analysis`, `tasks` (sorted, with commas), `model` and `value`."""
    with files("stsbench.analysis").joinpath("references.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, keep_default_na=False)


@dataclass(frozen=True, eq=False)
class Explanation(Result):
    """The analyses of some runs or models.

    Attributes:
        parts: the analyses by name, in order.
        missing: the reason for each analysis that was not possible.
        subjects: the runs and models by name; None if only the name is known.
    """

    parts: Mapping[str, Analysis]
    missing: Mapping[str, str] = field(default_factory=dict)
    subjects: Mapping[str, Subject | None] = field(default_factory=dict)

    @property
    def frame(self) -> pd.DataFrame:
        """The tidy tables of all analyses, which the column `analysis` names."""
        frames = [part.frame.assign(analysis=name) for name, part in self.parts.items()]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=["analysis"])

    @property
    def answers(self) -> pd.DataFrame:
        """The answer to each question by model, the references' `low` and `high`, and whether it is `unusual`."""
        rows = []
        for name, part in self.parts.items():
            options = [(getattr(part, key), of.default) for key, of in part.parameters.items() if key not in _FREE]
            has_defaults = all((value or ()) == (default or ()) for value, default in options)
            for model, value in part.answer.of(part.headline).items():
                of_model = part.frame[part.frame["model"] == model]
                tasks = sorted(set(of_model.get("task", ())) - {AVERAGE, ALL_TASKS})
                key = ",".join(tasks) if has_defaults else "other options"
                rows.append({"analysis": name, "tasks": key, "model": model, "value": value})
        known = references().groupby(["analysis", "tasks"])["value"].agg(low="min", high="max").reset_index()
        answers = pd.DataFrame(rows, columns=["analysis", "tasks", "model", "value"])
        answers = answers[answers["model"].isin(self.subjects)].merge(known, "left")
        # Other processors change the last digits.
        outside = np.maximum(answers["low"] - answers["value"], answers["value"] - answers["high"])
        return answers.assign(unusual=outside > 0.01 * (answers["high"] - answers["low"]))

    def table(self) -> Tables:
        """Returns a line per analysis: its question, each model's answer, and the range of the references."""
        lines: dict[str, Row] = {
            name: {"analysis": name, "question": analysis(name).answer.question, **dict.fromkeys(self.subjects)}
            for name in ANALYSES
            if name in self.parts or name in self.missing
        }
        answers = self.answers.dropna(subset="value")
        for row in answers.to_dict("records"):
            answer, line = analysis(row["analysis"]).answer, lines[row["analysis"]]
            numbers = (format(row[key], f"z{answer.number}") for key in ("value", "low", "high"))
            value, low, high = (number.replace("%", " %") for number in numbers)
            line[row["model"]] = " ".join(filter(None, [value, answer.unit, "*" * row["unusual"]]))
            if pd.notna(row["low"]):
                line["references"] = f"{low}..{high}"
        models = list(dict.fromkeys(references()["model"]))
        note = f"*: outside the range of {len(models)} reference models ({', '.join(models)})."
        if answers["low"].isna().all():
            note = "No reference models were measured on these tasks."
        return Tables([Table(pd.DataFrame(list(lines.values())), "; ".join(self._heads()), notes=(note,))])

    @property
    def sentence(self) -> str:
        """The question of one analysis with each model's answer."""
        line = self.table()[0].frame.iloc[0]
        answers = ", ".join(f"{line[model]} ({model})" for model in self.subjects)
        known = f"; reference models have {line['references']}" if "references" in line else ""
        return f"{line['question']} {answers}{known}."

    def _heads(self) -> Iterator[str]:
        """Yields each model with its tasks and score."""
        for name, subject in self.subjects.items():
            tasks = [score.task for score in subject.scores_of(STS)] if isinstance(subject, RunRecord) else []
            yield f"{name} on {', '.join(tasks)}: {score_beside(subject, tasks[0]):.2f}" if tasks else name

    def to_dict(self) -> dict[str, Any]:
        """Returns the rows of each analysis by name."""
        return {name: part.to_dict() for name, part in self.parts.items()}

    def left_out(self) -> list[str]:
        """Returns the reasons why analyses were not possible, each after their names."""
        reasons = pd.Series(self.missing, dtype=object)
        return [f"{', '.join(names.index)}: {reason}" for reason, names in reasons.groupby(reasons, sort=False)]


def explain(
    runs: Wanted | Sequence[Wanted] | None = None,
    *,
    corpus: str | Path = "sample",
    query: str | Sequence[str] = (),
    published: bool = False,
    data: Sequence[str | Path] = (),
    intervals: Intervals | None = None,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress = silent,
) -> Explanation:
    """Run all analyses of runs or models, with their default parameters.

    Args:
        runs: records or their folders, or encoders or what `load` makes one of.
        corpus: the corpus of `repetition-bias`, `compress` and `retrieve`, one sentence per line, or `sample`.
        query: one or more queries for `retrieve`; by default three sentences of the sample.
        published: whether to add the rows of the papers.
        data: files with the sentences of runs on your own pairs; records hold no sentences.
        intervals: how intervals are computed.
        data_dirs: folders to look for data in.
        progress: called with the progress.

    Raises:
        UserError: if a record was imported. Other analyses that are not possible are in `missing`.

    >>> encode = lambda texts: [[len(text), text.count("e"), 1.0] for text in texts]
    >>> explain(encode, intervals=Intervals(None)).parts["geometry"].frame["sentences"].tolist()
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
            parts[name] = part.run(
                list(subjects.values()), lambda stage, *of, name=name: progress(f"{name}: {stage}", *of)
            )
        except UserError as error:
            missing[name] = str(error)
    return Explanation(parts, missing, subjects)
