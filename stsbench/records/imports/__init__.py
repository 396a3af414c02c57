"""Records of the results of other programs.

Read `read` (from a path to a record), then `senteval` and `mteb` (their files), and `results` (what both become).
"""
