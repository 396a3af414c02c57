"""What libraries print past Python does not end up in the middle of a program's JSON."""

import os
from contextlib import suppress

import pytest

from stsbench.encoders.libraries import quiet_transformers


@pytest.mark.parametrize("fails", [False, True])
def test_a_librarys_print_is_discarded_and_ours_afterwards_is_not(
    fails: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    print("before")
    with suppress(ZeroDivisionError), quiet_transformers():
        os.write(1, b"Ignored unknown kwarg option\n")
        if fails:
            raise ZeroDivisionError
    print("after")
    assert capfd.readouterr().out == "before\nafter\n"
