"""Guarded tools for LangChain and LangGraph.

    from quittance.langchain import guard

    with client.open("ap/INV-9", agent="ap-bot"):
        graph = create_agent(model, [guard(send_payment), search])
        graph.invoke({"messages": [...]}, config)

Inside the tool `quittance.current_call()` gives the vendor's key and the deadline.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any, Callable, Dict, List, Optional, Set, Type

from ._async import AsyncRun
from ._call import Call, Outcome
from ._errors import Paused, QuittanceError, Refused
from ._frameworks import RunSource, let_through, the_run, told
from ._run import Run
from ._tool import _call_id, call_id


def guard(tool: Any, run: RunSource = None, *, name: Optional[str] = None) -> Any:
    """Is a LangChain tool that is guarded by run, or by the run whose `with` block the call is
    made in: `invoke` by a Client's run, `ainvoke` by an AsyncClient's.

    tool is a BaseTool, such as `@tool` makes; only the arguments that a model gives are part
    of the call, not those that the framework injects. Its own `handle_tool_error` is passed
    over, because it would hide from the guard that a call failed. name is the tool's name in
    the policy, where it is another.

    The tool-call id tells a framework's retry of a call from a second call. A definite
    refusal is what the model is told. Paused never reaches it: in a LangGraph graph with a
    checkpointer the graph is interrupted, with what the run waits for as the value, and makes
    the same call again when it is resumed; elsewhere Paused is raised, in a form that graphs
    do not turn into a message. The same holds for every other error of the guard.
    """
    tools = importlib.import_module("langchain_core.tools")
    guarded = _Guarded(tool, run, name or tool.name, tools.ToolException)
    structured: Any = tools.StructuredTool

    class GuardedTool(structured):  # type: ignore[misc]
        def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
            with call_id(_id(input)):
                return super().invoke(input, config, **kwargs)

        async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
            with call_id(_id(input)):
                return await super().ainvoke(input, config, **kwargs)

    return GuardedTool.from_function(
        func=guarded.plain, coroutine=guarded.asynchronous, name=tool.name, description=tool.description, args_schema=tool.args_schema,
        return_direct=tool.return_direct, response_format=getattr(tool, "response_format", "content"), handle_tool_error=True,
        infer_schema=False,
    )  # fmt: skip


def _id(input: Any) -> Optional[str]:
    """Is the id of a ToolCall; other input has none."""
    found = input.get("id") if isinstance(input, dict) and input.get("type") == "tool_call" else None
    return found if isinstance(found, str) else None


class _Guarded:
    def __init__(self, tool: Any, run: RunSource, name: str, refused: Type[Exception]) -> None:
        self._tool, self._run, self._name, self._refused = tool, run, name, refused
        self._given = _given(tool)
        self._pair = getattr(tool, "response_format", "content") == "content_and_artifact"

    def plain(self, **arguments: Any) -> Any:
        def attempt() -> Any:
            run = the_run(self._run, self._name)
            if not isinstance(run, Run):
                raise QuittanceError("couldn't call %s: invoke needs a Client's run, and nothing was performed" % self._name)
            return self._result(run.do(self._name, self._arguments(arguments), self._performer(arguments), call_id=_call_id.get()))

        while True:
            try:
                return attempt()
            except QuittanceError as error:
                self._stop(error)

    async def asynchronous(self, **arguments: Any) -> Any:
        while True:
            try:
                run = the_run(self._run, self._name)
                if not isinstance(run, AsyncRun):
                    raise QuittanceError("couldn't call %s: ainvoke needs an AsyncClient's run, and nothing was performed" % self._name)
                outcome = await run.do(self._name, self._arguments(arguments), self._async_performer(arguments), call_id=_call_id.get())
                return self._result(outcome)
            except QuittanceError as error:
                self._stop(error)

    def _arguments(self, arguments: Dict[str, Any]) -> Dict[str, Any]:
        return {name: value for name, value in arguments.items() if self._given is None or name in self._given}

    def _performer(self, arguments: Dict[str, Any]) -> Callable[[Call], Any]:
        function = getattr(self._tool, "func", None) or self._tool._run
        return lambda call: function(**arguments, **_config(function))

    def _async_performer(self, arguments: Dict[str, Any]) -> Callable[[Call], Any]:
        function = getattr(self._tool, "coroutine", None)
        if function is None and getattr(self._tool, "func", None) is not None:
            return self._performer(arguments)
        coroutine: Callable[..., Any] = function or self._tool._arun

        async def perform(call: Call) -> Any:
            return await coroutine(**arguments, **_config(coroutine))

        return perform

    def _result(self, outcome: Outcome) -> Any:
        try:
            result = outcome.result
        except LookupError as error:  # taken, and too large to be kept
            result = [str(error), None] if self._pair else str(error)
        return tuple(result) if self._pair and isinstance(result, list) else result

    def _stop(self, error: QuittanceError) -> None:
        """Raises what ends the call here; returns when the same call is to be made again."""
        if isinstance(error, Refused):
            raise self._refused(told(error.reason)) from error
        bubble = _bubble()
        if isinstance(error, Paused) and bubble is not None and _interrupted(error, bubble):
            return
        raise let_through(error, bubble) from error.__cause__


def _given(tool: Any) -> Optional[Set[str]]:
    """Is the names of the arguments that a model gives; None where they cannot be told."""
    schema = getattr(tool, "tool_call_schema", None)
    if isinstance(schema, dict):
        return set(schema.get("properties", {}))
    fields = getattr(schema, "model_fields", None) or getattr(schema, "__fields__", None)
    if fields is not None:
        return set(fields)
    args = getattr(tool, "args", None)
    return set(args) if args is not None else None


def _config(function: Callable[..., Any]) -> Dict[str, Any]:
    """Is the framework's configuration for a tool that has a parameter for it."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}
    names: List[str] = [n for n, p in parameters.items() if "RunnableConfig" in str(p.annotation)]
    if not names:
        return {}
    return {names[0]: importlib.import_module("langchain_core.runnables.config").ensure_config()}


def _bubble() -> Optional[Type[Any]]:
    """Is the kind of error that a graph lets pass, where there are graphs."""
    try:
        found: Type[Any] = importlib.import_module("langgraph.errors").GraphBubbleUp
    except ImportError:
        return None
    return found


def _interrupted(paused: Paused, bubble: Type[Any]) -> bool:
    """Interrupts the graph; True once it was resumed, False where there is nothing to
    interrupt."""
    try:
        importlib.import_module("langgraph.types").interrupt(
            {
                "quittance": "paused",
                "run_id": paused.run_id,
                "waiting_for": [{"effect_id": w.effect_id, "reason": w.reason, "tool": w.tool, "url": w.url} for w in paused.waiting_for],
            }
        )
    except bubble:
        raise
    except Exception:  # not within a graph that can be interrupted
        return False
    return True
