"""Reproduction of the papers' tables, with answers to their claims.

The verb is `reproduce`, its result `Reproduction` (`reproduced`). `table_plan` is the schema of plans, `layout`
the experiment of a plan at a scale; `differences` and `answers` answer the claims.
"""
