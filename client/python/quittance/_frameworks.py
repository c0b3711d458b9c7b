"""What the adapters of all frameworks share."""

from __future__ import annotations

from typing import Any, Callable, Optional, Type, TypeVar, Union, cast

from ._async import AsyncRun, async_current
from ._errors import QuittanceError
from ._run import Run, current

E = TypeVar("E", bound=QuittanceError)

#: A run, something that gives one when a tool is called, or None for the run whose `with`
#: block the call is made in.
RunSource = Union[Run, AsyncRun, Callable[[], Union[Run, AsyncRun]], None]


def the_run(source: RunSource, tool: str) -> Union[Run, AsyncRun]:
    """Is the run that a call belongs to. Raises QuittanceError where there is none."""
    run: Any = source if isinstance(source, (Run, AsyncRun)) or source is None else source()
    run = run or async_current.get() or current.get()
    if run is None:
        raise QuittanceError("couldn't call %s: it is not in the block of a run, and nothing was performed" % tool)
    found: Union[Run, AsyncRun] = run
    return found


def let_through(error: E, base: Optional[Type[Any]]) -> E:
    """Is the same error with one more base class: one that a framework lets through, where it
    would show any other to the model. `except Paused` still catches it."""
    if base is None or isinstance(error, base):
        return error
    kind = cast("Type[E]", type(type(error).__name__, (type(error), base), {"__module__": type(error).__module__}))
    passed = kind.__new__(kind)
    passed.__dict__.update(error.__dict__)
    passed.args = error.args
    passed.__cause__, passed.__context__ = error.__cause__, error.__context__
    return passed


def told(reason: Any) -> str:
    """Is what a model is told of a definite refusal: an outcome like another."""
    return "Refused, it did not happen: %s" % (reason,)
