"""What the papers say of well-known checkpoints: a table, read from `known_checkpoints.toml`."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class KnownCheckpoint:
    """How a well-known checkpoint is meant to be used.

    Attributes:
        name: its name on the Hugging Face Hub.
        pooling: the pooler that its paper scored it with.
        prompt: what its card says to put before every sentence in symmetric tasks.
        source: where that is said.
        citation: BibTeX of the paper.
    """

    name: str
    pooling: str
    prompt: str
    source: str
    citation: str


def find_known(name: str) -> KnownCheckpoint | None:
    """Return what is known of a model by its Hub name, or by a folder that bears the model's own name.

    >>> find_known("princeton-nlp/unsup-simcse-bert-base-uncased").pooling
    'cls_before_pooler'
    """
    wanted = name.rstrip("/").casefold()
    table = _known()
    return table.get(wanted) or {key.rpartition("/")[2]: row for key, row in table.items()}.get(
        wanted.rpartition("/")[2]
    )


@cache
def _known() -> dict[str, KnownCheckpoint]:
    text = (files("stsbench.encoders") / "known_checkpoints.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    rows, citations = table["group"], table["citations"]
    return {
        name.casefold(): KnownCheckpoint(
            name, row["pooling"], row.get("prompt", ""), row["source"], citations[row["citation"]].strip()
        )
        for row in rows
        for name in row["names"]
    }
