"""Recipe to checkpoint. The verb is `train` (train.py), which returns a `Training` (result.py).

To read it top-down: recipe, recipe_parts, recipe_files, parts and remarks (what a recipe says); train; job (what
is prepared and run) and publishing (how it ends); base, token_store and batches (what it starts from and reads);
trainer (a step and the loop); model, objectives, negatives and optimisation (what a step is made of); views,
lexicon, guesses, heads, noise, target and adversary (its parts); selection, checkpoints, folder and log (what is
scored and kept); distributed.
"""
