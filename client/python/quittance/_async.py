"""The same guard for asyncio.

The protocol runs in threads of the client's own, so that there is one implementation of
it; the tool runs in the event loop.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import signal
import ssl
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Coroutine, Generator, List, Mapping, Optional, Sequence, TypeVar, cast

from ._call import Call, Outcome, Report, _current, raised, returned
from ._client import Client
from ._errors import NoAnswer, Problem
from ._run import Perform, Run
from ._step import Step, begin

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Type

T = TypeVar("T")

#: How many requests may be under way at once.
_THREADS = 32

#: How long one look of `AsyncRun.wait` lasts, in seconds: a cancelled wait leaves its look
#: behind.
_LOOK = 5.0


class AsyncClient:
    """Is `quittance.Client` for asyncio; see there for the options."""

    def __init__(
        self, url: str, token: str, *, worker: Optional[str] = None, spool: Optional[str] = None, patience: float = 30.0,
        max_result: int = 8 << 20, try_timeout: float = 15.0, finish_wait: float = 10.0, context: Optional[ssl.SSLContext] = None,
    ) -> None:  # fmt: skip
        self._client = Client(
            url, token, worker=worker, spool=spool, patience=patience, max_result=max_result, try_timeout=try_timeout,
            finish_wait=finish_wait, context=context,
        )  # fmt: skip
        self._threads = ThreadPoolExecutor(_THREADS, "quittance")

    def open(
        self, run_id: str, *, agent: str, worker: Optional[str] = None, lease_seconds: int = 60, wait_held: float = 0.0, attempt_id: Optional[str] = None,
    ) -> "Opening":  # fmt: skip
        """Is `Client.open`, to be awaited or used in `async with`."""
        return Opening(lambda: self._opened(functools.partial(
            self._client.open, run_id, agent=agent, worker=worker, lease_seconds=lease_seconds, wait_held=wait_held, attempt_id=attempt_id)))  # fmt: skip

    def claim(self, agents: Sequence[str], *, worker: Optional[str] = None, lease_seconds: int = 60, wait_ready: float = 0.0) -> "Opening":
        """Is `Client.claim`, to be awaited or used in `async with`."""
        return Opening(lambda: self._opened(functools.partial(self._client.claim, agents, worker=worker, lease_seconds=lease_seconds, wait_ready=wait_ready)))

    async def _opened(self, open: Callable[[], Run]) -> "AsyncRun":
        opening = self._start(open)
        try:
            return AsyncRun(self, await asyncio.shield(opening))
        except asyncio.CancelledError:
            opening.add_done_callback(self._unwanted)
            raise

    def _unwanted(self, opening: "asyncio.Future[Run]") -> None:
        """Gives a run back that nobody waits for any more."""
        if not opening.cancelled() and opening.exception() is None:
            self._threads.submit(opening.result().release, 0.0)

    async def close(self) -> None:
        """Is `Client.close`."""
        self._client.close()
        self._threads.shutdown(wait=False)

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self.close()

    def _start(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        return asyncio.get_running_loop().run_in_executor(self._threads, work)


class Opening:
    """A run that is about to be opened."""

    def __init__(self, open: Callable[[], Coroutine[Any, Any, "AsyncRun"]]) -> None:
        self._open = open
        self._run: Optional[AsyncRun] = None

    def __await__(self) -> Generator[Any, None, "AsyncRun"]:
        return self._open().__await__()

    async def __aenter__(self) -> "AsyncRun":
        self._run = await self._open()
        return await self._run.__aenter__()

    async def __aexit__(self, kind: "Optional[Type[BaseException]]", error: Optional[BaseException], trace: "Optional[TracebackType]") -> None:
        if self._run is not None:
            await self._run.__aexit__(kind, error, trace)


class AsyncRun:
    """Is `quittance.Run` for asyncio; see there."""

    def __init__(self, client: AsyncClient, run: Run) -> None:
        self._client, self._run = client, run
        self._outer: "List[contextvars.Token[Any]]" = []

    @property
    def id(self) -> str:
        return self._run.id

    @property
    def epoch(self) -> int:
        return self._run.epoch

    @property
    def turn(self) -> int:
        return self._run.turn

    @property
    def state(self) -> Any:
        return self._run.state

    @property
    def state_text(self) -> Optional[str]:
        return self._run.state_text

    async def do(self, tool: str, args: Any, perform: Perform, *, call_id: Optional[str] = None, key: Optional[str] = None, context: Optional[Mapping[str, Any]] = None) -> Outcome:
        """Is `Run.do`. perform may be a coroutine function, which is cancelled at the deadline,
        or a plain one, which runs in a thread and is waited for. When this call is cancelled
        the outcome is recorded all the same: of a coroutine as unknown, of a thread as what
        it comes to."""
        beginning = self._client._start(lambda: begin(self._run, tool, args, call_id, key, context))
        try:
            step = await asyncio.shield(beginning)
        except asyncio.CancelledError:
            beginning.add_done_callback(_not_performed)
            raise
        if step.replayed:
            with step:
                return step.replay()
        if inspect.iscoroutinefunction(perform):
            return await self._awaited(step, lambda: cast("Awaitable[Any]", perform(step.call)))
        working: "asyncio.Future[Any]" = asyncio.get_running_loop().run_in_executor(None, contextvars.copy_context().run, _in_thread, step, perform)
        try:
            result = await asyncio.shield(working)
        except asyncio.CancelledError:
            working.add_done_callback(functools.partial(_not_awaited, step))
            raise
        if isinstance(result, Outcome):
            return result
        begun: Awaitable[Any] = result
        return await self._awaited(step, lambda: begun)

    async def _awaited(self, step: Step, start: Callable[[], Awaitable[Any]]) -> Outcome:
        """Runs a tool in the event loop and records what became of it."""
        if not step.guarded:
            with step:
                return step.passed(returned(await _with_current(step.call, start)))
        try:
            step.call.ready()
            report = returned(await _in_time(step.call, start))
        except Exception as error:
            report = raised(error)
        except BaseException as error:
            # Whoever asked has gone; what happened is recorded all the same.
            self._client._threads.submit(_interrupted, step, error)
            raise
        return await asyncio.shield(self._client._start(lambda: _record(step, report)))

    async def checkpoint(self, turn: int, state: Any) -> None:
        """Is `Run.checkpoint`."""
        await self._client._start(lambda: self._run.checkpoint(turn, state))

    async def close(self, outcome: str = "finished") -> None:
        """Is `Run.close`."""
        await self._client._start(lambda: self._run.close(outcome))

    async def release(self, timeout: Optional[float] = 30.0) -> None:
        """Is `Run.release`."""
        await asyncio.shield(self._client._start(lambda: self._run.release(timeout)))

    def release_on_signal(self, grace: float = 20.0, signals: Sequence[int] = (signal.SIGTERM,)) -> Callable[[], None]:
        """Is `Run.release_on_signal`."""
        return self._run.release_on_signal(grace, signals)

    async def wait(self, timeout: Optional[float] = None) -> None:
        """Is `Run.wait`."""
        left = timeout
        while True:
            look = _LOOK if left is None else min(_LOOK, left)
            try:
                return await self._client._start(functools.partial(self._run.wait, look))
            except (TimeoutError, NoAnswer):
                if left is not None:
                    left -= look
                    if left <= 0:
                        raise

    async def __aenter__(self) -> "AsyncRun":
        self._outer.append(async_current.set(self))
        return self

    async def __aexit__(self, kind: "Optional[Type[BaseException]]", error: Optional[BaseException], trace: "Optional[TracebackType]") -> None:
        async_current.reset(self._outer.pop())
        try:
            await self.release()
        except (Problem, NoAnswer) as failure:
            if error is None:
                raise
            self._client._client._log.warning("couldn't release run %s: %s", self.id, failure)


def _record(step: Step, report: Report) -> Outcome:
    with step:
        return step.record(report)


def _interrupted(step: Step, error: BaseException) -> None:
    with step:
        step.interrupted(error)


def _not_performed(beginning: "asyncio.Future[Step]") -> None:
    if not beginning.cancelled() and beginning.exception() is None:
        beginning.result().not_performed()


def _in_thread(step: Step, perform: Perform) -> Any:
    """Runs a plain tool and records what became of it. One that returns something to be awaited
    has only begun: that is returned."""
    token = _current.set(step.call)
    try:
        if step.guarded:
            step.call.ready()
        result = perform(step.call)
        if inspect.isawaitable(result):
            return result
        report = returned(result)
    except Exception as error:
        if not step.guarded:
            step.end()
            raise
        report = raised(error)
    finally:
        _current.reset(token)
    with step:
        return step.record(report) if step.guarded else step.passed(report)


def _not_awaited(step: Step, working: "asyncio.Future[Any]") -> None:
    """Ends a call whose tool was never awaited."""
    if working.cancelled() or working.exception() is not None or isinstance(working.result(), Outcome):
        return
    if inspect.iscoroutine(working.result()):
        working.result().close()
    step.not_performed()


async def _with_current(call: Call, start: Callable[[], Awaitable[Any]]) -> Any:
    token = _current.set(call)
    try:
        return await start()
    finally:
        _current.reset(token)


async def _in_time(call: Call, start: Callable[[], Awaitable[Any]]) -> Any:
    """Cancels a tool at its deadline. One that comes back all the same has its result kept."""
    task = asyncio.ensure_future(_with_current(call, start))
    try:
        done, _ = await asyncio.wait({task}, timeout=call.remaining())
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # seen
        raise
    if not done:
        task.cancel()
        await asyncio.wait({task})
        if task.cancelled():
            raise TimeoutError("the call did not come back before its deadline")
    if task.cancelled():
        raise RuntimeError("the call was cancelled")
    return task.result()


async_current: "contextvars.ContextVar[Optional[AsyncRun]]" = contextvars.ContextVar("quittance_async_run", default=None)

