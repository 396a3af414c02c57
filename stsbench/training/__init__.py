"""Recipe to checkpoint. The verb is `train` (train.py), which returns a `Training`.

To read it top-down: recipe and parts (the recipe); train (beginning and end); job (preparation and run); base,
batches and labelled (inputs); trainer (a step and the loop); model and objectives (the computation of a step);
views, guesses, heads, noise and tasks (its parts); log and folder (scores and files); cpu and distributed
(devices).
"""
