"""`stsbench show`, `stsbench export` and `stsbench cite`."""

from pathlib import Path
from typing import Annotated

from stsbench.base.errors import UserError
from stsbench.base.options import OUTPUT, Help, Panel, Spelled, Written
from stsbench.cli.options import Output
from stsbench.cli.output import print_data, print_result, say, tell
from stsbench.cli.verbs import Call, Verb


def show(asked: Annotated[Call, Verb("stsbench.records.show:show")], output: Output = Output()) -> None:
    """Print records again; several stand side by side if their protocols agree.

    Examples:
    * `stsbench show runs/minilm-avg-sts --subsets`
    * `stsbench show runs/a runs/b --latex`
    """
    scores = asked()
    from stsbench.records.show import print_scores

    print_scores(scores, output, as_list=len(scores.records) > 1)


def export(
    runs: Annotated[
        list[Path],
        Spelled("RUN"),
        Help("A run folder or run.json; with --hub a checkpoint's folder, then runs of it for its card."),
    ],
    asked: Annotated[Call, Verb("stsbench.records.export:export_results", without=("run", "out"))],
    out: Annotated[
        Path | None,
        Spelled("--out", "-o"),
        Written("folder"),
        Help("The folder to write into, MTEB's cache of results; with --hub a new one, or none to look at it."),
    ] = None,
    hub: Annotated[
        bool, Help("Show what of a checkpoint would be pushed to the Hub: its files and its card.")
    ] = False,
    output: Output = Output(),
) -> None:
    """Write a record's STS scores as MTEB's results: a JSON file a task, `model_meta.json`, and their folders.

    What MTEB has no task for is left out, and said. With `--hub`, a checkpoint in the layout that Transformers and
    sentence-transformers read, with its model card; `hf upload` pushes the folder.

    Examples:
    * `stsbench export runs/minilm --model sentence-transformers/all-MiniLM-L6-v2 --out mteb`
    * `stsbench export --hub runs/simcse runs/simcse-sts --model me/simcse --out to-push`
    """
    if hub:
        _export_hub(asked, runs, out, output)
        return
    if len(runs) > 1 or out is None:
        raise UserError(
            f"{len(runs)} runs are named: export one after the other."
            if len(runs) > 1
            else "Missing option --out."
        )
    exported = asked(run=runs[0], out=out)
    print_result(exported, output)
    if output.style in {"json", "csv"}:
        # Rows cannot say what is none of them.
        tell(*exported.notes, quiet=output.quiet)
    tell(f"written to {exported.folder}", quiet=output.quiet)


def _export_hub(asked: Call, runs: list[Path], out: Path | None, output: Output) -> None:
    from stsbench.records.hub import export_hub

    if asked.options.get("overwrite"):
        raise UserError("--overwrite is not for --hub, which writes into a new folder: choose another with --out.")
    exported = export_hub(runs[0], runs[1:], out=out, **asked.only("model"))
    print_result(exported, output)
    if output.style == "csv":
        tell(*exported.notes, quiet=output.quiet)
    if output.style not in {"json", "csv"}:
        say("", *exported.card.splitlines())
    done = "nothing was written; --out FOLDER does" if out is None else f"written to {exported.folder}"
    tell(f"{done}, and `{exported.command}` pushes it", quiet=output.quiet)


def cite(
    asked: Annotated[Call, Verb("stsbench.records.show:cite")],
    json: Annotated[bool, Panel(OUTPUT), Help("Print JSON instead.")] = False,
) -> None:
    """Print what to cite for the models and tasks of some records, as BibTeX.

    Example: `stsbench cite runs/minilm-avg-sts > references.bib`
    """
    citations = asked()
    if json:
        import json as json_

        print_data(json_.dumps(citations, indent=1, ensure_ascii=False))
        return
    for subject, citation in citations.items():
        # BibTeX ignores what stands between entries: a heading is a comment there. But an @ begins an entry even
        # behind a %, and a model may be called anything.
        heading = f"% {subject}".replace("@", "(at)")
        if citation.startswith("@"):
            say(heading)
            print_data(f"{citation}\n")
        else:
            say(f"{heading}: {citation}".replace("@", "(at)"), "")
