"""Numbers from papers as data with their source, and the known checkpoints.

Read `schema` first (the fields of entries), then `catalogue` (tables, rows, systems and checkpoints by name;
training logs and scores over seeds). `lookup` has the verbs of `stsbench published list|show|row`. The numbers are
in `entries/`; `docs/conflicts.py` finds inconsistencies in them.
"""
