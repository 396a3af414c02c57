"""`stsbench import`."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from stsbench.cli.groups import expand
from stsbench.cli.options import Output, new_folder
from stsbench.cli.output import print_notes


@expand
def import_(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="RESULTS",
            help="Results of SentEval or MTEB, a table of items (`task, item, score`), or with "
            "--gold predictions of MTEB or a TREC run.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", callback=new_folder, help="The folder of the record.")],
    model: Annotated[str, typer.Option("--model", "-m", help="The model's name; by default from the files.")] = "",
    gold: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="What predictions are scored against: qrels, labels or pairs, a folder with a file per task, or "
            "`mteb` for mteb's own data.",
        ),
    ] = None,
    aggregation: Annotated[
        str | None,
        typer.Option(
            help="How subsets become one score: `all`, `mean` or `wmean`; by default `all` if available."
        ),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help="`spearman` (the default) or `pearson`; for queries `ndcg_at_10`, `map_at_5`, `mrr_at_10`..."
        ),
    ] = None,
    identical_ids: Annotated[
        Literal["keep", "drop"] | None,
        typer.Option(help="Keep or drop documents with the id of their query; needed if there are any."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace another measurement in that folder.")
    ] = False,
    output: Output = Output(),
) -> None:
    """Record the results of another program, to check, show or compare them.

    What the files do not contain (data hashes, pooling) is recorded as unknown. The score of a table of items is
    their mean; its `group` columns define which items depend on each other.

    Examples:
    * `stsbench import results.json --out runs/senteval`
    * `stsbench import results/owner__model/revision --out runs/mteb`
    * `stsbench import ndcg.parquet --model my/retriever --out runs/ndcg`
    * `stsbench import predictions --gold qrels/test.tsv --out runs/retrieval`
    """
    from stsbench.records.provenance import command_line
    from stsbench.records.scores import Scores
    from stsbench.records.show import print_scores
    from stsbench.scoring.evaluate import import_results

    record = import_results(
        path,
        out=out,
        model=model,
        gold=gold,
        aggregation=aggregation,
        metric=metric,
        identical_ids=identical_ids,
        overwrite=overwrite,
        command=command_line(["stsbench", *sys.argv[1:]]),
    )
    print_scores(Scores([record]), output, as_list=False)
    print_notes(f"recorded in {record.folder}", quiet=output.quiet)
