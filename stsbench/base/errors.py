"""The one exception that a person's mistake raises, and how an interrupt is recognised."""

from stsbench.base.words import shortened


class UserError(Exception):
    """A mistake that the person can mend: one clear sentence saying what, where and what to do.

    The command line prints the sentence without a traceback and exits with code 2. What the person wrote is echoed
    in it; where that is pages long, the middle is left out.

    Args:
        *sentences: one; several where several things failed, each of which gets a line.

    >>> str(UserError("there is no task " + "x" * 1000))
    'there is no task xxx...xxx[...840 characters...]xxx...xxx'
    """

    def __init__(self, *sentences: str) -> None:
        super().__init__(*sentences)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is wrong, a sentence each."""
        return tuple(shortened(str(sentence)) for sentence in self.args)

    def __str__(self) -> str:
        """Return the sentences, a line each."""
        return "\n".join(self.sentences)


class InterruptError(UserError):
    """The person's interrupt of work that is partly done: one sentence on what is kept, and how to go on.

    The command line prints the sentence and exits with code 130.
    """


def by_interrupt(error: BaseException) -> bool:
    """Return whether an exception is an interrupt, or there was one among its causes.

    A library may catch the interrupt and raise something of its own, an ImportError, say.
    """
    causes: list[BaseException] = []
    seen: BaseException | None = error
    # An exception can be its own cause (`raise error from error`).
    while seen is not None and seen not in causes:
        causes.append(seen)
        seen = seen.__cause__ or seen.__context__
    return any(isinstance(cause, KeyboardInterrupt) for cause in causes)
