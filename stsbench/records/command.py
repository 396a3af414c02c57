"""`stsbench show` and `stsbench export`."""

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
