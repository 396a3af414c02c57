"""What libraries print past Python does not stand in the middle of a program's JSON."""

import os

import pytest

from stsbench.encoders.checkpoint import quiet_transformers


def test_a_library_s_print_does_not_reach_standard_output_and_ours_after_it_does(
    capfd: pytest.CaptureFixture[str],
) -> None:
    print("before")
    with quiet_transformers():
        os.write(1, b"Ignored unknown kwarg option\n")
    print("after")
    assert capfd.readouterr().out == "before\nafter\n"


def test_an_error_in_between_gives_standard_output_back(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), quiet_transformers():
        raise ZeroDivisionError
    os.write(1, b"after\n")
    assert capfd.readouterr().out == "after\n"
