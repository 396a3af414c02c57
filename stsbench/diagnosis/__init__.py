"""Why a number is off: `diagnose` compares a claim with all settings. Why vectors differ: `diagnose_vectors`.

Read in this order: `axes` (the choices, and the numbers to explain), `data`, `diagnose` (the verb:
from pairs to the scores), `search` (the scores, which settings give the claim, and how strong that evidence is),
`variations` (the axes that need other vectors), `result`, `command`. For vectors: `inputs` (the axes of feeding
texts to a network) and `like` (the search over them).
"""
