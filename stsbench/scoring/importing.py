"""`import_items`: a record of the items that another tool scored, to compare, rank and gate like any other."""

from pathlib import Path

from stsbench.base.files import sha256_of
from stsbench.base.words import storable
from stsbench.encoders.protocol import Identity
from stsbench.records.kinds import GIVEN
from stsbench.records.record import RunRecord
from stsbench.records.signature import UNKNOWN
from stsbench.scoring.kinds.given import read_items
from stsbench.scoring.protocols import Protocol
from stsbench.scoring.recording import Measured, Recording
from stsbench.scoring.settings import Intervals, Settings, Stages
from stsbench.scoring.task import Items


def import_items(
    path: str | Path,
    *,
    out: str | Path | None = None,
    model: str = "",
    intervals: Intervals | None = None,
    overwrite: bool = False,
    command: str = "",
) -> RunRecord:
    r"""Make a record of items that another tool scored.

    The score of a task is the mean of its items' scores. Two records compare if their items and groups are the
    same; groups say which items depend on each other.

    Args:
        path: a table of `task, item, score` and of one or two columns `group...`: .csv, .tsv, .jsonl or .parquet.
        out: folder to save the record in; None to keep it in memory.
        model: what was measured; by default the file's name.
        intervals: how intervals are computed.
        overwrite: whether a record of another measurement in that folder may be replaced.
        command: the command line, for the record.

    Raises:
        UserError: naming file and line, if the table is not such a one; or if the record cannot be saved.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder) / "ndcg.csv"
    ...     written = table.write_text("task,item,score\nquora,q1,0.5\nquora,q2,1\n")
    ...     record = import_items(table)
    >>> record.scores[0].task, record.scores[0].statistic, record.scores[0].value
    ('quora', 'mean', 0.75)
    """
    path = Path(path).expanduser()
    tasks = read_items(path)
    identity = Identity(
        storable(model) or storable(path.stem),
        "items",
        UNKNOWN,
        precision=UNKNOWN,
        device=UNKNOWN,
        weights_sha256=sha256_of(path),
    )
    settings = Settings(
        protocol=Protocol("given", metric="mean", similarity=GIVEN),
        intervals=intervals or Intervals(),
        out=None if out is None else Path(out).expanduser(),
        overwrite=overwrite,
        command=command,
    )
    recording = Recording.of(tasks, identity, settings)
    recording.prepare()
    notes = [f"the scores are those of {storable(path.name)}; what they are of, nobody says."]
    items = [Items(task.table) for task in tasks]
    return recording.finish(Measured(items, [0] * len(items), notes, {}), Stages())
