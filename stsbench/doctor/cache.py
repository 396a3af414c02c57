"""Looking into what is cached, embeddings and tokenised corpora, and clearing it."""

from datetime import datetime
from typing import TYPE_CHECKING

from stsbench.base.files import cache_dir
from stsbench.encoders import cache as embeddings
from stsbench.training import token_store

if TYPE_CHECKING:
    import pandas as pd


def cache_summary(table: "pd.DataFrame") -> str:
    """Return a sentence about what is cached, and where.

    Args:
        table: of the embeddings, as `cache_table` returns it.
    """
    stores = token_store.stores()
    used = sum(map(token_store.bytes_of, stores))
    return (
        f"{len(table)} embedding files (the least recently used go first above the size limit) and {len(stores)} "
        f"tokenised corpora ({used / 1e6:.1f} MB) in {cache_dir()}"
    )


def clear_cache() -> int:
    """Delete all embeddings and all tokenised corpora; return how many bytes that freed."""
    return embeddings.clear_cache() + token_store.clear_stores()


def cache_table() -> "pd.DataFrame":
    """Return one row per file of the embedding cache: model, pooling, vectors, size in MB, last use."""
    import pandas as pd

    rows = [
        {
            "model": file.identity["name"],
            "pooling": file.identity["pooling"],
            "precision": file.identity["precision"],
            "device": file.identity["device"],
            "weights": str(file.identity["weights_sha256"])[:12],
            "vectors": file.vectors,
            "MB": file.size / 1e6,
            "last used": datetime.fromtimestamp(file.last_used).astimezone().isoformat(" ", "minutes"),
        }
        for file in embeddings.cache_files()
    ]
    columns = ["model", "pooling", "precision", "device", "weights", "vectors", "MB", "last used"]
    return pd.DataFrame(rows, columns=columns)
