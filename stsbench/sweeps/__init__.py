"""Sweeps: recipes x values x seeds as one experiment, measured, resumable, on one machine or many.

The verb is `sweep` (`sweep.py`), its result `Sweep` (`result.py`). Read `experiment` (what a person writes),
`jobs` (what there is to do), `folder` (what is done), `run_job` (one job, in a process of its own) and `executors`
(where such processes run).
"""
