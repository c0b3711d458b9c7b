"""The client of one server."""

from __future__ import annotations

import logging
import os
import socket
import ssl
import threading
import time
import weakref
from typing import Any, Callable, Optional, Sequence, TypeVar

from ._deliver import Deliverer
from ._errors import NothingReady, Problem, RunHeld, as_paused
from ._http import Answer, Transport, retry
from ._lease import Heartbeat
from ._occurrences import new_id
from ._run import Run
from ._spool import Spool, default_folder

T = TypeVar("T")

#: How often a held run is asked for again, in seconds: its holder may release it long before
#: its lease ends.
_HOLD_PAUSE = 1.0

#: How long, in seconds, the server holds one claim while no run is ready.
_READY_POLL = 30.0


class Client:
    """Talks to one server as the owner of one token. Safe for concurrent use.

    url is such as http://127.0.0.1:8080, token an agent's.

    worker        names this process to people; the host name and process id otherwise.
    spool         the folder of outcomes that could not be delivered. It should survive the
                  process and, in a container, be on a volume. One folder serves one account
                  of one server. The default is a folder for this server and token below
                  quittance/spool in the user's cache folder. The files hold results as the
                  tools returned them; only their owner can read them.
    patience      how long, in seconds, a request is repeated when the server cannot be
                  reached. Outcomes are repeated for ever.
    max_result    the size in bytes above which a result is sent as size and digest only.
    try_timeout   one try of one request, in seconds.
    finish_wait   how long `do` tries to deliver an outcome itself, in seconds.
    context       decides about TLS.

    Requests go straight to the server: no proxy is used, whatever the environment says
    (HTTP_PROXY, HTTPS_PROXY). A guard that cannot reach its server performs nothing, and a
    proxy that was meant for other traffic must not stand between them. Where there has to be
    one, run a forwarder and give its address as url.

    What nobody waits for, such as outcomes delivered late and heartbeats that fail, is told
    to the logger "quittance"; never a body.
    """

    def __init__(
        self, url: str, token: str, *, worker: Optional[str] = None, spool: Optional[str] = None, patience: float = 30.0,
        max_result: int = 8 << 20, try_timeout: float = 15.0, finish_wait: float = 10.0, context: Optional[ssl.SSLContext] = None,
    ) -> None:  # fmt: skip
        self._log = logging.getLogger("quittance")
        self._log.addHandler(logging.NullHandler())
        self._worker = worker or "%s/%d" % (socket.gethostname(), os.getpid())
        self._patience = patience
        self._transport = Transport(url, token, try_timeout, context)
        self._deliverer = Deliverer(self._transport, Spool(spool or default_folder(url.rstrip("/"), token)), max_result, finish_wait, self._log)
        self._stopped = self._deliverer.stopped
        self._beats: "weakref.WeakSet[Heartbeat]" = weakref.WeakSet()

    def open(
        self, run_id: str, *, agent: str, worker: Optional[str] = None, lease_seconds: int = 60, wait_held: float = 0.0, attempt_id: Optional[str] = None,
    ) -> Run:  # fmt: skip
        """Takes the lease of a run, which is new or was left by another process, and reads its
        last checkpoint. Outcomes that an earlier process could not deliver are delivered
        first. agent is what kind of agent this is; a pool claims by it. wait_held is how
        long, in seconds, to wait for a run that another process holds, such as this agent's
        own process that was killed. attempt_id is given by whoever holds the run for this
        process already, see `handed`. Raises Paused, RunHeld, RunClosed, LogBehind, NoAnswer."""
        self._deliverer.flush()
        run = Run(self, run_id, agent, worker or self._worker, lease_seconds, attempt_id)
        end = time.monotonic() + wait_held
        while True:
            try:
                answer = run._acquire()
                break
            except RunHeld:
                left = end - time.monotonic()
                if left <= 0 or self._stopped.wait(min(_HOLD_PAUSE, left)):
                    raise
        run._resume(answer)
        return run

    def claim(self, agents: Sequence[str], *, worker: Optional[str] = None, lease_seconds: int = 60, wait_ready: float = 0.0) -> Run:
        """Takes the lease of any run of one of these kinds of agent that is ready to go on.
        wait_ready is how long, in seconds, to wait for one to become ready. Raises
        NothingReady when there is none."""
        self._deliverer.flush()
        worker = worker or self._worker
        body = {"agents": list(agents), "worker": worker, "attempt_id": new_id(), "lease_seconds": lease_seconds}
        sent, poll = 0.0, 0.0
        end = time.monotonic() + wait_ready

        def send() -> Answer:
            nonlocal sent
            sent = time.monotonic()
            ms = int(poll * 1000)
            return self._transport.once("POST", "/v1/runs/claim" + ("?wait=%dms" % ms if ms else ""), body, wait=poll)

        while True:
            poll = max(0.0, min(_READY_POLL, end - time.monotonic()))
            try:
                answer = self._retry(None, send)
            except Problem as problem:
                raise as_paused("", problem)
            if answer.status != 204:
                break
            if time.monotonic() >= end:
                raise NothingReady
        run = Run(self, answer.text("run_id"), answer.text("agent"), worker, lease_seconds)
        run._took(answer, sent)
        run._resume(answer)
        return run

    def close(self) -> None:
        """Stops what runs in the background: heartbeats, so that leases run out, and the
        delivery of outcomes. Those that are still in the spool are delivered by the next
        process that opens a run."""
        self._stopped.set()
        for beat in list(self._beats):
            beat.stop()
        self._transport.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def _retry(self, patience: Optional[float], send: Callable[[], T]) -> T:
        return retry(self._patience if patience is None else patience, send, self._stopped.wait)

    def _keep(self, beat: Heartbeat) -> None:
        self._beats.add(beat)
