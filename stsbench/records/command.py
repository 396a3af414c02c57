"""`stsbench show`, `stsbench export` and `stsbench cite`."""

from pathlib import Path
from typing import Annotated

import typer

from stsbench.cli.groups import expand
from stsbench.cli.options import OUTPUT, Output, new_folder
from stsbench.cli.output import print_data, print_lines, print_notes, print_result


@expand
def show(
    runs: Annotated[list[Path], typer.Argument(help="Run folders or `run.json` files.")],
    subsets: Annotated[
        bool, typer.Option("--subsets", help="Add a table of every subset and metric.", rich_help_panel=OUTPUT)
    ] = False,
    output: Output = Output(),
) -> None:
    """Print recorded scores; several runs are shown side by side if their protocols agree.

    Examples:
    * `stsbench show runs/minilm-avg-sts --subsets`
    * `stsbench show runs/a runs/b --latex`
    """
    from stsbench.records.show import print_scores
    from stsbench.records.show import show as show_runs

    scores = show_runs(runs, subsets=subsets)
    print_scores(scores, output, as_list=len(scores.records) > 1)


@expand
def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder or `run.json`.")],
    out: Annotated[Path, typer.Option("--out", "-o", callback=new_folder, help="The folder to write.")],
    model: Annotated[
        str, typer.Option("--model", "-m", help="The model's name, `owner/name`; by default the record's.")
    ] = "",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files with other scores in the folder.")
    ] = False,
    output: Output = Output(),
) -> None:
    """Write a record's STS scores as MTEB results: a JSON file per task and `model_meta.json`.

    Tasks that MTEB does not have are left out and listed.

    Example: `stsbench export runs/minilm --model sentence-transformers/all-MiniLM-L6-v2 --out mteb`
    """
    from stsbench.records.export import export_results

    exported = export_results(run, out, model=model, overwrite=overwrite)
    print_result(exported, output)
    if output.style in {"json", "csv"}:
        print_notes(*exported.notes, quiet=output.quiet)
    print_notes(f"written to {exported.folder}", quiet=output.quiet)


@expand
def cite(
    paths: Annotated[list[Path], typer.Argument(metavar="RUNS...", help="Run folders or `run.json` files.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead.", rich_help_panel=OUTPUT)] = False,
) -> None:
    """Print the BibTeX entries of the models and tasks in some records.

    Example: `stsbench cite runs/minilm-avg-sts > references.bib`
    """
    from stsbench.records.show import cite as citations_of

    citations = citations_of(paths)
    if json:
        from json import dumps

        print_data(dumps(citations, indent=1, ensure_ascii=False))
        return
    for subject, citation in citations.items():
        # BibTeX reads an @ as the start of an entry, even in a comment.
        heading = f"% {subject}".replace("@", "(at)")
        if citation.startswith("@"):
            print_lines(heading)
            print_data(f"{citation}\n")
        else:
            print_lines(f"{heading}: {citation}".replace("@", "(at)"), "")
