"""Is everything here that a measurement needs? `doctor` returns an `Examination`; `cache` looks into the cache."""
