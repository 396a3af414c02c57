"""The command of each analysis, made from its parameters, and `stsbench explain`."""

from collections.abc import Callable
from dataclasses import dataclass, field, make_dataclass
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stsbench.analysis import ANALYSES, analysis
from stsbench.base.errors import UserError
from stsbench.cli.groups import expand
from stsbench.cli.options import (
    OUTPUT,
    DataDirs,
    FigureChoice,
    FigureSize,
    IntervalChoice,
    Output,
    OwnTexts,
    names,
    new_figure,
    new_folder,
    numbers,
)
from stsbench.cli.output import print_lines, print_notes, print_result, progress_bars
from stsbench.encoders.use import Use
from stsbench.encoders.use import option_of as option_of_use
from stsbench.render.figures import look, save_figure

if TYPE_CHECKING:
    from stsbench.analysis.base import Analysis
    from stsbench.analysis.parameters import Parameter
    from stsbench.scoring.subjects import Wanted


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

    def load(self, use: Use, *, has_others: bool = False) -> "list[Wanted]":
        """Returns the folders of the runs, then the models, loaded. The folder of a record stays a record.

        Args:
            use: how models are used.
            has_others: whether another option names models that are loaded with `use`.

        Raises:
            UserError: if a run is not a record, or `use` has options although there is no model to load.
        """
        from stsbench.encoders.load import load_with
        from stsbench.scoring.subjects import default_model, is_run

        runs, models = self.runs or [], self.model or []
        for run in runs:
            if not is_run(run):
                raise UserError(
                    f"no run record at {run}: `stsbench run --out {run}` makes one; a model goes to --model."
                )
        if not (runs or models or has_others):
            models = [default_model()]
        if use.changed() and not has_others and all(map(is_run, models)):
            option = option_of_use(use.changed()[0])
            raise UserError(
                f"{option} applies only to models that are loaded, but only runs were given: leave it out, or "
                "name a "
                "model with --model."
            )
        return [*runs, *(model if is_run(model) else load_with(model, use) for model in models)]


@dataclass(frozen=True)
class NoOptions:
    """The group of options of an analysis without them."""


def __getattr__(name: str) -> Callable[..., None]:
    if name not in ANALYSES:
        raise AttributeError(f"there is no analysis {name!r}")
    return command_of(analysis(name))


def command_of(cls: "type[Analysis]") -> Callable[..., None]:
    """Returns the command of an analysis, with its parameters as options."""
    options = cls.own_options()
    has_intervals = "intervals" in cls.parameters and cls.has_interval_options

    def analyse(
        subjects: Subjects,
        own: Any,
        intervals: IntervalChoice = IntervalChoice(),
        use: Use = Use(),
        figure: FigureChoice = FigureChoice(),
        output: Output = Output(),
    ) -> None:
        from stsbench.scoring.settings import Intervals

        typed = {name: getattr(own, name) for name in options}
        values = cls.from_options({name: parsed(name, about, typed[name]) for name, about in options.items()}, use)
        if has_intervals:
            values["intervals"] = Intervals(intervals.dependence)
        checkpoints = bool(typed.get("path"))
        with progress_bars(quiet=output.quiet) as progress:
            chosen = subjects.load(use, has_others=checkpoints)
            # Checkpoints alone need no default model.
            result = cls.verb(chosen, progress=progress, **values)
        by_task = {"task", "tasks"} & set(typed)
        names_data = any(typed[name] for name in by_task) or (subjects.runs and cls.measures_pairs)
        if by_task and not names_data and (result.frame["task"] == "sample").any():
            from stsbench.scoring.tasks import SAMPLE_USED

            print_notes(SAMPLE_USED, quiet=output.quiet)
        print_result(result, output, figure=figure)

    summary = cleandoc(cls.__doc__ or "").partition("\nReturns:")[0]
    examples = "\n".join(f"* `{example}`" for example in cls.examples)
    analyse.__doc__, analyse.__name__ = f"{summary}\nExamples:\n{examples}", cls.name
    fields = [(name, option_of(name, about), field(default=default_of(about))) for name, about in options.items()]
    analyse.__annotations__["own"] = make_dataclass("Own", fields, frozen=True)
    if not has_intervals:
        analyse.__annotations__["intervals"] = NoOptions
    return expand(analyse)


def default_of(about: "Parameter") -> Any:
    """Returns the default of an option; lists are None by default."""
    return None if about.default == () else about.default


def option_of(name: str, about: "Parameter") -> Any:
    """Returns the annotation of the option for a parameter."""
    kind = about.kind or type(about.default)
    if about.default == ():
        kind = str if about.example else list[kind]  # type: ignore[valid-type]
    kind = kind if default_of(about) is not None else kind | None
    limits: dict[str, Any] = {}
    if about.limits and not about.example:
        limits = {"min": about.limits[0], "max": about.limits[1]}
    flags = about.flags or (f"--{name.replace('_', '-')}",)
    return Annotated[kind, typer.Option(*flags, help=about.help, rich_help_panel=about.panel, **limits)]


def parsed(name: str, about: "Parameter", value: Any) -> Any:
    """Returns the value of a parameter from that of its option; lists are split at commas."""
    if not about.example:
        return about.default if value is None else value
    if about.example[0].isdigit():
        return numbers(value, f"--{name}", about.example)
    return names(value)


@expand
def explain(
    subjects: Subjects,
    corpus: Annotated[
        str,
        typer.Option(help="The corpus of `repetition-bias` and `compress`: one sentence a line, or `sample`."),
    ] = "sample",
    retrieve_from: Annotated[
        str, typer.Option(help="The corpus of `retrieve`: one sentence a line, or `sample`.")
    ] = "sample",
    query: Annotated[
        list[str] | None, typer.Option(help="A query for `retrieve`; by default three of the sample. Repeatable.")
    ] = None,
    published: Annotated[bool, typer.Option("--published", help="Add the rows of the papers.")] = False,
    data: OwnTexts = None,
    data_dirs: DataDirs = None,
    intervals: IntervalChoice = IntervalChoice(),
    use: Use = Use(),
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            callback=new_folder,
            help="The folder to write: a page, every figure, every table as CSV.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    figure_format: Annotated[
        str,
        typer.Option(help="The format of the figures in --out: `png`, `svg` or `pdf`.", rich_help_panel=OUTPUT),
    ] = "png",
    figure: Annotated[
        Path | None,
        typer.Option(
            callback=new_figure,
            help="Draw every figure: `out.png` gives `out-geometry.png` and so on.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    figure_size: FigureSize = "column",
    output: Output = Output(),
) -> None:
    """Run all analyses of runs or models, from length bias to nearest neighbours, with their default options.

    Examples:
    * `stsbench explain runs/minilm-avg-sts`
    * `stsbench explain runs/a runs/b --corpus wiki.txt --published --out reports/a-and-b`
    """
    from stsbench.analysis.explain import explain as explain_runs
    from stsbench.analysis.explain import require_kind
    from stsbench.scoring.settings import Intervals

    require_kind(figure_format)
    # On a terminal each table is printed as soon as it is ready; JSON and CSV are one document.
    at_once = output.style == "terminal" and not (out is not None and output.quiet)
    printed: list[str] = []

    def print_part(part: "Analysis") -> None:
        if at_once:
            with progress.aside():
                if printed:
                    print_lines()
                print_result(part, output)
            printed.append(part.title)

    with progress_bars(quiet=output.quiet) as progress:
        explanation = explain_runs(
            subjects.load(use),
            corpus=corpus,
            retrieve_from=retrieve_from,
            query=query or (),
            published=published,
            data=data or (),
            intervals=Intervals(intervals.dependence),
            data_dirs=data_dirs or (),
            leave_out=True,
            progress=progress,
            finished=print_part,
        )
    with look(figure_size):
        if out is not None:
            print_notes(f"written to {explanation.save(out, figure_format)}", quiet=output.quiet)
        if figure is not None:
            for name, part in explanation.parts.items():
                save_figure(part.plot(), figure.with_name(f"{figure.stem}-{name}{figure.suffix}"))
    if not at_once and (out is None or not output.quiet or output.style in {"json", "csv"}):
        print_result(explanation, output)
    if explanation.missing:
        raise UserError(*(f"{name}: {reason}" for name, reason in explanation.missing.items()))
