"""Looking into the embedding cache, and clearing it."""

from datetime import datetime
from typing import TYPE_CHECKING

from stsbench.encoders.cache import cache_files, clear_cache, embeddings_dir

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["cache_table", "clear_cache", "embeddings_dir"]


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
        for file in cache_files()
    ]
    columns = ["model", "pooling", "precision", "device", "weights", "vectors", "MB", "last used"]
    return pd.DataFrame(rows, columns=columns)
