"""Numbers from papers as data with their source, and the known checkpoints.

Read `schema` first (what an entry has), then `catalogue` (tables, rows, systems and checkpoints by name; training
logs and scores over seeds). `lookup` has the verbs of `stsbench published list|show|row`. The numbers are in
`entries/`; `docs/conflicts.py` finds what does not add up in them.
"""
