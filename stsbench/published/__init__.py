"""Numbers from papers as data with their source, the known checkpoints, and what does not add up.

The verbs (`stsbench published list|show|row|conflicts`) and their results are in `lookup`. Read first `schema`
(what an entry says) and `catalogue` (finding tables, rows, systems and checkpoints by name), then `measured`
(training logs, scores over seeds), `conflicts` and `conflicts_page`. The numbers themselves are in `entries/`.
"""
