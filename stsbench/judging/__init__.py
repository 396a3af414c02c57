"""Judges runs by their items: is a difference real, is a number right?

`compare` tests two models, or two methods over seeds; `rank` orders many; `check` compares a run with published
rows or an earlier run; `plan` and `best_of` show what pairs and seeds can detect.

Read `runs` and `aligned` first: they choose runs, and align any number of models on the same items. `comparison`
and `verdicts` are results, and `published` finds the measured score for a published value.
"""
