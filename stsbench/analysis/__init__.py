"""What is behind a score: `length_bias`, `geometry`, `spectrum`, `density`, `evalrank`, `repetition_bias`,
`retrieve`.

Each verb returns an `AnalysisResult`, and `explain` all of them as an `Explanation`. Read `registry.py` (which
analyses there are), `analysis.py` (what one is made of), any of them, such as `spectrum.py`, then `explain.py` and
`command.py`.
"""
