"""What stands at the top of a report: the few sentences that a reader needs, each with where to read on."""

IN_SHORT, TITLE = "in-short", "In short"
