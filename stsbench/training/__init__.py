"""Recipe to checkpoint. The verb is `train` (train.py), which returns a `Training`.

To read it top-down: recipe and parts (what a recipe says); train (how it begins and ends); job (what is prepared
and run); base, batches and labelled (what it starts from and reads); trainer (a step and the loop); model and
objectives (what a step is made of); views, guesses, heads, noise and tasks (its parts); log and folder
(what is scored and kept); cpu and distributed (where it runs).
"""
