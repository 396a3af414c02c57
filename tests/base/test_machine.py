"""Data that does not fit into the free memory is refused."""

from pathlib import Path

import pytest

from stsbench.base import machine
from stsbench.base.errors import UserError


def test_the_free_memory_is_the_limit_where_the_system_reports_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_MEMORY", tmp_path / "meminfo")
    machine.require_memory(10**18, "they", "do less")
    (tmp_path / "meminfo").write_text("MemTotal: 9000000 kB\nMemAvailable: 2929688 kB\n")
    machine.require_memory(3 * 10**9, "they", "do less")
    with pytest.raises(UserError, match=r"they take 3\.1 GB of memory, of which 3\.0 GB are free: do less\."):
        machine.require_memory(3_100_000_000, "they", "do less")
