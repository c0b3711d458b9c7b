"""The delivery of outcomes: now, or from the disk until the server has them."""

from __future__ import annotations

import logging
import threading
import time
from typing import NamedTuple, Optional, Tuple

from ._errors import NoAnswer, NotFound, Problem, QuittanceError
from ._http import Transport, backoff, escape, retry
from ._spool import Finish, Spool

#: Bounds what opening a run spends on the outcomes of earlier processes, in seconds.
_FLUSH_TIME = 5.0


class Delivered(NamedTuple):
    """What the server said to a finish."""

    state: str
    position: str


class Rejected(QuittanceError):
    """The server will never take this outcome as it is."""


class Deliverer:
    """Hands outcomes to the server, and empties the spool in the background while there is
    something in it."""

    def __init__(self, transport: Transport, spool: Spool, max_result: int, finish_wait: float, log: logging.Logger) -> None:
        self._transport, self._spool, self._log = transport, spool, log
        self._max_result, self._finish_wait = max_result, finish_wait
        self._lock = threading.Lock()
        self._running = False
        self._more = False  # something was spooled since the folder was last listed
        self.stopped = threading.Event()

    def deliver(self, finish: Finish, position: str) -> Tuple[Optional[Delivered], bool]:
        """Returns the server's answer and True; None and True where the outcome waits in the
        spool; None and False where it could be neither delivered nor kept.

        When the first try fails the outcome is spooled before anything else, then tried for
        a while, then left to the background."""
        fitting = self._fit(finish)
        try:
            return self._finish(fitting, position)[0], True
        except (Problem, NoAnswer, Rejected):
            pass
        # A position is for a server that answers at once; a redelivery must be kept even by
        # one that was restored meanwhile.
        name: Optional[str] = None
        try:
            name = self._spool.save(fitting)
        except OSError as error:
            self._log.error("an outcome of run %s couldn't be spooled: %s", finish.run_id, error)
        try:
            answer = retry(self._finish_wait, lambda: self._finish(fitting, "")[0], self.stopped.wait)
        except (Problem, NoAnswer, Rejected) as error:
            if name is None:
                return None, False
            self._log.warning("an outcome waits in the spool: run %s, effect %s: %s", finish.run_id, finish.effect_id, error)
            self.kick()
            return None, True
        if name is not None:
            self._forget(name)
        return answer, True

    def _fit(self, finish: Finish) -> Finish:
        # A character is at least a byte: the encoded length is looked at only near the limit.
        if finish.result is None or len(finish.result) * 4 <= self._max_result:
            return finish
        return finish.without_result() if len(finish.result.encode("utf-8", "surrogatepass")) > self._max_result else finish

    def _forget(self, name: str) -> None:
        try:
            self._spool.remove(name)
        except OSError as error:  # delivered once more, which changes nothing
            self._log.warning("a delivered outcome stays in the spool: %s: %s", name, error)

    def _finish(self, finish: Finish, position: str) -> Tuple[Delivered, Finish]:
        """Sends an outcome once, and where what was sent is refused for its size or form,
        once more without result and error. It returns what was sent last. The server has
        it also where the fence is stale: it is kept as evidence."""
        try:
            return self._send(finish, position), finish
        except Problem as problem:
            if problem.code == "stale_fence" or (problem.status == 409 and problem.final):
                return Delivered(problem.state, problem.log_position), finish
            if problem.status in (400, 413, 422) and (finish.result is not None or finish.error is not None):
                return self._finish(finish.without_result(), position)
            if problem.status in (400, 413, 422) or isinstance(problem, NotFound):
                raise Rejected(str(problem)) from problem
            raise

    def _send(self, finish: Finish, position: str) -> Delivered:
        """Names the effect by its id and, where the server does not know that (it was
        restored from a backup), by its key: then the outcome is kept without an intent."""
        body = dict(finish.body(), log_position=position or None)
        try:
            answer = self._transport.once("POST", "/v1/effects/%s/finish" % escape(finish.effect_id), body)
        except NotFound:
            by_key = dict(body, run_id=finish.run_id, key=finish.key)
            answer = self._transport.once("POST", "/v1/effects/finish", by_key)
        return Delivered(answer.text("state"), answer.position)

    def kick(self) -> None:
        """Says that there is something in the spool: it starts the background delivery, or has
        the one that runs look once more before it ends."""
        with self._lock:
            self._more = True
            if self._running or self.stopped.is_set():
                return
            self._running = True
        threading.Thread(target=self._loop, name="quittance-spool", daemon=True).start()

    def _loop(self) -> None:
        tries = 0
        while True:
            with self._lock:
                self._more = False
            left = self._once(None)
            with self._lock:
                if (left == 0 and not self._more) or self.stopped.is_set():
                    self._running = False
                    return
            # Slower and slower, to half a minute: an outage may last for hours.
            self.stopped.wait(backoff(tries, min(tries, 25)))
            tries += 1

    def flush(self) -> None:
        """Delivers what earlier processes left, so that a run is opened with what is known,
        and leaves the rest to the background."""
        if self._once(time.monotonic() + _FLUSH_TIME) > 0:
            self.kick()

    def _once(self, until: Optional[float]) -> int:
        """Tries everything in the spool and returns how much is left."""
        try:
            names = self._spool.names()
        except OSError as error:
            self._log.error("couldn't list the spool: %s", error)
            return 0
        left = 0
        for i, name in enumerate(names):
            if self.stopped.is_set() or (until is not None and time.monotonic() >= until):
                return len(names) - i + left
            try:
                self._one(name)
            except NoAnswer:
                return len(names) - i + left  # the others would not get through either
            except (Problem, OSError) as error:
                self._log.warning("an outcome stays in the spool: %s: %s", name, error)
                left += 1
        return left

    def _one(self, name: str) -> None:
        """Delivers one file and removes it, or sets it aside when it is refused."""
        try:
            finish = self._spool.load(name)
        except (ValueError, RecursionError) as error:
            self._log.error("a spooled outcome can't be read and is set aside: %s: %s", name, error)
            self._spool.set_aside(name)
            return
        if finish is None:
            return
        try:
            _, sent = self._finish(finish, "")
            whole = sent.result is not None or finish.result is None
        except Rejected:
            whole = False
        if not whole:
            # The server has less than is here: what is missing stays for a person.
            self._spool.reject(name, finish)
            self._log.warning("an outcome was refused and is set aside: %s, run %s, effect %s", name, finish.run_id, finish.effect_id)
        self._spool.remove(name)
