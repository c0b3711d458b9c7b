"""A run that this process holds."""

from __future__ import annotations

import contextvars
import inspect
import signal
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence

from ._call import Call, Outcome, _current, raised, returned
from ._errors import LeaseLost, NoAnswer, Problem, RunClosed, as_paused
from ._http import Answer, escape
from ._json import RawJSON, dumps, loads
from ._lease import Heartbeat
from ._occurrences import Occurrences, new_id
from ._signals import release_on_signal
from ._step import begin

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Type

    from ._client import Client

Perform = Callable[[Call], Any]


class Run:
    """A run that this process holds. Its lease is renewed in the background until it is
    released or closed. Safe for concurrent use. As a context manager it is released at the
    end of the block, unless it was closed."""

    def __init__(self, client: "Client", run_id: str, agent: str, worker: str, lease_seconds: int, attempt_id: Optional[str] = None) -> None:
        self._client, self.id, self.agent = client, run_id, agent
        self._worker, self._lease_seconds, self._attempt_id = worker, lease_seconds, attempt_id
        self._lock = threading.Condition()
        self._token = ""
        self._epoch = 0
        self._held = False
        self._leaving = False  # being released or closed: no new call is begun
        self._performing = 0  # calls under way
        self._position = ""
        self._volatile: Dict[str, List[str]] = {}
        self._calls = Occurrences()
        self._turn = 0
        self._state: Optional[str] = None
        self._beat: Optional[Heartbeat] = None
        self._outer: List["contextvars.Token[Optional[Run]]"] = []

    # What a run is.

    @property
    def epoch(self) -> int:
        """Rises with each holder of the run."""
        return self._epoch

    @property
    def turn(self) -> int:
        """Is the turn of the last checkpoint, 0 when nothing was saved yet."""
        return self._turn

    @property
    def state(self) -> Any:
        """Is the state of the last checkpoint, read anew; None when nothing was saved yet."""
        return None if self._state is None else loads(self._state)

    @property
    def state_text(self) -> Optional[str]:
        """Is that state's JSON as it was saved."""
        return self._state

    # What an agent does with it.

    def do(self, tool: str, args: Any, perform: Perform, *, call_id: Optional[str] = None, key: Optional[str] = None, context: Optional[Mapping[str, Any]] = None) -> Outcome:
        """Performs a call exactly when the server clears it, and records what became of it.

        args is a mapping that can be written as JSON, or RawJSON. perform(call) returns a
        result that can be written as JSON, or a Reference; Refused is the one exception that
        means that nothing happened. call_id is the framework's id of this call: the same id
        with the same arguments, in this process, is a retry of one call. key, a name of the
        caller's own, replaces arguments and occurrence. context tells people about the call.

        Returns the outcome, taken, replayed or new. Raises
        - Refused when it was refused definitely, now or when it was first made;
        - Paused when a person or a look-up must find out first; where the call was performed
          just now its cause is what the tool raised;
        - another Problem (LeaseLost, RunClosed, LogBehind, Conflict, Cancelled, InFlight),
          NoAnswer or ArgumentsError: nothing was performed;
        - Unrecorded: it was performed, and only the caller knows.
        What interrupts the program in perform (KeyboardInterrupt) is recorded as unknown and
        goes on.
        """
        if inspect.iscoroutinefunction(perform):
            raise TypeError("the tool %s is a coroutine function: it needs an AsyncClient" % tool)
        with begin(self, tool, args, call_id, key, context) as step:
            if step.replayed:
                return step.replay()
            if not step.guarded:
                return step.passed(returned(self._perform(step.call, perform)))
            try:
                step.call.ready()
                report = returned(self._perform(step.call, perform))
            except Exception as error:
                report = raised(error)
            except BaseException as error:
                step.interrupted(error)
                raise
            return step.record(report)

    def _perform(self, call: Call, perform: Perform) -> Any:
        token = _current.set(call)
        try:
            result = perform(call)
        finally:
            _current.reset(token)
        if inspect.iscoroutine(result):
            result.close()
            raise TypeError("the tool returned a coroutine: it needs an AsyncClient")
        return result

    def checkpoint(self, turn: int, state: Any) -> None:
        """Saves state as the run's state after the given turn, with the count of the calls
        that came back, so that a resumed run neither repeats nor skips one. Save after a
        turn is complete, not while its calls are under way."""
        text, counts = dumps(state), self._calls.counts()
        body = {"lease": self._held_token(), "state": RawJSON(text), "occurrences": counts, "log_position": self._position or None}
        self._act("PUT", "/checkpoints/%d" % turn, body)
        self._turn, self._state = turn, text

    def close(self, outcome: str = "finished") -> None:
        """Ends the run for good: finished, failed or cancelled. It is refused while an effect
        is open."""
        token = self._leave(None)
        try:
            self._act("POST", "/close", {"lease": token, "outcome": outcome, "log_position": self._position or None})
        except BaseException:
            with self._lock:
                self._leaving = False
            raise
        self._let_go()

    def release(self, timeout: Optional[float] = 30.0) -> None:
        """Gives the lease back, so that another process need not wait for its end.

        It first waits, for timeout seconds at most, for calls that are being performed:
        giving the lease back under them would leave their outcome in doubt. From its start
        no new call is begun. A run that is not held is released already."""
        try:
            token = self._leave(timeout)
        except LeaseLost:
            return
        self._let_go()
        try:
            self._act("POST", "/release", {"lease": token, "log_position": self._position or None})
        except (LeaseLost, RunClosed):
            pass

    def release_on_signal(self, grace: float = 20.0, signals: Sequence[int] = (signal.SIGTERM,)) -> Callable[[], None]:
        """Releases the run when one of the signals arrives, giving calls under way the grace
        in seconds to end, and then lets the signal do what it did before. Call what is
        returned when the run is over. Works in the main thread only, as signals do."""
        return release_on_signal(lambda: self.release(grace), signals, self._client._log)

    def wait(self, timeout: Optional[float] = None) -> None:
        """Returns when the run may go on: at once when it is not paused, else when everything
        was decided and released. Where the lease ended meanwhile it is taken again. It waits
        through outages of the server. Raises TimeoutError after timeout seconds, RunClosed
        when the run was closed, RunHeld when another process was quicker."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            poll = 30.0 if end is None else min(30.0, max(0.0, end - time.monotonic()))
            answer = self._client._retry(float("inf") if end is None else max(0.0, end - time.monotonic()), lambda: self._poll(poll))
            state = answer.text("state")
            if state == "paused":
                if end is not None and time.monotonic() >= end:
                    raise TimeoutError("the run %r is still paused" % self.id)
                continue
            if state in ("finished", "failed", "cancelled"):
                self._let_go()
                raise RunClosed(409, {"code": "run_closed", "title": "the run %r is %s" % (self.id, state), "final": True})
            if state != "running" or not self._held:
                self._acquire()
            return

    def _poll(self, seconds: float) -> Answer:
        ms = int(seconds * 1000)
        answer = self._client._transport.once("GET", self._path("?wait=%dms" % ms if ms else ""), wait=seconds)
        self._moved(answer.position)
        return answer

    # Holding it.

    def __enter__(self) -> "Run":
        self._outer.append(current.set(self))
        return self

    def __exit__(self, kind: "Optional[Type[BaseException]]", error: Optional[BaseException], trace: "Optional[TracebackType]") -> None:
        current.reset(self._outer.pop())
        try:
            self.release()
        except (Problem, NoAnswer) as failure:
            if error is None:
                raise
            self._client._log.warning("couldn't release run %s: %s", self.id, failure)

    def _path(self, rest: str = "") -> str:
        return "/v1/runs/" + escape(self.id) + rest

    def _acquire(self) -> Answer:
        """Asks for the lease. Every try carries one attempt id, so a lost answer is given
        again instead of locking this process out by its own lease."""
        sent = [0.0]
        body = {
            "agent": self.agent, "worker": self._worker, "attempt_id": self._attempt_id or new_id(), "lease_seconds": self._lease_seconds, "log_position": self._position or None,
        }  # fmt: skip

        self._attempt_id = None  # handed over once: a lease after it is this process's own

        def send() -> Answer:
            sent[0] = time.monotonic()
            return self._client._transport.once("PUT", self._path(), body)

        try:
            answer = self._client._retry(None, send)
        except Problem as problem:
            self._moved(problem.log_position)
            raise as_paused(self.id, problem)
        self._took(answer, sent[0])
        return answer

    def _took(self, answer: Answer, sent: float) -> None:
        """Stores a lease whose request was sent at the given time."""
        lease, volatile = answer.value("lease"), answer.value("volatile")
        if not isinstance(lease, dict) or not isinstance(lease.get("token"), str):
            raise NoAnswer("what came back is not an answer to open")
        token = lease["token"]
        with self._lock:
            self._token, self._epoch = token, int(lease.get("epoch") or 0)
            self._held, self._leaving = True, False
            self._volatile = volatile if isinstance(volatile, dict) else {}
            if self._beat:
                self._beat.stop()
            self._beat = Heartbeat(self.id, float(self._lease_seconds), sent, lambda within: self._renew(token, within), lambda: self._lost(token), self._client._log)
        self._client._keep(self._beat)
        self._moved(answer.position)

    def _resume(self, answer: Answer) -> None:
        """Reads the checkpoint that a lease announced. Without it the run cannot go on where it
        stood, so the lease is given back."""
        if answer.value("checkpoint") is None:
            return
        try:
            saved = self._client._retry(None, lambda: self._client._transport.once("GET", self._path("/checkpoint")))
        except BaseException:
            try:
                self.release()
            except (Problem, NoAnswer):
                pass  # it runs out
            raise
        self._turn, self._state = saved.number("turn"), saved.raw("state")
        self._calls = Occurrences(saved.value("occurrences"))

    def _renew(self, token: str, within: float) -> Answer:
        body = {"lease": token, "log_position": self._position or None}
        answer = self._client._transport.once("POST", self._path("/heartbeat"), body, within=within)
        self._moved(answer.position)
        return answer

    def _act(self, method: str, rest: str, body: Mapping[str, Any]) -> Answer:
        try:
            answer: Answer = self._client._retry(None, lambda: self._client._transport.once(method, self._path(rest), body))
        except Problem as problem:
            raise self._refused(problem)
        self._moved(answer.position)
        return answer

    def _refused(self, problem: Problem) -> Exception:
        """Notes what a refusal says about the lease, and gives it its type."""
        self._moved(problem.log_position)
        if isinstance(problem, (LeaseLost, RunClosed)):
            self._let_go()
        return as_paused(self.id, problem)

    def _moved(self, position: str) -> None:
        if position:
            self._position = position

    def _held_token(self) -> str:
        with self._lock:
            if not self._held:
                raise LeaseLost.here(self.id)
            return self._token

    def _enter(self) -> str:
        """Is the token for a call that is about to begin; _exit says that it is over."""
        with self._lock:
            if not self._held or self._leaving:
                raise LeaseLost.here(self.id)
            self._performing += 1
            return self._token

    def _exit(self) -> None:
        with self._lock:
            self._performing -= 1
            self._lock.notify_all()

    def _leave(self, timeout: Optional[float]) -> str:
        """Lets no new call begin and waits, so many seconds at most, for those under way."""
        token = self._held_token()
        with self._lock:
            self._leaving = True
            self._lock.wait_for(lambda: self._performing == 0, timeout)
        return token

    def _let_go(self) -> None:
        with self._lock:
            self._held = False
            if self._beat:
                self._beat.stop()

    def _lost(self, token: str) -> None:
        """Forgets the lease with this token, unless a newer one was taken meanwhile."""
        with self._lock:
            if self._token == token:
                self._held = False


current: "contextvars.ContextVar[Optional[Run]]" = contextvars.ContextVar("quittance_run", default=None)
