"""The public API: every name is there, and asking for none of them loads nothing heavy."""

import subprocess
import sys

import pytest

import stsbench as sb


@pytest.mark.parametrize("name", sb.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(sb, name) is not None
    assert name in dir(sb)


def test_every_public_name_and_no_other_has_a_home() -> None:
    assert set(sb.__all__) == {*sb._HOMES, "__version__"}


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'stsbench' has no attribute 'evaluat'"):
        _ = sb.evaluat


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import sys, stsbench; print({'numpy', 'torch', 'pandas', 'scipy', 'pydantic'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_the_version_is_that_of_the_installed_package() -> None:
    from importlib.metadata import version

    assert version("stsbench") == sb.__version__
