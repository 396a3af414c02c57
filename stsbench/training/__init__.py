"""Recipe to checkpoint. The verb is `train` (train.py), which returns a `Training` (result.py).

To read it top-down: recipe, parts and recipe_files (what a recipe says); train (how it begins and ends); job (what
is prepared and run); base, token_store, batches and labelled (what it starts from and reads); trainer (a step and
the loop); model, objectives and task_heads (what a step is made of); views, lexicon, guesses, heads, noise,
dropout, target and tasks (its parts); selection, checkpoints, folder and log (what is scored and kept);
distributed and gpu (where it runs).
"""
