"""Signals: Ctrl-C and SIGTERM end a command at once and leave no partial file.

Python runs signal handlers in the main thread, between two bytecode instructions: not while a kernel runs, which may
take minutes, and an exception raised in a handler may be lost. Therefore another thread waits for signals and ends the
process.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable
from threading import Thread, Timer

from normalmesh.errors import path_text
from normalmesh.runtime.temporary_files import observers, remove_temporary_files, steps

#: Handled signals, and their description in the last line.
SIGNALS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
#: Longest wait in seconds for a file to be created or replaced: a network drive may never respond.
STEP_TIMEOUT = 1.0
#: Longest wait in seconds for everything, with the last line: the terminal may be stopped, or nothing reads the pipe.
TIMEOUT = 2.0

#: Functions to call before the last line is printed.
cleanups: list[Callable[[], object]] = []
_written: dict[str, None] = {}


def watch() -> None:
    """Make SIGINT and SIGTERM end the process with one line and the exit status 130 or 143.

    A signal that is ignored, as under ``nohup``, remains ignored.
    """
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    signal.set_wakeup_fd(sender.detach(), warn_on_full_buffer=False)
    observers.append(lambda path: _written.update({str(path): None}))
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    Thread(target=_end_at_signal, args=(receiver,), name="normalmesh signals", daemon=True).start()


def _end_at_signal(receiver: socket.socket) -> None:
    # Other signals arrive here too, if a handler is installed for them.
    while (number := receiver.recv(1)[0]) not in SIGNALS:
        pass
    status = 128 + number
    try:
        Timer(TIMEOUT, os._exit, [status]).start()
        steps.acquire(timeout=STEP_TIMEOUT)  # never released
        remove_temporary_files()
        _print_last_line(SIGNALS[signal.Signals(number)])
    finally:
        os._exit(status)


def _print_last_line(event: str) -> None:
    for cleanup in cleanups:
        cleanup()
    names = ", ".join(map(path_text, _written)) if len(_written) <= 10 else f"{len(_written)} files"
    what = f"after writing {names}" if _written else "nothing written"
    print(f"normalmesh: {event}, {what}", file=sys.stderr, flush=True)
