"""Why a number is off: `diagnose` compares a claim with all settings and returns a `Diagnosis`.

Read in this order: `diagnose` (the verb), `claim` (the numbers to explain), `axes` (the choices and their words),
`grid` (their scores), `data`, `encoding` and `scores` (from pairs to the grid), `search` (which settings give the
claim, and how strong that evidence is), `variations` (the choices that need other vectors), `ways` and `further`
(the search among them), `padding`, `words`, `facts`, `result`, `command`.
"""
