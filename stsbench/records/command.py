"""`stsbench show`, `stsbench export` and `stsbench cite`."""

from typing import Annotated

from stsbench.base.options import OUTPUT, Help, Panel
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
    asked: Annotated[Call, Verb("stsbench.records.export:export_results")], output: Output = Output()
) -> None:
    """Write a record's STS scores as MTEB's results: a JSON file a task, `model_meta.json`, and their folders.

    What MTEB has no task for is left out, and said.

    Example: `stsbench export runs/minilm --model sentence-transformers/all-MiniLM-L6-v2 --out mteb`
    """
    exported = asked()
    print_result(exported, output)
    if output.style in {"json", "csv"}:
        # Rows cannot say what is none of them.
        tell(*exported.notes, quiet=output.quiet)
    tell(f"written to {exported.folder}", quiet=output.quiet)


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
