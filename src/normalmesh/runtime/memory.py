"""Memory: how much this process can use."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from normalmesh.errors import NormalMeshError

#: Address space (bytes) that compiling and running kernels needs: LLVM aborts the process if there is none left.
CODE_BYTES = 200 << 20
#: Address space (bytes) that loading the libraries needs.
MIN_ADDRESSES = 1 << 30


def check_address_limit() -> None:
    """Raise an error if the process may use too few addresses (``ulimit -v``): libraries would abort it."""
    limit = _address_limit()
    if limit is not None and limit < MIN_ADDRESSES:
        raise NormalMeshError(
            f"this process is limited to {bytes_text(limit)} of address space (ulimit -v), "
            f"but needs at least {bytes_text(MIN_ADDRESSES)}: raise the limit"
        )


def available_memory() -> int | None:
    """Return the number of bytes that this process can still allocate.

    Returns
    -------
    int or None
        On Linux the memory available now, within the limits of control groups (containers) and of the process
        (``ulimit``). Elsewhere the installed memory, or None if it is unknown.
    """
    if sys.platform == "win32":
        return _windows_memory()[1]
    machine = _linux_available()
    if machine is None:
        return installed_memory()
    left = (limit - used for limit, used in (*_control_groups(), *_process_limits()))
    return max(min([machine, *left]), 0)


def installed_memory() -> int | None:
    """Return the memory of this machine, or of the container of the process, in bytes; None if it is unknown.

    Unlike the available memory it does not change, so that results may depend on it.
    """
    if sys.platform == "win32":
        return _windows_memory()[0]
    try:
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
    return min([machine, *(limit for limit, _ in _control_groups())])


def bytes_text(number: float) -> str:
    """Return a number of bytes as text, such as ``350 MB`` or ``1.2 GB``."""
    megabytes = number / 1e6
    return f"{max(megabytes, 1):.0f} MB" if megabytes < 999.5 else f"{megabytes / 1000:,.1f} GB"


def _linux_available() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        return None


def _control_groups(root: Path = Path("/")) -> Iterator[tuple[int, int]]:
    """Yield the limit and the use, in bytes, of each control group (version 1 or 2) that limits this process."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "memory":
            top, names = root / "sys/fs/cgroup/memory", ("memory.limit_in_bytes", "memory.usage_in_bytes")
        elif controllers == "":
            top, names = root / "sys/fs/cgroup", ("memory.max", "memory.current")
        else:
            continue
        group = top / path.strip("/")
        for folder in (group, *group.parents):
            limits = _limit_and_use(folder, *names)
            if limits is not None:
                yield limits
            if folder == top:
                break


def _process_limits() -> Iterator[tuple[int, int]]:
    """Yield the limit and the use, in bytes, of the address space of this process, if it is limited (``ulimit -v``)."""
    limit = _address_limit()
    if limit is not None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        yield limit, pages * os.sysconf("SC_PAGE_SIZE") + CODE_BYTES


def _address_limit() -> int | None:
    if sys.platform == "win32":
        return None
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def _limit_and_use(folder: Path, limit_name: str, use_name: str) -> tuple[int, int] | None:
    """Return the limit and the use of a control group in bytes; None if it is unlimited or cannot be read."""
    try:
        limit, used = int((folder / limit_name).read_text()), int((folder / use_name).read_text())
        statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return None
    # Cached files count as used but are released on demand. Version 1 writes "unlimited" as a huge number.
    cached = int(statistics.get("total_inactive_file", statistics.get("inactive_file", 0)))
    return None if limit >= 1 << 60 else (limit, max(used - cached, 0))


def _windows_memory() -> tuple[int | None, int | None]:
    """Return the installed and the available memory in bytes."""
    import ctypes

    class Status(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ulong), ("load", ctypes.c_ulong)] + [
            (name, ctypes.c_ulonglong) for name in ("total", "available", "a", "b", "c", "d", "e")
        ]

    status = Status(length=ctypes.sizeof(Status))
    if not ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):  # type: ignore[attr-defined]
        return None, None
    return status.total, status.available
