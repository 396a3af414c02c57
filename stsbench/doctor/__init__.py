"""Checks of the setup: `doctor` returns an `Examination`; `cache` lists and clears the cache."""
