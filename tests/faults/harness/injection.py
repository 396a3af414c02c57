"""What goes wrong in a child while a command runs: at the n-th file operation an error or a signal.

File operations are counted by Python's audit events, which no library can pass by, below the folder that the case
works in: opening, listing, making, renaming, deleting, changing a mode or a time; `fsync` and `os.write` have none
and are counted where they are called. What libraries write without Python (Parquet, safetensors, SQLite) is
reached by a limit on the size of files instead.
"""

import ctypes
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

_EVENTS = {
    "open",
    "os.chmod",
    "os.link",
    "os.listdir",
    "os.mkdir",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.scandir",
    "os.symlink",
    "os.truncate",
    "os.utime",
    "sqlite3.connect",
    "tempfile.mkdtemp",
    "tempfile.mkstemp",
}

_CAPABILITIES = 0x20080522
"""Version 3 of Linux's interface to what root may do."""


def install(fault: dict[str, Any], place: str, log: Path) -> None:
    """Have something go wrong in this process from now on.

    Args:
        fault: `{}`; `{"count": True}` writes the events to `log`; `{"at": n}` with `{"errno": number}` raises at
            the n-th event, with `{"signal": number}` sends a signal; `{"size": bytes}` limits files.
        place: the folder whose events count.
        log: a file for the names of the events that were counted.
    """
    if "size" in fault:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (fault["size"], resource.RLIM_INFINITY))
        return
    root = os.path.dirname(place) + os.sep  # noqa: PTH120 (hooks may not ask pathlib, which may be audited)
    events: list[str] = []
    # The log is opened beforehand: what is opened later would be counted.
    handle = os.open(log, os.O_WRONLY | os.O_CREAT)

    def happens(name: str, path: str) -> None:
        events.append(name)
        if fault.get("count"):
            os_write(handle, f"{name} {os.path.relpath(path, root) if path else ''}\n".encode(errors="replace"))
        elif len(events) == fault["at"]:
            os_write(handle, f"{name} {path}\n".encode(errors="replace"))
            if "signal" in fault:
                os.kill(os.getpid(), fault["signal"])
            else:
                raise OSError(fault["errno"], os.strerror(fault["errno"]), path or None)

    def hook(name: str, arguments: tuple[Any, ...]) -> None:
        if name not in _EVENTS:
            return
        # Of two paths (a rename) the second says what is done.
        for value in reversed(arguments[:2]):
            if isinstance(value, str | bytes | os.PathLike) and _absolute(os.fspath(value)).startswith(root):
                happens(name, _absolute(os.fspath(value)))
                return

    os_write, os_fsync = os.write, os.fsync

    def write(descriptor: int, content: Any) -> int:
        happens("os.write", "")
        return os_write(descriptor, content)

    def fsync(descriptor: Any) -> None:
        happens("os.fsync", "")
        os_fsync(descriptor)

    os.write, os.fsync = write, fsync
    sys.addaudithook(hook)


def _absolute(path: Any) -> str:
    text = path if isinstance(path, str) else os.fsdecode(path)
    return text if text.startswith(os.sep) else os.path.join(os.getcwd(), text)  # noqa: PTH109, PTH118


def give_up_rights() -> None:
    """Give up root's rights to read and write what permissions forbid; nothing happens to anybody else."""

    class Header(ctypes.Structure):
        _fields_ = (("version", ctypes.c_uint32), ("process", ctypes.c_int))

    class Rights(ctypes.Structure):
        _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inherited", ctypes.c_uint32))

    library = ctypes.CDLL(None, use_errno=True)
    header, rights = Header(_CAPABILITIES, 0), (Rights * 2)()
    if library.capset(ctypes.byref(header), ctypes.byref(rights)):
        raise OSError(ctypes.get_errno(), "cannot give up root's rights")
