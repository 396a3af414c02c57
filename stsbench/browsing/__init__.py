"""Pages that people look into: all pairs of one or two runs (`explore`, `Explored`), all runs (`board`, `Board`).

Read `board` first, then `kept`, what it needs of a record's items, and `sections`, what stands together.
"""
