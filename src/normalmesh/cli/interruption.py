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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread

from normalmesh.runtime.temporary_files import observers, remove_temporary_files, steps

WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
#: Seconds for the last line: the terminal may be stopped, and nobody may read the pipe.
PATIENCE = 0.5
#: Seconds for a file to be made or to take another's place: a network's disk may never answer.
LONGEST_STEP = 1.0
#: Files that are named in it.
FEW = 10

_written: dict[str, None] = {}


def _nothing_to_tidy() -> None:
    pass


_tidy: Callable[[], None] = _nothing_to_tidy


def watch() -> None:
    """From now on such a signal ends the process with one line and the exit status 130 or 143.

    A signal that is ignored, as for ``nohup``, stays so.
    """
    waiting, woken = socket.socketpair()
    woken.setblocking(False)
    signal.set_wakeup_fd(woken.detach(), warn_on_full_buffer=False)
    observers.append(lambda path: _written.update({str(path): None}))
    for number in WORDS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    Thread(target=_end_when_told, args=(waiting,), name="normalmesh signals", daemon=True).start()


@contextmanager
def tidying(tidy: Callable[[], None]) -> Iterator[None]:
    """What to do before the last line when work inside is interrupted."""
    global _tidy
    before, _tidy = _tidy, tidy
    try:
        yield
    finally:
        _tidy = before


def _end_when_told(waiting: socket.socket) -> None:
    # Others come here too, if somebody handles them.
    while (number := waiting.recv(1)[0]) not in WORDS:
        pass
    try:
        steps.acquire(timeout=LONGEST_STEP)  # for good
        remove_temporary_files()
        speaker = Thread(target=_say_last_words, args=(WORDS[signal.Signals(number)],), daemon=True)
        speaker.start()
        speaker.join(PATIENCE)
    finally:
        os._exit(128 + number)


def _say_last_words(word: str) -> None:
    _tidy()
    names = ", ".join(_written) if len(_written) <= FEW else f"{len(_written)} files"
    what = f"after writing {names}" if _written else "nothing written"
    print(f"normalmesh: {word}, {what}", file=sys.stderr, flush=True)
