"""Reproduction of the papers' tables, with answers to their claims.

The verb is `reproduce`, its result `Reproduction` (`reproduced.py`). `table_plan` is the schema of plans, `layout`
the experiment of a plan at a scale; `reading` reads its numbers and `answers` answers the claims.
"""
