"""The data verbs: what there is, where it is, whether it is whole, and getting it."""

from stsbench.datasets import catalogue_table, get, verify, where, write_nli_triplets

__all__ = ["catalogue_table", "get", "verify", "where", "write_nli_triplets"]
