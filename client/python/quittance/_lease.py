"""The lease of a run: renewed while the run is held, and given back."""

from __future__ import annotations

import logging
import threading
import time
from typing import Callable, Optional

from ._errors import LeaseLost, NoAnswer, Problem, RunClosed
from ._http import Answer

#: How long a renewal may take, in seconds, when the lease has ended by then: a process that
#: was stopped for a while may still hold it by the server's clock.
_LAST_TRY = 1.0


class Heartbeat:
    """Renews one lease each third of its length, in a thread of its own.

    It stops when the server says that the lease is lost, when no renewal got through for a
    whole lease and _LAST_TRY, by this process's own clock, or when it is told to. Calls that
    are being performed go on: their outcome is worth more than their fence.
    """

    def __init__(self, name: str, length: float, sent: float, renew: Callable[[float], Answer], lost: Callable[[], None], log: logging.Logger) -> None:
        self._name, self._length, self._renew, self._lost, self._log = name, length, renew, lost, log
        self._until = sent + length
        self._stop = threading.Event()
        threading.Thread(target=self._beat, name="quittance-lease", daemon=True).start()

    def stop(self) -> None:
        self._stop.set()

    def _beat(self) -> None:
        pause = self._length / 3
        while not self._stop.wait(max(0.0, min(pause, self._until - time.monotonic()))):
            started = time.monotonic()
            error: Optional[Exception] = None
            try:
                self._renew(max(self._until - started, _LAST_TRY))
            except (Problem, NoAnswer) as failure:
                error = failure
            if self._stop.is_set():
                return
            if error is None:
                self._until, pause = started + self._length, self._length / 3
            elif isinstance(error, (LeaseLost, RunClosed)) or time.monotonic() >= self._until:
                self._log.warning("the lease of run %s was lost: %s", self._name, error)
                self._lost()
                return
            else:
                # Renewals that fail are repeated quickly: what is left of the lease is all
                # the time there is.
                self._log.info("a heartbeat of run %s failed: %s", self._name, error)
                pause = min(pause, max(self._length / 10, 0.1))
