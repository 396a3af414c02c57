"""`stsbench spectrum`."""

from functools import partial

from stsbench.cli.analysis import (
    FigureFile,
    Models,
    Pooling,
    Runs,
    Split,
    Task,
    Text,
    print_analysis,
    tell_of_sample,
    wanted,
)
from stsbench.cli.models import DataDirs, Device
from stsbench.cli.output import (
    CsvFlag,
    JsonFlag,
    LatexFlag,
    MarkdownFlag,
    QuietFlag,
    chosen_style,
    progress_bars,
)


def spectrum(
    runs: Runs = None,
    model: Models = None,
    pooling: Pooling = "auto",
    device: Device = "auto",
    task: Task = None,
    split: Split = None,
    text: Text = "senteval",
    data_dir: DataDirs = None,
    figure: FigureFile = None,
    json: JsonFlag = False,
    csv: CsvFlag = False,
    markdown: MarkdownFlag = False,
    latex: LatexFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Measure the singular values of the sentence vectors of STS-B, and how many directions they amount to.

    Effective rank, shares of the top directions, isotropy; uncentred and centred. The figure is the singular
    values in order; JSON and CSV have them all.

    Examples:
    * `stsbench spectrum runs/a runs/b --figure spectrum.pdf`
    * `stsbench spectrum --model minilm --task sample --csv`
    """
    style = chosen_style(json=json, csv=csv, markdown=markdown, latex=latex)
    from stsbench.workflows import spectrum as workflow

    with progress_bars(quiet=quiet) as progress:
        frame = workflow.spectrum(
            wanted(runs, model),
            task=task,
            split=split,
            text=text,
            data_dirs=data_dir or (),
            progress=progress,
            pooling=pooling,
            device=device,
        )
    tell_of_sample(frame, task, quiet=quiet)
    draw = partial(workflow.figure, frame)
    print_analysis(frame, workflow.views(frame), style, draw=draw, figure=figure, quiet=quiet)
