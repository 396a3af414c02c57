"""Wrong numbers that are planted where a score comes from: the cache (`cache`), a checkpoint (`checkpoints`).

Either has `VARIANTS`, and says of each what came of it: the right number, one sentence, or a wrong number.
"""
