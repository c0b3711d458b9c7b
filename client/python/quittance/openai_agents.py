"""Guarded function tools for the OpenAI Agents SDK.

    from quittance.openai_agents import function_tool

    @function_tool
    async def send_payment(vendor: str, invoice: str, amount: str, currency: str) -> dict:
        call = quittance.current_call()
        ...

    async with client.open("ap/INV-9", agent="ap-bot") as run:
        await Runner.run(agent, "Pay INV-9")
"""

from __future__ import annotations

import functools
import importlib
import inspect
import weakref
from typing import Any, Callable, Optional

from ._async import AsyncRun
from ._call import Call, current_call
from ._errors import QuittanceError, Refused
from ._frameworks import RunSource, let_through, the_run, told
from ._json import RawJSON


class _NeverCalled(Refused):
    """The framework refused the arguments: the tool function was not called."""


def function_tool(function: Optional[Callable[..., Any]] = None, *, run: RunSource = None, **options: Any) -> Any:
    """Is the SDK's `function_tool`, guarded by run or by the run whose `async with` block the
    agent runs in (an AsyncClient's). options are the SDK's; `failure_error_function` is not
    one of them, because it would hide from the guard that a call failed.

    The SDK's tool-call id tells its retry of a call from a second call. A definite refusal is
    what the model is told. Paused, and every other error of the guard, ends `Runner.run`: it
    is raised there as what it is.
    """
    if function is None:
        return lambda f: function_tool(f, run=run, **options)
    if "failure_error_function" in options:
        raise TypeError("a guarded tool has no failure_error_function")
    agents = importlib.import_module("agents")
    AgentsException, ModelBehaviorError = agents.AgentsException, agents.ModelBehaviorError

    entered = _Entered(function)
    tool: Any = agents.function_tool(entered.function, failure_error_function=None, **options)
    perform_unguarded = tool.on_invoke_tool

    async def on_invoke_tool(context: Any, text: str) -> Any:
        try:
            arguments = RawJSON(text or "{}")
        except ValueError:
            raise ModelBehaviorError("the arguments of %s are not JSON" % tool.name) from None

        async def perform(call: Call) -> Any:
            try:
                return await perform_unguarded(context, text)
            except ModelBehaviorError as error:
                if call in entered.calls:
                    raise
                raise _NeverCalled({"message": str(error)}) from error

        try:
            held = the_run(run, tool.name)
            if not isinstance(held, AsyncRun):
                raise QuittanceError("couldn't call %s: it needs an AsyncClient's run, and nothing was performed" % tool.name)
            return (await held.do(tool.name, arguments, perform, call_id=getattr(context, "tool_call_id", None))).result
        except Refused as refused:
            return told(refused.reason)
        except LookupError as error:  # taken, and too large to be kept
            return str(error)
        except QuittanceError as error:
            raise let_through(error, AgentsException) from error.__cause__

    tool.on_invoke_tool = on_invoke_tool
    return tool


class _Entered:
    """Wraps a tool function so that it is known for which calls it was entered."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.calls: Any = weakref.WeakSet()
        calls = self.calls

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def noticed(*args: Any, **kwargs: Any) -> Any:
                calls.add(current_call())
                return await function(*args, **kwargs)

            self.function: Callable[..., Any] = noticed
        else:

            @functools.wraps(function)
            def noticed_plain(*args: Any, **kwargs: Any) -> Any:
                calls.add(current_call())
                return function(*args, **kwargs)

            self.function = noticed_plain
