"""Pages that people look into: `explore`, all pairs of one or two runs, which returns `Explored`."""
