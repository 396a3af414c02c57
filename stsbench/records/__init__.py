"""The run record, its pair table and its signature: what is kept of a measurement."""

from stsbench.records.record import RunRecord
from stsbench.records.signature import Signature
from stsbench.records.store import load_run, save_run

__all__ = ["RunRecord", "Signature", "load_run", "save_run"]
