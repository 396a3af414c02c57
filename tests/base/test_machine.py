"""What cannot be held is refused, by the least of what machine, container and process leave."""

import pytest

from stsbench.base import machine
from stsbench.base.errors import UserError


def test_the_least_limit_counts(monkeypatch):
    for name, limit in {"_of_machine": 5 * 10**9, "_of_container": None, "_of_process": 3 * 10**9}.items():
        monkeypatch.setattr(machine, name, lambda limit=limit: limit)
    assert machine.available_bytes() == 3 * 10**9
    machine.require_memory(3 * 10**9, "they", "do less")
    with pytest.raises(UserError, match=r"they take 3\.1 GB of memory, of which 3\.0 GB are free: do less\."):
        machine.require_memory(3_100_000_000, "they", "do less")


def test_a_system_that_does_not_say_refuses_nothing(monkeypatch):
    for name in ("_of_machine", "_of_container", "_of_process"):
        monkeypatch.setattr(machine, name, lambda: None)
    assert machine.available_bytes() is None
    machine.require_memory(10**18, "they", "do less")


@pytest.mark.parametrize(("limit", "left"), [("1000\n", 700), ("max\n", None)])
def test_a_containers_limit_counts_without_the_pages_of_files(limit, left, tmp_path, monkeypatch):
    (tmp_path / "memory.max").write_text(limit)
    (tmp_path / "memory.current").write_text("500\n")
    (tmp_path / "memory.stat").write_text("anon 300\ninactive_file 200\n")
    monkeypatch.setattr(machine, "_CGROUP", tmp_path)
    assert machine._of_container() == left


def test_a_processor_is_known_by_its_instructions_where_the_system_tells_them(tmp_path, monkeypatch):
    told = tmp_path / "cpuinfo"
    monkeypatch.setattr(machine, "_CPUINFO", told)
    assert machine.processor() == machine.platform.processor()
    core = "processor\t: {}\nmodel name\t: A\ncpu MHz\t\t: {}\nflags\t\t: avx512f {}\n\n"
    told.write_text(core.format(0, 2400.1, "amx_bf16") + core.format(1, 2399.9, "amx_bf16"))
    assert machine.processor() == "A avx512f amx_bf16"
    told.write_text(core.format(0, 2400.1, "fma"))
    assert machine.processor() == "A avx512f fma"
