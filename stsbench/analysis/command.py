"""The commands that explain a model: one for each analysis that is registered, and `stsbench explain`."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from stsbench.analysis import ANALYSES, analysis
from stsbench.base.errors import UserError
from stsbench.base.options import OUTPUT, Help, Panel, Spelled, Written
from stsbench.cli.options import FigureChoice, IntervalChoice, Output
from stsbench.cli.output import print_result, progress_bars, say, tell
from stsbench.cli.verbs import Call, Verb
from stsbench.encoders.use import Use
from stsbench.render.figures import FORMATS, look, save_figure

if TYPE_CHECKING:
    from stsbench.analysis.result import AnalysisCommand, AnalysisResult

_SUBJECTS = "What is analysed"

_NOT_ASKED = ("runs", *(field.name for field in fields(Use)))
"""Parameters of every analysis that are no options of its own: what is analysed, and how it is loaded."""


@dataclass(frozen=True)
class Subjects:
    """What is analysed."""

    runs: Annotated[
        list[str] | None,
        Spelled(),
        Help("Run folders. Their models' vectors come from the cache."),
    ] = None
    model: Annotated[
        list[str] | None,
        Spelled("--model", "-m"),
        Panel(_SUBJECTS),
        Help("A model without a run, named as in `stsbench run`. Repeatable. Default, with no run: `minilm`."),
    ] = None

    def named(self) -> list[str]:
        """Return what was named, runs first; refuse a run that is none."""
        from stsbench.scoring.subjects import runs_and_models

        return runs_and_models(self.runs or (), self.model or ())


def __getattr__(name: str) -> Callable[..., None]:
    if name not in ANALYSES:
        raise AttributeError(f"there is no analysis {name!r}")
    return command_of(name)


def command_of(name: str) -> Callable[..., None]:
    """Return the command of an analysis: its own options, and those that all analyses share."""

    def analyse(
        subjects: Subjects,
        asked: Call,
        own: "AnalysisCommand",
        use: Use,
        figure: FigureChoice = FigureChoice(),
        output: Output = Output(),
    ) -> None:
        with progress_bars(quiet=output.quiet) as progress:
            result = asked(runs=subjects.named(), progress=progress, **own.keywords(), **vars(use))
        is_chosen = own.names_data(asked.options, runs=bool(subjects.runs))
        if not is_chosen and (result.frame["task"] == "sample").any():
            from stsbench.scoring.tasks import SAMPLE_USED

            tell(SAMPLE_USED, quiet=output.quiet)
        print_result(result, output, figure=figure)

    command = analysis(name)
    place = f"{command.verb.__module__}:{command.verb.__name__}"
    analyse.__doc__, analyse.__name__ = command.__doc__, name
    analyse.__annotations__ |= {
        "asked": Annotated[Call, Verb(place, without=(*_NOT_ASKED, *command.without))],
        "own": command,
    }
    return analyse


class _ExplainOutput(Output):
    """How `explain` prints. In version 0.1 its `--format` was that of the figures, which it still takes."""

    def __post_init__(self) -> None:
        """Refuse what is a format neither of tables nor of figures."""
        if self.format not in FORMATS:
            super().__post_init__()


@dataclass(frozen=True)
class _ExplainFigures(FigureChoice):
    """Where `explain` draws its figures: into files beside one another, into the folder, or both."""

    figure: Annotated[
        Path | None,
        Written("figure"),
        Panel(OUTPUT),
        Help("Draw every figure into a file: `out.png` gives `out-geometry.png` and so on."),
    ] = None

    def __post_init__(self) -> None:
        """Take a size without a file: the figures of `--out` have it, too."""


def explain(
    subjects: Subjects,
    asked: Annotated[Call, Verb("stsbench.analysis.explain:explain", without=(*_NOT_ASKED, "leave_out"))],
    intervals: IntervalChoice = IntervalChoice(),
    use: Use = Use(),
    out: Annotated[
        Path | None, Panel(OUTPUT), Help("The folder to write: a page, every figure, every table as CSV.")
    ] = None,
    figure_format: Annotated[
        str, Panel(OUTPUT), Help("The format of the figures in --out: `png`, `svg` or `pdf`.")
    ] = "png",
    figure: _ExplainFigures = _ExplainFigures(),
    output: _ExplainOutput = _ExplainOutput(),
) -> None:
    """Explain runs: all analyses, from length bias to nearest neighbours, in one go.

    Each analysis has its command's own defaults.

    Examples:
    * `stsbench explain runs/minilm-avg-sts`
    * `stsbench explain runs/a runs/b --corpus wiki.txt --published --out reports/a-and-b`
    """
    if output.format in FORMATS:
        figure_format, output = output.format, replace(output, format=None)
    from stsbench.analysis.explain import require_kind
    from stsbench.scoring.settings import Intervals

    require_kind(figure_format)
    # A table for the screen is printed when it is done; JSON and CSV are whole, and a page stands in its folder.
    at_once = output.style == "terminal" and not (out is not None and output.quiet)
    printed: list[str] = []

    def print_part(part: "AnalysisResult") -> None:
        if at_once:
            with progress.aside():
                if printed:
                    say()
                print_result(part, output)
            printed.append(part.title)

    with progress_bars(quiet=output.quiet) as progress:
        explanation = asked(
            runs=subjects.named(),
            intervals=Intervals(intervals.dependence),
            leave_out=True,
            progress=progress,
            finished=print_part,
            **vars(use),
        )
    with look(figure.figure_size):
        if out is not None:
            tell(f"written to {explanation.save(out, figure_format)}", quiet=output.quiet)
        if (file := figure.figure) is not None:
            for name, part in explanation.parts.items():
                save_figure(part.plot(), file.with_name(f"{file.stem}-{name}{file.suffix}"))
    if not at_once and (out is None or not output.quiet or output.style in {"json", "csv"}):
        print_result(explanation, output)
    if explanation.missing:
        raise UserError(*(f"{name}: {reason}" for name, reason in explanation.missing.items()))
