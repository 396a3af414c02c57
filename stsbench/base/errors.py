"""The exceptions for users' mistakes and interrupts."""


class UserError(Exception):
    """A mistake that the user can fix: one sentence with the problem, the place and the remedy.

    The command line prints it without a traceback and exits with code 2.

    Args:
        *sentences: the message; several if several things failed, printed one per line.
    """

    @property
    def sentences(self) -> tuple[str, ...]:
        """The messages."""
        return tuple(map(str, self.args))

    def __str__(self) -> str:
        return "\n".join(self.sentences)


class InterruptError(UserError):
    """An interrupt of work that is partly done: one sentence on what is kept and how to resume.

    The command line prints it and exits with code 130.
    """


def by_interrupt(error: BaseException | None) -> bool:
    """Returns whether an exception or one of its causes is a keyboard interrupt."""
    seen: list[BaseException] = []
    # An exception can be its own cause (`raise error from error`).
    while error is not None and error not in seen:
        seen.append(error)
        error = error.__cause__ or error.__context__
    return any(isinstance(cause, KeyboardInterrupt) for cause in seen)
