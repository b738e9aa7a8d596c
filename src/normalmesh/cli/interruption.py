"""Ctrl-C and SIGTERM: they end a command at once, whatever it is doing, and leave no file half written.

Python hands a signal to the main thread when that is between two instructions of Python: not while a kernel runs, which
may take minutes, and the exception that it raises there may be lost. So another thread waits for signals, and ends the
process.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable
from threading import Thread, Timer

from normalmesh.runtime.temporary_files import observers, remove_temporary_files, steps

WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
#: Seconds for a file to be made or to take another's place: a network's disk may never answer.
STEP_TIMEOUT = 1.0
#: Seconds for everything, with the last line: the terminal may be stopped, and nobody may read the pipe.
TIMEOUT = 2.0

#: Called before the last line.
cleanups: list[Callable[[], object]] = []
_written: dict[str, None] = {}


def watch() -> None:
    """From now on, end the process at such a signal, with one line and the exit status 130 or 143.

    A signal that is ignored, as for ``nohup``, stays so.
    """
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    signal.set_wakeup_fd(sender.detach(), warn_on_full_buffer=False)
    observers.append(lambda path: _written.update({str(path): None}))
    for number in WORDS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    Thread(target=_end_at_signal, args=(receiver,), name="normalmesh signals", daemon=True).start()


def _end_at_signal(receiver: socket.socket) -> None:
    # The numbers of other signals arrive too, if somebody handles them.
    while (number := receiver.recv(1)[0]) not in WORDS:
        pass
    status = 128 + number
    try:
        Timer(TIMEOUT, os._exit, [status]).start()
        steps.acquire(timeout=STEP_TIMEOUT)  # for good
        remove_temporary_files()
        _say_last_words(WORDS[signal.Signals(number)])
    finally:
        os._exit(status)


def _say_last_words(word: str) -> None:
    for cleanup in cleanups:
        cleanup()
    names = ", ".join(_written) if len(_written) <= 10 else f"{len(_written)} files"
    what = f"after writing {names}" if _written else "nothing written"
    print(f"normalmesh: {word}, {what}", file=sys.stderr, flush=True)
