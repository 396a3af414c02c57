"""Looking into what is cached, embeddings and tokenised corpora, and clearing it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from stsbench.base.errors import UserError
from stsbench.base.files import cache_dir
from stsbench.encoders import cache as embeddings
from stsbench.encoders.cache import CacheFile
from stsbench.render.result import Result
from stsbench.render.table import Table, Tables
from stsbench.training import token_store

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = ("model", "pooling", "precision", "device", "weights", "vectors", "MB", "last used")


@dataclass(frozen=True)
class CacheContents(Result):
    """What is cached.

    Attributes:
        files: of embeddings, one for each way a model was used.
        corpora: the number of tokenised corpora, and `corpora_bytes` their size together.
    """

    files: tuple[CacheFile, ...]
    corpora: int
    corpora_bytes: int

    @property
    def sentence(self) -> str:
        """What is cached, and where."""
        return (
            f"{len(self.files)} embedding files (the least recently used go first above the size limit) and "
            f"{self.corpora} tokenised corpora ({self.corpora_bytes / 1e6:.1f} MB) in {cache_dir()}"
        )

    @property
    def frame(self) -> "pd.DataFrame":
        """One row per file of embeddings: model, pooling, vectors, size in MB, last use."""
        import pandas as pd

        rows = [
            (
                file.identity["name"],
                file.identity["pooling"],
                file.identity["precision"],
                file.identity["device"],
                str(file.identity["weights_sha256"])[:12],
                file.vectors,
                file.size / 1e6,
                datetime.fromtimestamp(file.last_used).astimezone().isoformat(" ", "minutes"),
            )
            for file in self.files
        ]
        return pd.DataFrame(rows, columns=list(_COLUMNS))

    def table(self) -> Tables:
        """Return the files as a table; none if there are none."""
        return Tables([Table(self.frame)] if self.files else [])


def cache_contents() -> CacheContents:
    """Look into the cache."""
    with _told("read"):
        stores = token_store.stores()
        size = sum(map(token_store.bytes_of, stores))
        return CacheContents(tuple(embeddings.cache_files()), len(stores), size)


def clear_cache() -> int:
    """Delete all embeddings and all tokenised corpora; return how many bytes that freed."""
    with _told("clear"):
        return embeddings.clear_cache() + token_store.clear_stores()


@contextmanager
def _told(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(
            f"cannot {what} the cache {cache_dir()} ({error.strerror or error}): it may be read-only or somebody "
            "else's; set STSBENCH_CACHE to a folder of yours, or ask whose it is."
        ) from error
