"""The adapters, by the documented interfaces of the frameworks."""

from __future__ import annotations

import asyncio
from typing import Any, Dict, List

from quittance import AsyncRun, NoAnswer, Paused, QuittanceError, Refused, current_call
from quittance.langchain import guard
from quittance.openai_agents import function_tool

from . import standins
from .case import FakeCase
from .fake import drop

CALL: Dict[str, Any] = {"type": "tool_call", "id": "call_1", "name": "pay", "args": {"invoice": "INV-9"}}
WAITING = [{"effect_id": "e9", "reason": "interrupted", "tool": "pay", "url": "/effects/e9"}]


class FrameworkCase(FakeCase):
    def setUp(self) -> None:
        super().setUp()
        self.paid: List[Any] = []
        self.fails: List[BaseException] = []

    def pay(self, invoice: str) -> Dict[str, Any]:
        """Pays an invoice."""
        self.paid.append((invoice, current_call().vendor_key))
        if self.fails:
            raise self.fails.pop()
        return {"id": "po_%d" % len(self.paid)}

    def plain(self, **fields: Any) -> Any:
        names = fields.pop("names", ["invoice"])
        tool = dict({"name": "pay", "description": "Pays.", "func": self.pay, "args_schema": standins.Schema(names)}, **fields)
        return standins.StructuredTool(**tool)


class LangChain(FrameworkCase):
    def test_a_retry_of_one_call_is_the_same_call(self) -> None:
        with standins.installed(), self.client().open("r", agent="bot"):
            tool = guard(self.plain())
            self.assertEqual((tool.name, tool.description), ("pay", "Pays."))
            first, again = tool.invoke(CALL), tool.invoke(CALL)
            second = tool.invoke(dict(CALL, id="call_2"))
            third = tool.invoke({"invoice": "INV-9"})
        self.assertEqual(first, {"content": {"id": "po_1"}, "artifact": None, "tool_call_id": "call_1", "status": "success"})
        self.assertEqual((again, second["content"], third), (first, {"id": "po_2"}, {"id": "po_3"}))
        self.assertEqual(self.paid[0], ("INV-9", "vk-e1"))

    def test_only_what_a_model_gives_is_part_of_the_call(self) -> None:
        seen: List[Any] = []

        def pay(invoice: str, injected_state: Any, config: "RunnableConfig") -> Any:  # type: ignore[name-defined]  # noqa: F821
            seen.append((injected_state, config))
            return ["paid", {"page": 1}]

        with standins.installed(), self.client().open("r", agent="bot") as run:
            tool = guard(self.plain(func=pay, names=["invoice", "injected_state"], response_format="content_and_artifact"), run, name="send_payment")
            got = tool.invoke(dict(CALL, args={"invoice": "INV-9", "injected_state": object()}))
        self.assertEqual((got["content"], got["artifact"], seen[0][1]), ("paid", {"page": 1}, {"tags": ["here"]}))
        begin = self.fake.bodies("begin")[0]
        self.assertEqual((begin["tool"], begin["arguments"]), ("send_payment", {"invoice": "INV-9"}))

    def test_a_refusal_is_told_to_the_model(self) -> None:
        self.fails = [Refused("account closed")]
        with standins.installed(standins.Graph()), self.client().open("r", agent="bot"):
            got = guard(self.plain()).invoke(CALL)
        self.assertEqual((got["status"], got["content"]), ("error", "Refused, it did not happen: account closed"))

    def test_a_tool_that_hides_its_errors_does_not_hide_them_from_the_guard(self) -> None:
        self.fails = [standins.ToolException("time-out")]
        with standins.installed(), self.client().open("r", agent="bot"):
            with self.assertRaises(Paused):
                guard(self.plain(handle_tool_error=True)).invoke(CALL)
        self.assertEqual(self.fake.bodies("finish")[0]["outcome"], "unknown")

    def test_a_pause_interrupts_the_graph_and_resuming_makes_the_same_call(self) -> None:
        graph = standins.Graph()
        with standins.installed(graph), self.client().open("r", agent="bot"):
            tool = guard(self.plain())
            self.fake.paused = WAITING
            with self.assertRaises(standins.GraphInterrupt) as caught:
                graph.invoke(tool, CALL)
            self.assertEqual(caught.exception.args[0], {"quittance": "paused", "run_id": "r", "waiting_for": WAITING})
            with self.assertRaises(standins.GraphInterrupt):  # resumed too early
                graph.invoke(tool, CALL, "go on")
            self.fake.paused = []
            self.assertEqual(graph.invoke(tool, CALL, "go on", "go on")["content"], {"id": "po_1"})
        self.assertEqual(len(self.fake.effects), 1)

    def test_where_nothing_can_be_interrupted_a_pause_still_is_no_message(self) -> None:
        for graph in (standins.Graph(checkpointer=False), None):
            self.fails = [OSError("reset")]
            with standins.installed(graph), self.client().open("r", agent="bot"):
                with self.assertRaises(Paused) as caught:
                    tool = guard(self.plain())
                    graph.invoke(tool, CALL) if graph else tool.invoke(CALL)
            self.assertEqual((caught.exception.run_id, str(caught.exception.__cause__)), ("r", "reset"))
            self.fake.effects.clear()

    def test_no_other_error_of_the_guard_is_a_message(self) -> None:
        graph = standins.Graph()
        with standins.installed(graph):
            with self.assertRaises(QuittanceError):
                graph.invoke(guard(self.plain()), CALL)  # there is no run
            with self.client(patience=0.0).open("r", agent="bot"):
                self.fake.script("begin", drop, drop)
                with self.assertRaises(NoAnswer):
                    graph.invoke(guard(self.plain()), CALL)
        self.assertEqual(self.paid, [])

    def test_the_async_way(self) -> None:
        async def pay(invoice: str) -> Any:
            return self.pay(invoice)

        async def work() -> None:
            async with self.async_client() as client, client.open("r", agent="bot"):
                for tool in (guard(self.plain(coroutine=pay)), guard(self.plain())):  # the second runs in a thread
                    self.assertEqual((await tool.ainvoke(CALL))["content"], {"id": "po_1"})
                self.fake.paused = WAITING
                with self.assertRaises(Paused):
                    await tool.ainvoke(dict(CALL, id="call_2"))

        with standins.installed():
            asyncio.run(work())
        self.assertEqual(len(self.paid), 1)


class OpenAIAgents(FrameworkCase):
    def within(self, work: Any) -> None:
        async def main() -> None:
            async with self.async_client() as client, client.open("r", agent="bot") as run:
                await work(run)

        with standins.installed():
            asyncio.run(main())

    def test_a_retry_of_one_call_is_the_same_call(self) -> None:
        async def work(run: AsyncRun) -> None:
            tool = function_tool(self.pay)
            text = '{"invoice":"INV-9"}'
            self.assertEqual([await tool.run(text, c) for c in ("call_1", "call_1", "call_2")], [{"id": "po_1"}, {"id": "po_1"}, {"id": "po_2"}])

            @function_tool(run=lambda: run, name_override="send_payment")  # type: ignore[misc]
            async def pay(invoice: str) -> Any:
                return self.pay(invoice)

            self.assertEqual(await pay.run(text, "call_3"), {"id": "po_3"})

        self.within(work)
        self.assertEqual([b["tool"] for b in self.fake.bodies("begin")], ["pay", "pay", "pay", "send_payment"])

    def test_a_pause_ends_the_run_of_the_agent_as_what_it_is(self) -> None:
        async def work(run: AsyncRun) -> None:
            self.fails = [OSError("reset")]
            with self.assertRaises(Paused) as caught:
                await function_tool(self.pay).run('{"invoice":"INV-9"}', "call_1")
            self.assertIsInstance(caught.exception, standins.AgentsException)
            self.assertEqual((caught.exception.run_id, str(caught.exception.__cause__)), ("r", "reset"))
            with self.assertRaises(TypeError):
                function_tool(self.pay, failure_error_function=lambda c, e: "again, please")

        self.within(work)
        self.assertEqual(self.fake.bodies("finish")[0]["outcome"], "unknown")

    def test_a_refusal_is_told_to_the_model(self) -> None:
        async def work(run: AsyncRun) -> None:
            self.fails = [Refused("account closed")]
            self.assertEqual(await function_tool(self.pay).run('{"invoice":"INV-9"}', "call_1"), "Refused, it did not happen: account closed")

        self.within(work)

    def test_arguments_that_the_framework_refuses_are_no_question_for_a_person(self) -> None:
        async def work(run: AsyncRun) -> None:
            tool = function_tool(self.pay)
            self.assertIn("Invalid JSON input", await tool.run('{"bill":"INV-9"}', "call_1"))
            for text in ('{"invoice":', '{"invoice":NaN}'):
                with self.assertRaises(standins.ModelBehaviorError):
                    await tool.run(text, "call_2")
            with self.assertRaises(QuittanceError):
                await tool.run("[]", "call_3")

        self.within(work)
        self.assertEqual(self.paid, [])
        self.assertEqual([b["outcome"] for b in self.fake.bodies("finish")], ["failed"])

    def test_it_needs_an_async_run(self) -> None:
        with standins.installed(), self.client().open("r", agent="bot"):
            with self.assertRaises(QuittanceError):
                asyncio.run(function_tool(self.pay).run('{"invoice":"INV-9"}', "call_1"))
        self.assertEqual(self.paid, [])
