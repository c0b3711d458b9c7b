"""Tool functions that are guarded wherever they are called."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
from typing import Any, Callable, Dict, Generic, Iterator, Optional, TypeVar, Union, overload

from ._async import AsyncRun, async_current
from ._call import Call
from ._errors import QuittanceError
from ._run import Run, current

F = TypeVar("F", bound=Callable[..., Any])

_call_id: "contextvars.ContextVar[Optional[str]]" = contextvars.ContextVar("quittance_call_id", default=None)


@contextlib.contextmanager
def call_id(name: Optional[str]) -> Iterator[None]:
    """Names the calls of tools in its block by the framework's id of the call, so that the
    framework's retry of one call is told from a second call."""
    token = _call_id.set(name)
    try:
        yield
    finally:
        _call_id.reset(token)


class Tool(Generic[F]):
    """A tool function that is guarded by the run it is called in.

    Calling it makes the call through the run whose `with` block it is in, and returns what
    the tool returned, now or when it was first made; it raises what `run.do` raises. Outside
    of such a block nothing is performed. `tool.on(run)` is the same for a run at hand.

    The arguments are those of the call by name, with their defaults; each needs a name. A
    parameter named `call` is not one of them: there the function gets its `quittance.Call`.
    """

    __name__: str

    def __init__(self, function: F, name: Optional[str] = None) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.name = name or function.__name__
        self._signature = inspect.signature(function)
        unnamed = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
        if any(p.kind in unnamed for p in self._signature.parameters.values()):
            raise TypeError("couldn't guard %s: each argument of a tool needs a name" % self.name)
        self._wants_call = "call" in self._signature.parameters
        shown = [p for n, p in self._signature.parameters.items() if n != "call"]
        self.__signature__ = self._signature.replace(parameters=shown)  # what frameworks read
        self._asynchronous = inspect.iscoroutinefunction(function)
        if self._asynchronous:
            mark = getattr(inspect, "markcoroutinefunction", None)  # Python 3.12
            if mark:
                mark(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        run: Union[Run, AsyncRun, None] = async_current.get() if self._asynchronous else current.get()
        if run is None:
            kind = "an AsyncClient's" if self._asynchronous else "a Client's"
            raise QuittanceError("couldn't call %s: it is not in the block of %s run, and nothing was performed" % (self.name, kind))
        return self.on(run)(*args, **kwargs)

    def on(self, run: Union[Run, AsyncRun]) -> Callable[..., Any]:
        """Is the tool bound to a run: a coroutine function with an AsyncRun."""
        if isinstance(run, AsyncRun):
            asynchronous = run

            async def call_async(*args: Any, **kwargs: Any) -> Any:
                arguments = self._arguments(args, kwargs)
                return (await asynchronous.do(self.name, arguments, self._performer(arguments), call_id=_call_id.get())).result

            return call_async
        plain = run

        def call_plain(*args: Any, **kwargs: Any) -> Any:
            arguments = self._arguments(args, kwargs)
            return plain.do(self.name, arguments, self._performer(arguments), call_id=_call_id.get()).result

        return call_plain

    def _arguments(self, args: Any, kwargs: Any) -> Dict[str, Any]:
        if self._wants_call and "call" in kwargs:  # **more would take it
            raise TypeError("%s: `call` is given by the guard" % self.name)
        signature = inspect.signature(self)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        arguments: Dict[str, Any] = {}
        for name, value in bound.arguments.items():
            if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                arguments.update(value)
            else:
                arguments[name] = value
        return arguments

    def _performer(self, arguments: Dict[str, Any]) -> Callable[[Call], Any]:
        def named(call: Call) -> Dict[str, Any]:
            return dict(arguments, call=call) if self._wants_call else arguments

        if self._asynchronous:

            async def perform_async(call: Call) -> Any:
                return await self.function(**named(call))

            return perform_async
        return lambda call: self.function(**named(call))


@overload
def tool(function: F) -> Tool[F]: ...
@overload
def tool(*, name: Optional[str] = None) -> Callable[[F], Tool[F]]: ...
def tool(function: Optional[F] = None, *, name: Optional[str] = None) -> Union[Tool[F], Callable[[F], Tool[F]]]:
    """Guards a tool function: `@tool`, or `@tool(name="send_payment")`. See Tool."""
    if function is not None:
        return Tool(function)
    return lambda f: Tool(f, name)
