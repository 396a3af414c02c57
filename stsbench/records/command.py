"""`stsbench show` and `stsbench cite`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from stsbench.base.errors import UserError
from stsbench.cli.options import FORMATS, OUTPUT, Output, expand, new_folder, output_option
from stsbench.cli.output import print_data, print_lines, print_next, print_notes, print_result


@dataclass(frozen=True)
class ShownOutput(Output):
    """How scores are printed, or the files of MTEB that are written."""

    formats = (*FORMATS, "mteb")

    out: Annotated[
        Path | None, output_option("--out", "-o", callback=new_folder, help="The folder of `--format mteb`.")
    ] = None
    model: Annotated[
        str,
        output_option("--model", "-m", help="The name in MTEB's files, `owner/name`; by default the record's."),
    ] = ""
    overwrite: Annotated[
        bool, output_option("--overwrite", help="Replace MTEB's files with other scores in the folder.")
    ] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.format == "mteb") != (self.out is not None):
            raise UserError("--format mteb writes files into the folder --out: give both, or neither.")
        if self.out is None and (self.model or self.overwrite):
            raise UserError("--model and --overwrite apply to --format mteb: add it and --out, or leave them out.")


@expand
def show(
    runs: Annotated[list[Path], typer.Argument(help="Run folders or `run.json` files.")],
    subsets: Annotated[bool, output_option("--subsets", help="Add a table of every subset and metric.")] = False,
    output: ShownOutput = ShownOutput(),
) -> None:
    """Print recorded scores; several runs are shown side by side if their protocols agree.

    `--format mteb` writes the STS scores of a run as MTEB's results, a JSON file per task and `model_meta.json`.
    Tasks that MTEB does not have are left out and listed.

    Examples:
    * `stsbench show runs/minilm-avg-sts --subsets`
    * `stsbench show runs/a runs/b --latex`
    * `stsbench show runs/minilm --format mteb --model sentence-transformers/all-MiniLM-L6-v2 --out mteb`
    """
    if output.out is not None:
        _write_mteb(runs, output, output.out)
        return
    from stsbench.records.show import print_scores
    from stsbench.records.show import show as show_runs

    scores = show_runs(runs, subsets=subsets)
    print_scores(scores, output, as_list=len(scores.records) > 1)
    alone = "report" if scores.records[0].is_imported or not scores.records[0].scores_of("sts") else "explain"
    print_next(output, {1: alone, 2: "compare"}.get(len(runs), "rank"), *runs)


def _write_mteb(runs: list[Path], output: ShownOutput, out: Path) -> None:
    from stsbench.records.export import export_results

    if len(runs) > 1:
        raise UserError("--format mteb writes the results of one run: name one.")
    exported = export_results(runs[0], out, model=output.model, overwrite=output.overwrite)
    print_result(exported, Output(quiet=output.quiet))
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
