"""Where the cache is."""

from pathlib import Path

import pytest

from stsbench.base.files import cache_dir


def test_the_cache_is_where_the_variable_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STSBENCH_CACHE", "~/somewhere")
    assert cache_dir() == Path.home() / "somewhere"


@pytest.mark.parametrize("value", [None, ""])
def test_without_it_the_cache_is_the_platform_s_own(value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if value is None:
        monkeypatch.delenv("STSBENCH_CACHE")
    else:
        monkeypatch.setenv("STSBENCH_CACHE", value)
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_dir().name == "stsbench"
