"""Is this number right, is this difference real, and if a number is off, why: check, compare, diagnose."""
