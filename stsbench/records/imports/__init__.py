"""Results of other evaluation programs as records: what their files say, and nothing that they do not."""

from stsbench.records.imports.read import NotResultsError, import_results

__all__ = ["NotResultsError", "import_results"]
