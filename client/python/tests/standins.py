"""Stand-ins for the frameworks, by their documented interfaces: as much of each as the
adapters meet, and the ways in which each turns errors into messages for a model."""

from __future__ import annotations

import inspect
import json
import sys
import types
from typing import Any, Callable, Dict, Iterator, List, Optional
from unittest import mock


class ToolException(Exception):
    """langchain_core.tools: becomes an observation where handle_tool_error is set."""


class Schema:
    """A tool's argument schema; injected arguments are not in what a model is shown."""

    def __init__(self, fields: List[str]) -> None:
        self.model_fields = {name: object() for name in fields}


class StructuredTool:
    """langchain_core.tools.StructuredTool."""

    def __init__(self, **fields: Any) -> None:
        self.return_direct, self.response_format, self.handle_tool_error = False, "content", False
        self.func: Optional[Callable[..., Any]] = None
        self.coroutine: Optional[Callable[..., Any]] = None
        self.__dict__.update(fields)

    @classmethod
    def from_function(cls, infer_schema: bool = True, **fields: Any) -> "StructuredTool":
        assert not infer_schema and fields["args_schema"] is not None
        return cls(**fields)

    @property
    def tool_call_schema(self) -> Any:
        return Schema([n for n in self.args_schema.model_fields if not n.startswith("injected_")])  # type: ignore[attr-defined]

    def _prepared(self, input: Any) -> "tuple[Dict[str, Any], Optional[str]]":
        if isinstance(input, dict) and input.get("type") == "tool_call":
            return dict(input["args"]), input["id"]
        return dict(input), None

    def _handled(self, error: ToolException, call_id: Optional[str]) -> Any:
        if not self.handle_tool_error:
            raise error
        return self._message(error.args[0], call_id, "error")

    def _message(self, content: Any, call_id: Optional[str], status: str) -> Any:
        artifact = None
        if status == "success" and self.response_format == "content_and_artifact":
            content, artifact = content
        return {"content": content, "artifact": artifact, "tool_call_id": call_id, "status": status} if call_id else content

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        arguments, call_id = self._prepared(input)
        try:
            assert self.func is not None
            return self._message(self.func(**arguments), call_id, "success")
        except ToolException as error:
            return self._handled(error, call_id)

    async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        arguments, call_id = self._prepared(input)
        try:
            assert self.coroutine is not None
            return self._message(await self.coroutine(**arguments), call_id, "success")
        except ToolException as error:
            return self._handled(error, call_id)


class GraphBubbleUp(Exception):
    """langgraph.errors: what a graph lets pass."""


class GraphInterrupt(GraphBubbleUp):
    """langgraph.errors: what interrupt raises."""


class Graph:
    """A LangGraph graph of one ToolNode, with a checkpointer unless told: it is interrupted,
    and makes its node again when it is resumed."""

    def __init__(self, checkpointer: bool = True) -> None:
        self.checkpointer = checkpointer
        self.resumes: Optional[Iterator[Any]] = None

    def interrupt(self, value: Any) -> Any:
        if self.resumes is None or not self.checkpointer:
            raise RuntimeError("Called get_config outside of a runnable context")
        for resume in self.resumes:
            return resume
        raise GraphInterrupt(value)

    def invoke(self, tool: Any, call: Dict[str, Any], *resumes: Any) -> Any:
        self.resumes = iter(resumes)
        try:
            return tool.invoke(call)
        except GraphBubbleUp:
            raise
        except Exception as error:  # as a ToolNode does
            return {"content": "Error: %r\n Please fix your mistakes." % error, "status": "error"}
        finally:
            self.resumes = None


class AgentsException(Exception):
    """agents: what Runner.run raises as it is."""


class ModelBehaviorError(AgentsException):
    """agents: the model did what it must not."""


class UserError(AgentsException):
    """agents: what Runner.run makes of every other error."""


class FunctionTool:
    """agents.FunctionTool, made by function_tool."""

    def __init__(self, function: Callable[..., Any], name_override: Optional[str], failure_error_function: Any) -> None:
        self.name = name_override or function.__name__
        names = list(inspect.signature(function).parameters)

        async def on_invoke_tool(context: Any, text: str) -> Any:
            try:
                arguments = json.loads(text) if text else {}
                if sorted(arguments) != sorted(names):
                    raise ModelBehaviorError("Invalid JSON input for tool %s" % self.name)
                result = function(**arguments)
                return await result if inspect.isawaitable(result) else result
            except Exception as error:
                if failure_error_function is None:
                    raise
                return failure_error_function(context, error)

        self.on_invoke_tool: Callable[..., Any] = on_invoke_tool

    def run(self, text: str, call_id: str) -> Any:
        """Is what Runner.run does with a tool call."""
        context = types.SimpleNamespace(tool_call_id=call_id)

        async def called() -> Any:
            try:
                return await self.on_invoke_tool(context, text)
            except AgentsException:
                raise
            except Exception as error:
                raise UserError("Error running tool %s: %s" % (self.name, error)) from error

        return called()


def function_tool(function: Callable[..., Any], *, name_override: Optional[str] = None, failure_error_function: Any = lambda c, e: "An error occurred: %s" % e) -> FunctionTool:
    return FunctionTool(function, name_override, failure_error_function)


def installed(graph: Optional[Graph] = None) -> Any:
    """Is a patch under which the frameworks can be imported; LangGraph only with a graph."""
    def module(**members: Any) -> Any:
        return types.SimpleNamespace(**members)

    found: Dict[str, Any] = {
        "langchain_core": module(), "langchain_core.tools": module(StructuredTool=StructuredTool, ToolException=ToolException),
        "langchain_core.runnables": module(), "langchain_core.runnables.config": module(ensure_config=lambda: {"tags": ["here"]}),
        "langgraph": None, "langgraph.errors": None,
        "agents": module(function_tool=function_tool, AgentsException=AgentsException, ModelBehaviorError=ModelBehaviorError),
    }  # fmt: skip
    if graph:
        found.update({"langgraph": module(), "langgraph.errors": module(GraphBubbleUp=GraphBubbleUp), "langgraph.types": module(interrupt=graph.interrupt)})
    return mock.patch.dict(sys.modules, found)


