from __future__ import annotations

import threading
from typing import Callable, Dict, List

from quittance import Problem
from quittance.lookups import Hit, Question, Seen, answer_lookups

from .case import FakeCase
from .fake import drop, refuse


class Lookups(FakeCase):
    def test_questions_are_answered_through_outages_and_whatever_the_teams_code_does(self) -> None:
        self.fake.questions = [
            {"lookup_id": "l1", "tool": "file_return", "business_key": "2026-Q1", "vendor_key": "vk", "arguments": {"period": "2026-Q1"},
             "amount": {"value": "10.50", "currency": "EUR"}, "answer_within_ms": 60000, "canary": "CANARY"},
            {"lookup_id": "l2", "tool": "file_return", "answer_within_ms": 60000},
            {"lookup_id": "l3", "tool": "file_return", "answer_within_ms": 60000},
            {"lookup_id": "l4", "tool": "file_return", "answer_within_ms": 60000},
            {"lookup_id": "l5", "tool": "file_return", "answer_within_ms": 60000},
        ]  # fmt: skip
        self.fake.script("look", drop, refuse(503, code="stopping", retryable=True))
        as_usual = lambda handler: True  # noqa: E731
        self.fake.script("answer", drop, as_usual, as_usual, as_usual, refuse(413, code="too_large"), as_usual, refuse(409, code="lookup_over"))
        stop = threading.Event()
        asked: List[Question] = []
        finds: Dict[str, Callable[[], Seen]] = {
            "l1": lambda: Seen(hits=[Hit("2026-Q1", "R-7", True, True, amount="10.50", currency="EUR", result={"receipt": "R-7"})], complete=True, world="live"),
            "l3": lambda: Seen(hits=[{"business_key": "x", "result": object()}]),
            "l4": lambda: Seen(hits=[{"business_key": "x" * 1000}]),
            "l5": lambda: stop.set() or Seen(error="the portal is closed on Sundays"),  # type: ignore[func-returns-value]
        }

        def look(question: Question) -> Seen:
            asked.append(question)
            self.assertTrue(0 < question.remaining() <= 60)
            if question.lookup_id == "l2":
                raise OSError("the portal's password is hunter2")
            return finds[question.lookup_id]()

        with self.assertLogs("quittance"):
            answer_lookups(self.client(), "tax", look, stop=stop)
        first = asked[0]
        self.assertEqual((first.amount, first.currency, first.arguments, first.canary), ("10.50", "EUR", {"period": "2026-Q1"}, "CANARY"))
        answers = [(b["id"], b.get("error"), b.get("hits")) for b in self.fake.bodies("answer")]
        hit = {"business_key": "2026-Q1", "reference": "R-7", "recipient_matches": True, "final": True, "amount": "10.50", "currency": "EUR", "result": {"receipt": "R-7"}}
        self.assertEqual(answers, [
            ("l1", None, [hit]), ("l1", None, [hit]),
            ("l2", "the worker could not look (OSError)", None),
            ("l3", "the worker could not look (TypeError)", None),
            ("l4", None, [{"business_key": "x" * 1000}]), ("l4", "the worker's answer was refused: too_large", None),
            ("l5", "the portal is closed on Sundays", None),
        ])  # fmt: skip
        self.assertEqual({k: v for k, v in self.fake.bodies("answer")[0].items() if k not in ("id", "hits")}, {"possible": [], "complete": True, "world": "live"})
        self.assertEqual(self.fake.bodies("look")[0], {"pool": "tax", "max": 1, "wait": "10000ms"})

    def test_several_at_once(self) -> None:
        self.fake.questions = [{"lookup_id": "l%d" % n, "tool": "t", "answer_within_ms": 60000} for n in range(2)]
        stop, both = threading.Event(), threading.Barrier(2, timeout=20)

        def look(question: Question) -> Seen:
            both.wait()  # neither comes back without the other
            stop.set()
            return Seen(complete=True)

        answer_lookups(self.client(), "tax", look, at_once=2, stop=stop)
        self.assertEqual(len(self.fake.bodies("answer")), 2)

    def test_a_token_that_opens_nothing_ends_it(self) -> None:
        self.fake.script("look", refuse(401, code="unauthorized"))
        with self.assertRaises(Problem):
            answer_lookups(self.client(), "tax", lambda q: Seen())
        self.fake.script("look", refuse(401, code="unauthorized"))
        with self.assertRaises(Problem):
            answer_lookups(self.client(), "tax", lambda q: Seen(), at_once=3)
