"""The one exception that a person's mistake raises."""


class UserError(Exception):
    """A mistake that the person can mend: one clear sentence saying what, where and what to do.

    The command line prints the sentence without a traceback and exits with code 2.
    """
