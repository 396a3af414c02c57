"""Numbers from papers as data with their source, and the known checkpoints.

The verbs (`stsbench published list|show|row`) and their results are in `lookup`. Read first `schema` (what an
entry says) and `catalogue` (finding tables, rows, systems and checkpoints by name), then `measured` (training
logs, scores over seeds) and `resolution` (which printed differences the tasks' pairs could tell from chance). The
numbers themselves are in `entries/`; `docs/conflicts.py` looks for what does not add up in them.
"""
