"""Sweeps: recipes x values x seeds as one resumable experiment, on one machine or a cluster.

The verb is `sweep`, its result `Sweep` (`result`). `experiment` is the file's schema, `jobs` its jobs, `folder`
the finished ones; `run_job` does a job in its own process.
"""
