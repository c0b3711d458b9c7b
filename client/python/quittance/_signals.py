"""Doing one thing before a signal does what it would."""

from __future__ import annotations

import logging
import os
import signal
import threading
from typing import Any, Callable, Dict, Sequence


def release_on_signal(release: Callable[[], None], signals: Sequence[int], log: logging.Logger) -> Callable[[], None]:
    """Calls release, in a thread of its own, when one of the signals arrives, and then sends
    the signal again to whoever handled it before. Returns what takes that back."""
    before: Dict[int, Any] = {}
    started, over = threading.Event(), threading.Event()

    def work(number: int) -> None:
        try:
            release()
        except Exception as error:
            log.warning("couldn't release at a signal: %s", error)
        over.set()
        # Python runs handlers in the main thread alone: it is woken wherever it stands.
        main = threading.main_thread().ident
        if main is not None:
            signal.pthread_kill(main, number)

    def handle(number: int, frame: Any) -> None:
        if not over.is_set():
            if not started.is_set():
                started.set()
                threading.Thread(target=work, args=(number,), name="quittance-release", daemon=True).start()
            return  # a second signal does not hurry what is being released
        stop()
        previous = before[number]
        if callable(previous):
            previous(number, frame)
        elif previous != signal.SIG_IGN:
            os.kill(os.getpid(), number)

    def stop() -> None:
        for number, previous in before.items():
            if signal.getsignal(number) is handle:
                signal.signal(number, signal.SIG_DFL if previous is None else previous)

    for number in signals:
        before[number] = signal.signal(number, handle)
    return stop
