"""`import_results`: a record of what another tool measured, to show, compare, rank and gate like any other."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from stsbench.base.errors import UserError
from stsbench.base.files import sha256_of
from stsbench.base.options import Spelled
from stsbench.base.words import storable
from stsbench.encoders.protocol import Identity
from stsbench.encoders.use import Use
from stsbench.records.imports.read import import_scores
from stsbench.records.kinds import GIVEN
from stsbench.records.record import RunRecord
from stsbench.records.signature import UNKNOWN
from stsbench.scoring.kinds.given import FORMATS_READ, read_items
from stsbench.scoring.protocols import Protocol
from stsbench.scoring.recording import Measured, Recording
from stsbench.scoring.settings import Settings, Stages
from stsbench.scoring.task import Items


def import_results(
    path: Annotated[str | Path, Spelled("RESULTS")],
    *,
    out: str | Path | None = None,
    model: Annotated[str, Spelled("--model", "-m")] = "",
    aggregation: str | None = None,
    metric: str = "spearman",
    overwrite: bool = False,
    command: str = "",
) -> RunRecord:
    r"""Make a record of results of SentEval or MTEB, or of items that another tool scored.

    What the files do not say is marked as unknown (`-` in the signature): the files that were scored, the
    pooling, of MTEB the text. Scores come without items. Of a table of items the score of a task is their mean;
    two such records compare if their items and groups are the same, and groups say which items depend on each
    other.

    Args:
        path: SentEval's dictionary of results as JSON, in either shape; a JSON file of MTEB's for one task; a
            folder of those; or a table of items, `task, item, score` and one or two columns `group...`: .csv,
            .tsv, .jsonl or .parquet.
        out: the folder of the record. In Python None keeps it in memory.
        model: the model's name; by default what the files say, or else the file's name.
        aggregation: how the subsets of a task become one score: `all`, `mean` or `wmean`; by default `all` if
            every task has it, else `wmean`.
        metric: the correlation to read: `spearman` or `pearson`.
        overwrite: whether to replace another measurement in that folder.
        command: the command line, for the record.

    Raises:
        NotResultsError: if the file is none of theirs.
        UserError: if it cannot be read or lacks what was asked for, or the record cannot be saved.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder) / "ndcg.csv"
    ...     written = table.write_text("task,item,score\nquora,q1,0.5\nquora,q2,1\n")
    ...     record = import_results(table)
    >>> record.scores[0].task, record.scores[0].statistic, record.scores[0].value
    ('quora', 'mean', 0.75)
    """
    path = Path(path).expanduser()
    if not any(suffix in FORMATS_READ for suffix in path.suffixes[-2:]):
        return import_scores(
            path,
            out=out,
            model=model,
            aggregation=aggregation,
            metric=metric,
            overwrite=overwrite,
            command=command,
        )
    if aggregation is not None:
        raise UserError("--aggregation is over subsets, which a table of items has not: leave it out.")
    folder = None if out is None else Path(out).expanduser()
    return _import_items(path, model, Settings(out=folder, overwrite=overwrite, command=command))


def _import_items(path: Path, model: str, settings: Settings) -> RunRecord:
    tasks = read_items(path)
    identity = Identity(
        storable(model) or storable(path.stem),
        "items",
        Use(pooling=UNKNOWN, prompt="", precision=UNKNOWN, device=UNKNOWN),
        weights_sha256=sha256_of(path),
    )
    how = replace(settings, protocol=Protocol("given", metric="mean", similarity=GIVEN))
    recording = Recording.of(tasks, identity, how)
    recording.prepare()
    notes = [f"the scores are those of {storable(path.name)}; what they are of, nobody says."]
    items = [Items(task.table) for task in tasks]
    return recording.finish(Measured(items, [0] * len(items), notes, {}), Stages())
