"""`stsbench show`, `stsbench import` and `stsbench export`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from stsbench.cli.options import Output, grouped, new_folder
from stsbench.cli.output import tell


@grouped
def show(
    runs: Annotated[list[Path], typer.Argument(help="Run folders or run.json files.")],
    subsets: Annotated[bool, typer.Option("--subsets", help="Print every subset too.")] = False,
    output: Output = Output(),
) -> None:
    """Print records again; several stand side by side if their protocols agree.

    Examples:
    * `stsbench show runs/minilm-avg-sts --subsets`
    * `stsbench show runs/a runs/b --latex`
    """
    from stsbench.records import show as verb

    verb.print_scores(verb.show(runs, subsets=subsets), output, as_list=len(runs) > 1)


@grouped
def import_(
    results: Annotated[
        Path,
        typer.Argument(help="SentEval's results saved as JSON, a JSON file of MTEB's, or a folder of those."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", callback=new_folder, help="Folder of the record.")],
    model: Annotated[str, typer.Option("--model", "-m", help="The model's name, if the files do not say.")] = "",
    aggregation: Annotated[
        str | None,
        typer.Option(help="Over subsets: `all`, `mean` or `wmean`. Default: `all` if it is there, else `wmean`."),
    ] = None,
    metric: Annotated[str, typer.Option(help="`spearman` or `pearson`.")] = "spearman",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace another measurement in that folder.")
    ] = False,
    output: Output = Output(),
) -> None:
    """Make a record of the results of another program: to check, show or compare.

    What those do not say (the data's files, the pooling) is marked as unknown.

    Examples:
    * `stsbench import results.json --out runs/senteval`
    * `stsbench import results/owner__model/revision --out runs/mteb`
    """
    _ = output.style  # Two formats at once are a mistake: better told before the work than after.
    from stsbench.records.imports.read import import_results
    from stsbench.records.provenance import command_line
    from stsbench.records.scores import Scores
    from stsbench.records.show import print_scores

    record = import_results(
        results,
        out=out,
        model=model,
        aggregation=aggregation,
        metric=metric,
        overwrite=overwrite,
        command=command_line(["stsbench", *sys.argv[1:]]),
    )
    print_scores(Scores([record]), output, as_list=False)
    tell(f"recorded in {record.folder}", quiet=output.quiet)


@grouped
def export(
    run: Annotated[Path, typer.Argument(help="A run folder or run.json file.")],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", callback=new_folder, help="Folder to write into; MTEB's cache of results."),
    ],
    model: Annotated[
        str, typer.Option("--model", "-m", help="The model's name for MTEB, `owner/name`. Default: the record's.")
    ] = "",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files with other scores in that folder.")
    ] = False,
    output: Output = Output(),
) -> None:
    """Write a record's STS scores as MTEB's results: a JSON file a task, `model_meta.json`, and their folders.

    What MTEB has no task for is left out, and said.

    Example: `stsbench export runs/minilm --model sentence-transformers/all-MiniLM-L6-v2 --out mteb`
    """
    _ = output.style
    from stsbench.cli.output import print_result
    from stsbench.records.export import export_results

    exported = export_results(run, out, model=model, overwrite=overwrite)
    print_result(exported, output)
    if output.style in {"json", "csv"}:
        # Rows cannot say what is none of them.
        tell(*exported.notes, quiet=output.quiet)
    tell(f"written to {exported.folder}", quiet=output.quiet)
