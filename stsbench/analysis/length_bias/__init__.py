"""Length bias: the verb `length_bias`, which returns a `LengthBias`.

Read `verb.py` (input, tables, figure, command), then `measures.py` (what is measured) and `numbers.py` (how).
"""
