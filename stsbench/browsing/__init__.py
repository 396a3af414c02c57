"""Interactive pages: all pairs of one or two runs (`explore`, `Explored`), all runs (`board`, `Board`).

Read `board` first, then `sections`, which groups comparable runs and caches their summaries.
"""
