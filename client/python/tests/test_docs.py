"""What docs/agents.md shows is run, with stand-ins for what it is about."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import re
import threading
from types import SimpleNamespace
from typing import Any, Dict, List
from unittest import mock

import quittance
from quittance.lookups import answer_lookups

from . import standins
from .case import FakeCase

PAGES = [os.path.join(os.path.dirname(__file__), *path) for path in (("..", "..", "..", "docs", "agents.md"), ("..", "README.md"))]


class Documents(FakeCase):
    def test_each_example_runs(self) -> None:
        paid: List[Any] = []

        def pay(order: Any, key: str, timeout: float = 0.0) -> Any:
            paid.append(key)
            return SimpleNamespace(id="po_%d" % len(paid), declined=False)

        def invoke(messages: Any, config: Any) -> None:
            names["tools"][0].invoke({"type": "tool_call", "id": "c1", "args": {"n": 1}})

        async def run_agent(*args: Any, **kwargs: Any) -> None:
            await names["refund"].run('{"order":"9","amount":"1.00"}', "c2")

        async def refund(order: str, amount: str, key: str) -> str:
            paid.append(key)
            return "re_1"

        tool = standins.StructuredTool(name="send_refund", description="", func=lambda n: pay(n, quittance.current_call().vendor_key).id, args_schema=standins.Schema(["n"]))
        names: Dict[str, Any] = {
            "url": self.fake.url, "token": "t", "bank": SimpleNamespace(pay=pay), "invoice": {"invoice": "INV-1"}, "messages": [], "config": {},
            "send_payment_tool": tool, "search_tool": None, "graph": SimpleNamespace(invoke=invoke), "Runner": SimpleNamespace(run=run_agent),
            "support_agent": None, "session": None, "shop": SimpleNamespace(refund=refund),
            "portal": SimpleNamespace(search=lambda key: [SimpleNamespace(period=key, number="R-7", accepted=True)]),
        }  # fmt: skip
        self.fake.questions = [{"lookup_id": "l1", "tool": "file_return", "business_key": "2026-Q1", "answer_within_ms": 60000}]
        before = os.getcwd()
        os.chdir(self.spool)
        self.addCleanup(os.chdir, before)
        count = 0
        with standins.installed(), contextlib.redirect_stdout(io.StringIO()) as out, mock.patch("quittance.lookups.answer_lookups", self.answer_one):
            for page in PAGES:
                with open(page, encoding="utf-8") as f:
                    for example in re.findall(r"```python\n(.*?)```", f.read(), re.DOTALL):
                        exec(compile(example, page, "exec"), names)
                        for coroutine in ("work", "answer"):
                            if coroutine in names:
                                asyncio.run(names.pop(coroutine)())
                        count += 1
        self.assertEqual(count, 8)
        self.assertIn("po_1 False", out.getvalue())
        self.assertEqual(len(paid), len(self.fake.effects))
        self.assertEqual({e["state"] for e in self.fake.effects.values()}, {"taken"})
        self.assertEqual(self.fake.bodies("answer")[0]["hits"][0]["reference"], "R-7")
        names["client"].close()

    def answer_one(self, client: quittance.Client, pool: str, look: Any) -> None:
        """Is the loop, until one question was answered."""
        stop = threading.Event()

        def look_once(question: Any) -> Any:
            stop.set()
            return look(question)

        answer_lookups(client, pool, look_once, stop=stop)
