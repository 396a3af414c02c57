"""A run against published rows: what it has for each value, which rows to expect, whether it reproduces them."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.encoders.protocol import WITH_POOLINGS
from stsbench.encoders.use import USUAL
from stsbench.encoders.use_text import shown
from stsbench.judging.best_of import BestOf
from stsbench.judging.verdicts import CellCheck, Check, FieldDifference, in_words, within
from stsbench.published import catalogue
from stsbench.published.catalogue import PublishedRow, checkpoint_of_system, checkpoints, row, rows
from stsbench.published.measured import seeded_systems, seeds
from stsbench.published.schema import KnownCheckpoint, PublishedCell, Setting
from stsbench.records.labels import task_labels
from stsbench.records.parts import Score, plain_mean
from stsbench.records.record import RunRecord
from stsbench.records.signature import UNKNOWN, Signature
from stsbench.scoring.settings import AGGREGATIONS, TEXTS
from stsbench.scoring.tasks import STS_TASKS, TRANSFER_TASKS
from stsbench.statistics.correlations import CORRELATIONS
from stsbench.statistics.similarity import SIMILARITIES

AUTO = "auto"
"""Stands for the rows of the run's own checkpoint."""

TOLERANCE = 0.05
"""How many points a score may be off by default: what another machine, library or rounding can do."""

AVERAGES = {"Avg. STS": STS_TASKS, "Avg. transfer": TRANSFER_TASKS}
"""What published averages are the mean of."""

_METRICS = {"acc": "accuracy", "devacc": "accuracy"}
"""What papers call statistics that records call otherwise: an accuracy is on test, or the choice was by it."""


@dataclass(frozen=True)
class MeasuredScore:
    """One number of a record that papers print.

    Attributes:
        of: the score that it is a number of.
        statistic: which number: the headline's, or what follows it (`devacc`).
        choices: what fixes it, by the names of a published setting; `data` is the status of the files.
    """

    of: Score
    statistic: str
    choices: Mapping[str, str]

    @property
    def score(self) -> float | None:
        """On the scale from 0 to 100; None where it is undefined."""
        number = self.of.number(self.statistic)
        return None if number is None or number.value is None else 100 * number.value


def measured_scores(record: RunRecord) -> Sequence[MeasuredScore]:
    """Return the numbers of a record that papers print: each headline, and what follows it."""
    return [
        MeasuredScore(score, statistic, _choices(score, statistic))
        for score in record.scores
        for statistic in filter(None, (score.statistic, score.about.below))
        if score.number(statistic) is not None
    ]


def _choices(score: Score, statistic: str) -> Mapping[str, str]:
    """Return what fixes a number, by the names of a published setting."""
    signature = Signature.parse(score.signature)
    split = signature.split if score.training is None else "dev" if statistic == score.about.below else "test"
    choices = {"split": split, "metric": _METRICS.get(statistic, statistic), "text": score.text}
    if score.about.by_similarity:
        choices["similarity"] = signature.similarity
    elif score.training is not None:
        choices["classifier"] = score.training.method
    if score.training is None and len(score.subsets) != 1:
        # Over a single subset every aggregation is the same number. (An imported task may name none.)
        choices["aggregation"] = signature.aggregation
    return {**choices, "data": score.data.status}


_FIELDS = ("split", "aggregation", "metric", "similarity", "text")

_CHOICES: Mapping[str, Collection[str]] = {
    "aggregation": AGGREGATIONS,
    "metric": CORRELATIONS,
    "similarity": SIMILARITIES,
    "text": TEXTS,
}
"""What a person can measure by: a published metric may be none of these."""

_CATALOGUED = {"modified": "not the catalogued files", "user": "a file of one's own"}


@dataclass(frozen=True)
class Fit:
    """What a record has for a published value's setting.

    Attributes:
        value: on the scale from 0 to 100; None where it was not measured or is undefined.
        scores: what it is the value, or the mean, of.
        differences: the choices that keep it from meaning what the setting says.
        missing: the tasks that were not measured.
    """

    value: float | None
    scores: tuple[MeasuredScore, ...]
    differences: tuple[FieldDifference, ...] = ()
    missing: tuple[str, ...] = ()


def fitting(setting: Setting, scores: Sequence[MeasuredScore]) -> Fit:
    """Return what was measured of a setting, most like it: one score, or the mean that an average is of."""
    parts = [(part, _closest(part, scores)) for part in _parts(setting)]
    measured = [(part, score) for part, score in parts if score is not None]
    fitted = tuple(score for _, score in measured)
    gaps = tuple(dict.fromkeys(gap for part, score in measured for gap in _differences(part, score)))
    missing = tuple(part.task for part, score in parts if score is None)
    value = None if missing else plain_mean([score.score for score in fitted])
    return Fit(value, fitted, gaps, missing)


def _parts(setting: Setting) -> list[Setting]:
    """Return the settings of the scores that a value is of: itself, or those that an average is the mean of."""
    tasks = AVERAGES.get(setting.task)
    return [setting] if tasks is None else [setting.model_copy(update={"task": task}) for task in tasks]


def open_fields(settings: Iterable[Setting], scores: Sequence[MeasuredScore]) -> list[str]:
    """Return what scores match in only because somebody leaves it open, each thing once with its tasks."""
    parts = {part.task: part for setting in settings for part in _parts(setting)}
    tasks: dict[tuple[str, str], list[str]] = {}
    for task, part in parts.items():
        score = _closest(part, scores)
        for field in _open_fields(part, score) if score else ():
            tasks.setdefault(field, []).append(task)
    return [
        f"{name}: {why}" if len(of) == len(parts) else f"{name} ({', '.join(of)}): {why}"
        for (name, why), of in tasks.items()
    ]


def _closest(setting: Setting, scores: Iterable[MeasuredScore]) -> MeasuredScore | None:
    """Return the score of a setting's task that was taken most like it; None if the task was not measured."""
    of_task = [score for score in scores if score.of.task == setting.task]
    return min(of_task, key=lambda score: len(_differences(setting, score)), default=None)


@dataclass(frozen=True)
class Beside:
    """The row to expect of a published system, and those of its values that a record's own compare with.

    Attributes:
        row: the row.
        values: by the kind and the name of a task, or of the average over all of the record's tasks of a kind, the
            printed value x 100.
    """

    row: PublishedRow
    values: Mapping[tuple[str, str], float]


def published_beside(record: RunRecord) -> Iterator[Beside]:
    """Yield the row to expect of each published system that has a value which compares with one of a record's."""
    scores = measured_scores(record)
    labels = dict(zip([score.key for score in record.scores], task_labels(record.scores), strict=True))
    for system in catalogue.systems().values():
        if not system.row:
            continue
        values: dict[tuple[str, str], float] = {}
        for cell in filter(_is_score, rows()[system.row].cells):
            fit = fitting(cell.setting, scores)
            if cell.score is None or fit.missing or fit.differences or not fit.scores:
                continue
            of = [score.of for score in fit.scores]
            if any(score.statistic != score.of.statistic for score in fit.scores):
                continue
            if cell.setting.task not in AVERAGES:
                values[of[0].kind, labels[of[0].key]] = cell.score
            elif {score.key for score in of} == {score.key for score in record.scores_of(of[0].kind)}:
                values[of[0].kind, of[0].about.average] = cell.score
        if values:
            yield Beside(rows()[system.row], values)


def _differences(setting: Setting, score: MeasuredScore) -> tuple[FieldDifference, ...]:
    """Return the fields that keep a measured score from meaning what a published value does.

    What a paper leaves open and its authors' code does counts as stated; what nobody states, and what an
    imported file does not say, agrees with anything (see `open_fields`).
    """
    fields = [
        FieldDifference(name, here, there, _remedy(name, setting, there))
        for name in _FIELDS
        if (here := score.choices.get(name)) and (there := getattr(setting, name)) and here not in {there, UNKNOWN}
    ]
    if setting.group:
        fields.append(FieldDifference("group", "all of the data", setting.group))
    if (data := _CATALOGUED.get(score.choices["data"])) is not None:
        fields.append(FieldDifference("data", data, "the catalogued ones", "`stsbench data verify` names them"))
    return tuple(fields)


def _remedy(field: str, setting: Setting, there: str) -> str:
    stated = ["the paper leaves it open, its authors' code does not"] if field in setting.open else []
    if field == "split":
        stated.append(f"measure with --tasks {setting.task}:{there}")
    elif there in _CHOICES[field]:
        stated.append(f"measure with --{field} {there}")
    return "; ".join(stated)


def _open_fields(setting: Setting, score: MeasuredScore) -> Iterator[tuple[str, str]]:
    """Yield the fields that match only because somebody leaves them open, each with why, in words."""
    for name in (*_FIELDS, "data"):
        here, there = score.choices.get(name), "" if name == "data" else getattr(setting, name)
        if here is None:
            continue
        if here in {UNKNOWN, "unknown"}:
            yield name, "the imported file does not say" + (f"; {there} is expected" if there else "")
        elif name == "data":
            # No row names its files: they are taken to be the released ones, as the catalogued are.
            continue
        elif not there:
            yield name, f"the source does not state it; {here} here"
        elif name in setting.open:
            yield name, f"the paper leaves it open; taken as {there}"
    if "classifier" in setting.open and (here := score.choices.get("classifier")):
        yield "classifier", f"the paper leaves it open; {here} here"


def rows_to_check(record: RunRecord, against: str = AUTO) -> list[PublishedRow]:
    """Return the rows that a run should reproduce.

    Args:
        record: the run.
        against: `table/row`; a system or the Hub name of its checkpoint, which stands for all rows to expect of
            it; or `auto` for those of the run's own checkpoint.
    """
    if against != AUTO:
        named = row(against)
        return [named] if "/" in against and against in rows() else _measured(_of_system(named), record) or [named]
    known = known_checkpoint(record)
    if known is None:
        like = catalogue.checkpoint_named_like(record.model.name)
        hint = (
            f" It is named like {like.system}, but a name alone does not identify a model."
            if like and like.system
            else ""
        )
        raise UserError(
            f"no published row is known for {record.model.name}: name one with --against "
            f"(`stsbench published list rows` lists them).{hint}"
        )
    expected = [rows()[name] for name in known.expected]
    if not expected:
        raise UserError(f"no row of {known.name} is included: {known.note}")
    return _measured(expected, record) or expected


def known_checkpoint(record: RunRecord) -> KnownCheckpoint | None:
    """Return the known checkpoint that a run measured, of a system that is published.

    Its weights or its whole Hub name identify it. Where one checkpoint has rows with several poolings, the run's
    own pooling decides.
    """
    model = record.model
    known = catalogue.identified_checkpoint(
        model.name, pooling=model.use.pooling, weights_sha256=model.weights_sha256
    )
    return known if known is not None and known.system else None


def _of_system(named: PublishedRow) -> list[PublishedRow]:
    """Return the row, and the others to expect of the same checkpoint (of the transfer tasks, say)."""
    expected = [entry.expected for entry in checkpoints().values() if named.name in entry.expected]
    return [named, *(rows()[name] for name in dict.fromkeys(sum(expected, ())) if name != named.name)]


def _measured(candidates: Iterable[PublishedRow], record: RunRecord) -> list[PublishedRow]:
    """Return those rows that have a value for a task of the record."""
    tasks = {score.task for score in record.scores}
    return [row for row in candidates if any(cell.setting.task in tasks for cell in row.cells)]


def check_published(record: RunRecord, rows: Sequence[PublishedRow], tolerance: float = TOLERANCE) -> Check:
    """Compare a run with published rows.

    A score passes if it is within the tolerance (in points of 100) of the printed value, or prints as that does:
    82.449 is 82.4. Columns of differences and of counts are not looked at.
    """
    if not tolerance >= 0:
        raise UserError(f"a tolerance of {tolerance:g} points: give 0 or more.")
    scores = measured_scores(record)
    cells: list[CellCheck] = []
    notes: list[str] = []
    for expected in rows:
        model = _model_differences(expected, record)
        checked = [
            _check_cell(expected, cell, scores, model, tolerance) for cell in expected.cells if _is_score(cell)
        ]
        settings = [expected.cell(cell.name).setting for cell in checked if cell.difference is not None]
        remarks = [*open_fields(settings, scores), *_model_remarks(expected, record)]
        remarks += [*_place_among_seeds(expected, checked), *expected.row.notes, *expected.table.notes]
        of_row = f"{expected.name}: " if len(rows) > 1 else ""
        notes += [of_row + remark for remark in remarks if remark]
        cells += checked
    names = tuple(expected.name for expected in rows)
    return Check(record.model.name, names, "published", tolerance, tuple(cells), tuple(notes))


def _is_score(cell: PublishedCell) -> bool:
    return cell.setting.task != "delta" and cell.setting.unit != "pairs"


def _check_cell(
    row: PublishedRow,
    cell: PublishedCell,
    scores: Sequence[MeasuredScore],
    model: tuple[FieldDifference, ...],
    tolerance: float,
) -> CellCheck:
    expected = CellCheck(cell.column, cell.score, None, "no value", origin=row.name, source=cell.place)
    if cell.score is None:
        return replace(expected, reason="the row has no value")
    fit = fitting(cell.setting, scores)
    if fit.missing:
        return replace(expected, verdict="not measured", reason=f"not measured: {', '.join(fit.missing)}")
    value = fit.value
    if different := tuple(dict.fromkeys((*fit.differences, *model))):
        compared = replace(expected, verdict="not comparable", measured=value)
        return replace(compared, reason=in_words(different), differences=different)
    if value is None:
        return replace(expected, verdict="fail", reason="the correlation is undefined (constant similarities)")
    # A value passes if it prints as the published one does, too.
    passes = within(abs(value - cell.score), max(tolerance, cell.rounding))
    of_seeds = _seed_scores(row, cell)
    return replace(
        expected,
        measured=value,
        verdict="pass" if passes else "fail",
        seeds_below=None if of_seeds is None else float((of_seeds < value).mean()),
    )


_POOLED_HERE = {*WITH_POOLINGS, "static"}
"""Kinds of models whose pooling is known: of a callable, or of saved vectors, it is not."""

_UNSTATED = {
    "prompt": "",
    "prompts": "",
    "template": "",
    "precision": "fp32",
    "dimensions": None,
    "postprocessing": "",
    "attention": USUAL.attention,
    "attention_mask": USUAL.attention_mask,
}
"""What no row states, and what is usual: anything else is remarked on."""


def _checkpoint_of(row: PublishedRow) -> KnownCheckpoint | None:
    """Return how the system of a row is used; None if that is not known, or the row is of a variant of it."""
    return None if row.row.variant else checkpoint_of_system(row.row.system)


def _model_differences(row: PublishedRow, record: RunRecord) -> tuple[FieldDifference, ...]:
    """Return in what the model was used otherwise than for the row, of what a document states."""
    stated, model = _checkpoint_of(row), record.model
    if stated is None:
        return ()
    differences = []
    here, there = model.use.pooling, stated.pooling
    if here != there and "pooling" not in stated.unverified and model.kind in _POOLED_HERE:
        differences.append(FieldDifference("pooling", here, there, f"measure with --pooling {there}"))
    if _length_matters(stated, record):
        here, there = str(model.use.max_length), str(stated.max_length)
        differences.append(FieldDifference("max_length", here, there, f"measure with --max-length {there}"))
    return tuple(differences)


def _model_remarks(row: PublishedRow, record: RunRecord) -> Iterator[str]:
    """Yield what is to be known about how the model was used: what is open, and what is unusual."""
    stated, model = _checkpoint_of(row), record.model
    here = "" if model.use.pooling == UNKNOWN else f"; {model.use.pooling} here"
    if stated is None:
        what = f"a variant ({row.row.variant})" if row.row.variant else "a system without a known checkpoint"
        yield f"pooling: the row is of {what} and states none{here}"
    elif model.kind not in _POOLED_HERE:
        yield f"pooling: {stated.pooling} for the row; how {model.name} pools is not known"
    elif "pooling" in stated.unverified:
        yield f"pooling: no document gives the row's, {stated.pooling} is likely{here}"
    if stated and _lengths_differ(stated, record) and not _length_matters(stated, record):
        length = model.use.max_length
        yield f"max_length: {stated.max_length} for the row; {length} here, where no sentence was cut"
    # What else encodes is hashed otherwise than by the one file of weights.
    known = stated if model.kind in _POOLED_HERE else None
    compared = known.files_compared(model.weights_sha256, model.tokenizer_sha256) if known else ()
    for what, is_same, own in compared:
        same = "the" if is_same else f"other {what.split()[-1]} than the"
        yield f"{what}: {same} ones that the row was taken with (SHA-256 {own[:12]}…)"
    stated_use = {"template": row.usage.template, "precision": row.usage.precision}
    use = model.use
    # The text before sentences can go by task.
    on_tasks = dict.fromkeys(each.use.prompts or each.use.prompt or "" for each in record.signatures)
    used = {
        "prompt": ", ".join(shown("prompt", text) for text in on_tasks if isinstance(text, str) and text),
        "prompts": "; ".join(shown("prompts", texts) for texts in on_tasks if not isinstance(texts, str)),
        "template": getattr(use.template, "name", ""),
        "precision": use.computed_in,
        "dimensions": use.dimensions,
        "postprocessing": model.postprocessing,
        "attention": use.attention,
        "attention_mask": use.attention_mask,
    }
    for name, usual in _UNSTATED.items():
        there = stated_use.get(name, "")
        if (chosen := used[name]) not in {there or usual, UNKNOWN}:
            yield f"{name}: {f'{there} for the row' if there else 'the row states none'}; {chosen or 'none'} here"


def _lengths_differ(stated: KnownCheckpoint, record: RunRecord) -> bool:
    here, there = record.model.use.max_length, stated.max_length
    return here is not None and there is not None and here != there


def _length_matters(stated: KnownCheckpoint, record: RunRecord) -> bool:
    """Return whether the lengths differ and a sentence was cut here: where none was, longer reads the same."""
    return _lengths_differ(stated, record) and any(score.truncated_sentences for score in record.scores)


_SEEDED_COLUMNS = {"Avg. STS": "Avg."}
"""Where the seeds' columns are not called as the task is."""


def _seed_scores(row: PublishedRow, cell: PublishedCell) -> "pd.Series[float] | None":
    """Return what known seeds of a row's own system score, in its own configuration; None where none are known.

    They are by Spearman on test.

    >>> from stsbench.published.catalogue import row
    >>> average = row("unsup-simcse-bert-base")
    >>> float((_seed_scores(average, average.cell("Avg.")) < 76.25).mean())
    0.9
    """
    setting, system = cell.setting, row.row.system
    comparable = (setting.metric, setting.split, setting.group, setting.variant) == ("spearman", "test", "", "")
    if not comparable or system not in seeded_systems():
        return None
    scores = seeds(system)
    return scores.get(_SEEDED_COLUMNS.get(setting.task, setting.task))


def _place_among_seeds(row: PublishedRow, cells: Sequence[CellCheck]) -> Iterator[str]:
    """Yield in a sentence where the run lies among the seeds, if any are known.

    That is the place of the average if it was measured, else of the first score that was.
    """
    seeded = {cell.name: cell for cell in cells if cell.seeds_below is not None}
    published = [row.cell(name) for name in seeded]
    average = next((cell for cell in published if cell.setting.task == "Avg. STS"), next(iter(published), None))
    scores = None if average is None else _seed_scores(row, average)
    if average is None or scores is None:
        return
    cell = seeded[average.column]
    low, high, measured, expected = scores.min(), scores.max(), cell.measured or 0.0, cell.expected or 0.0
    best = best_of_seeds(scores.tolist(), expected)
    outside = "" if low <= measured <= high else "; the run lies outside their range"
    yield (
        f"the row is one training run: in {len(scores)} of an independent reproduction that differ in the seed "
        f"(raw text: close to the papers' protocol, not the same) {cell.name} is {scores.mean():.2f} ± "
        f"{scores.std():.2f}, from {low:.2f} to {high:.2f}; {_share(scores < measured)} are below the "
        f"{measured:.2f} measured here, {_share(scores < expected)} below the {expected:.2f} published"
        f"{best}{outside}"
    )


def best_of_seeds(scores: Sequence[float], published: float) -> str:
    """Return of how many seeds the best scores as much as a published value on average, as a clause; or nothing.

    >>> best_of_seeds([74.0, 75.0, 76.0], 75.5)
    ', which is what the best of 1 or 2 of them gives on average'
    """
    typical = BestOf("", "", tuple(scores), published).typical
    if typical is None:
        return ", which is more than the best of all of them"
    below, above = typical
    return f", which is what the best of {below} or {above} of them gives on average" if below else ""


def _share(below: "pd.Series[bool]") -> str:
    return f"{100 * float(below.mean()):.0f} %"
