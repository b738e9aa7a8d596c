"""Test the available and the installed memory."""

import pytest

from normalmesh import available_memory
from normalmesh.runtime import memory as module


def test_available_memory_is_at_most_the_installed_memory():
    available, installed = available_memory(), module.installed_memory()
    assert available is not None
    assert installed is not None
    assert 0 < available <= installed


@pytest.mark.parametrize("version", [1, 2])
def test_control_groups_limit_memory(version, tmp_path):
    """The outer group limits the memory, the inner one does not; cached files do not count as used."""
    names = {1: ("memory.limit_in_bytes", "memory.usage_in_bytes"), 2: ("memory.max", "memory.current")}[version]
    top = tmp_path / "sys/fs/cgroup" / ("memory" if version == 1 else "")
    inner = top / "outer/inner"
    inner.mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(
        "3:cpu:/\n" + ("2:memory:/outer/inner\n" if version == 1 else "0::/outer/inner\n")
    )
    unlimited = "9223372036854771712" if version == 1 else "max"
    for folder, limit, used in ((inner, unlimited, 5), (inner.parent, 1000, 700)):
        (folder / names[0]).write_text(f"{limit}\n")
        (folder / names[1]).write_text(f"{used}\n")
        (folder / "memory.stat").write_text("anon 12\ninactive_file 200\n")
    assert list(module._control_groups(tmp_path)) == [(1000, 500)]


def test_there_is_no_limit_without_the_files_of_control_groups(tmp_path):
    assert list(module._control_groups(tmp_path)) == []


def test_limits_of_control_groups_are_considered(monkeypatch):
    monkeypatch.setattr(module, "_control_groups", lambda: [(5000, 2000), (4000, 3500)])
    assert module.installed_memory() == 4000
    assert available_memory() == 500


@pytest.mark.parametrize(
    ("number", "text"), [(10, "1 MB"), (350e6, "350 MB"), (999.4e6, "999 MB"), (1.24e9, "1.2 GB"), (7e12, "7,000.0 GB")]
)
def test_texts_of_sizes(number, text):
    assert module.bytes_text(number) == text
