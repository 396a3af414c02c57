"""The command of each analysis, made from its parameters, and `stsbench explain`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, make_dataclass
from inspect import cleandoc
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stsbench.analysis import analysis
from stsbench.base.errors import UserError
from stsbench.cli.options import (
    DataDirs,
    FigureChoice,
    IntervalChoice,
    Output,
    OwnTexts,
    expand,
    names,
    numbers,
)
from stsbench.cli.output import print_lines, print_next, print_notes, print_result, progress_bars
from stsbench.encoders.use import Use
from stsbench.encoders.use import option_of as option_of_use

if TYPE_CHECKING:
    from stsbench.analysis.inputs import Parameter
    from stsbench.render.table import Result
    from stsbench.scoring.subjects import Subject, Wanted


@dataclass(frozen=True)
class Subjects:
    """The runs and models to analyse."""

    runs: Annotated[
        list[str] | None, typer.Argument(help="Run folders; their models' vectors come from the cache.")
    ] = None
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            help="A model without a run, as in `stsbench run`; by default `minilm`. Repeatable.",
            rich_help_panel="What is analysed",
        ),
    ] = None

    @property
    def words(self) -> list[str]:
        """The runs and models as typed."""
        return [*(self.runs or ()), *(word for model in self.model or () for word in ("--model", model))]

    def load(self, use: Use) -> "list[Wanted]":
        """Returns the folders of the runs, then the loaded models, by default the packaged one."""
        from stsbench.encoders.load import load_with
        from stsbench.scoring.subjects import default_model, is_run

        runs, models = self.runs or [], self.model or []
        for run in runs:
            if not is_run(run):
                raise UserError(
                    f"no run record at {run}: `stsbench run --out {run}` writes one; give a model with --model."
                )
        if not (runs or models):
            models = [default_model()]
        if use.changed() and all(map(is_run, models)):
            option = option_of_use(use.changed()[0])
            raise UserError(
                f"{option} applies only to models that are loaded, but only runs were given: leave it out, or "
                "name a model with --model."
            )
        return [*runs, *(model if is_run(model) else load_with(model, use) for model in models)]


def command_of(name: str) -> Callable[..., None]:
    """Returns the command of an analysis, with its parameters as options."""
    cls = analysis(name)
    parameters = {key: about for key, about in cls.parameters.items() if key != "intervals"}

    def analyse(
        subjects: Subjects,
        own: Any,
        use: Use = Use(),
        figure: FigureChoice = FigureChoice(),
        output: Output = Output(),
    ) -> None:
        from stsbench.analysis.explain import Explanation
        from stsbench.analysis.inputs import analysable
        from stsbench.scoring.settings import Intervals

        values = {key: parsed(key, about, getattr(own, key)) for key, about in parameters.items()}
        if "intervals" in cls.parameters:
            values["intervals"] = Intervals(own.dependence)
        with progress_bars(quiet=output.quiet) as progress:
            named = analysable(subjects.load(use))
            result = cls.verb(list(named.values()), progress=progress, **values)
        if not (values.get("task") or values.get("tasks")):
            note_sample(result, named, output)
        print_result(result, output, figure=figure)
        models = cls.answer.of(result.headline).dropna().index
        if len(models) and output.style == "terminal":
            print_lines("", Explanation({name: result}, subjects=dict.fromkeys(models)).sentence)
        print_next(output, "explain", *subjects.words)

    summary = cleandoc(cls.__doc__ or "").partition("\nReturns:")[0]
    examples = "\n".join(f"* `{example}`" for example in cls.examples)
    analyse.__doc__, analyse.__name__ = f"{summary}\nExamples:\n{examples}", name
    fields = [option_of(key, about) for key, about in parameters.items()]
    bases = (IntervalChoice,) if "intervals" in cls.parameters else ()
    analyse.__annotations__["own"] = make_dataclass("Own", fields, bases=bases, frozen=True)
    return expand(analyse)


def note_sample(result: "Result", subjects: Mapping[str, "Subject | None"], output: Output) -> None:
    """Prints a note if the sample replaces missing data."""
    from stsbench.records.record import RunRecord
    from stsbench.scoring.tasks import SAMPLE, SAMPLE_USED

    records = [subject for subject in subjects.values() if isinstance(subject, RunRecord)]
    if SAMPLE in set(result.frame.get("task", ())) - {score.task for of in records for score in of.scores}:
        print_notes(SAMPLE_USED, quiet=output.quiet)


def option_of(name: str, about: "Parameter") -> tuple[str, Any, Any]:
    """Returns the name, the annotation and the default of the option for a parameter."""
    kind, default = about.kind or type(about.default), about.default
    if default == ():
        kind, default = str if about.example else list[kind], None  # type: ignore[valid-type]
    limits: dict[str, Any] = {}
    if about.limits and not about.example:
        limits = {"min": about.limits[0], "max": about.limits[1]}
    flags = about.flags or (f"--{name.replace('_', '-')}",)
    option = typer.Option(*flags, help=about.help, rich_help_panel=about.panel, **limits)
    return name, Annotated[kind if default is not None else kind | None, option], field(default=default)


def parsed(name: str, about: "Parameter", value: Any) -> Any:
    """Returns the value of a parameter from that of its option; lists are split at commas."""
    if about.example:
        return numbers(value, f"--{name}", about.example) if about.kind is int else names(value)
    return about.default if value is None else value


@expand
def explain(
    subjects: Subjects,
    corpus: Annotated[
        str, typer.Option(help="The corpus of `repetition-bias`, `compress` and `retrieve`: a sentence per line.")
    ] = "sample",
    query: Annotated[
        list[str] | None, typer.Option(help="A query for `retrieve`; by default three of the sample. Repeatable.")
    ] = None,
    published: Annotated[bool, typer.Option("--published", help="Add the rows of the papers.")] = False,
    data: OwnTexts = None,
    data_dirs: DataDirs = None,
    intervals: IntervalChoice = IntervalChoice(),
    use: Use = Use(),
    output: Output = Output(),
) -> None:
    """Answer the question of each analysis in one line, and mark answers outside the range of reference models.

    Examples:
    * `stsbench explain runs/minilm-avg-sts`
    * `stsbench explain runs/a runs/b --corpus wiki.txt`
    """
    from stsbench.analysis.explain import explain as explain_runs
    from stsbench.scoring.settings import Intervals

    with progress_bars(quiet=output.quiet) as progress:
        explanation = explain_runs(
            subjects.load(use),
            corpus=corpus,
            query=query or (),
            published=published,
            data=data or (),
            intervals=Intervals(intervals.dependence),
            data_dirs=data_dirs or (),
            progress=progress,
        )
    note_sample(explanation, explanation.subjects, output)
    print_result(explanation, output)
    print_next(output, "explain", "NAME", *subjects.words)
    if explanation.missing:
        raise UserError(*explanation.left_out())
