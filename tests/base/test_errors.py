"""What an exception was caused by."""

from stsbench.base.errors import by_interrupt


def caused(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


def test_an_interrupt_is_found_among_causes_and_one_that_is_its_own_cause_ends() -> None:
    assert by_interrupt(caused(ValueError(), caused(ImportError(), KeyboardInterrupt())))
    assert not by_interrupt(caused(ImportError(), ValueError()))
    own = ValueError()
    assert not by_interrupt(caused(own, own))
