"""The repetition probe: the verb `repetition_bias`, which returns a `RepetitionBias`.

Read `verb.py` (input, numbers, table, figure, command), then `pairs.py` (how queries and candidates are drawn).
"""
