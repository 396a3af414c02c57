"""Reproduction: the papers' tables made again, and their claims answered.

The verb is `reproduce` (`reproduce.py`), its result `Reproduction` (`reproduced.py`). Read `table_plan` (how a
table is made), `layout` (what is made of it at a scale), `reading` (what was measured for it) and `answers` (what
that says of the claims).
"""
