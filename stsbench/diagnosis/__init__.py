"""Why a number is off: `diagnose` holds a claim against every setting, and returns a `Diagnosis`.

Read in this order: `diagnose` (the verb), `claim` (the numbers to explain), `choices` (with their words), `grid`
(the scores at each crossing), `encoding` (vectors by every pooler at every length), `scores` (from vectors to
grid), `search` (which settings give the claim, how telling that is), `usage` (the lazy axes: other ways of using
the encoder), `offers` (what of them can matter to a checkpoint, and why not the rest), `batches` (vectors and
similarities as other programs make them) and `further` (which of their crossings are asked for), `words` (what is
said), `result`, `command`.
"""
