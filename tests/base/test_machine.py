"""Data that does not fit into the memory left by machine, container and process is refused."""

import pytest

from stsbench.base import machine
from stsbench.base.errors import UserError


def test_the_least_limit_counts_where_the_system_reports_any(monkeypatch):
    for name, limit in {"_of_machine": 5 * 10**9, "_of_container": 3 * 10**9}.items():
        monkeypatch.setattr(machine, name, lambda limit=limit: limit)
    machine.require_memory(3 * 10**9, "they", "do less")
    with pytest.raises(UserError, match=r"they take 3\.1 GB of memory, of which 3\.0 GB are free: do less\."):
        machine.require_memory(3_100_000_000, "they", "do less")
    for name in ("_of_machine", "_of_container"):
        monkeypatch.setattr(machine, name, lambda: None)
    machine.require_memory(10**18, "they", "do less")


@pytest.mark.parametrize(("limit", "left"), [("1000\n", 700), ("max\n", None)])
def test_a_containers_limit_counts_without_the_pages_of_files(limit, left, tmp_path, monkeypatch):
    for name, content in {"max": limit, "current": "500\n", "stat": "anon 300\ninactive_file 200\n"}.items():
        (tmp_path / f"memory.{name}").write_text(content)
    monkeypatch.setattr(machine, "_CGROUP", tmp_path)
    assert machine._of_container() == left


def test_a_processor_is_known_by_its_instructions_where_the_system_reports_them(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "_CPUINFO", tmp_path / "cpuinfo")
    assert machine.processor() == machine.platform.processor()
    core = "processor\t: {}\nmodel name\t: A\ncpu MHz\t\t: {}\nflags\t\t: avx512f {}\n\n"
    (tmp_path / "cpuinfo").write_text(core.format(0, 2400.1, "amx_bf16") + core.format(1, 2399.9, "amx_bf16"))
    assert machine.processor() == "A avx512f amx_bf16"
