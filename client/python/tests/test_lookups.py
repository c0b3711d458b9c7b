from __future__ import annotations

import threading
from typing import List

from quittance import Problem
from quittance.lookups import Hit, Question, Seen, answer_lookups

from .case import FakeCase
from .fake import drop, refuse


class Lookups(FakeCase):
    def test_questions_are_answered_one_after_the_other_through_outages(self) -> None:
        self.fake.questions = [
            {"lookup_id": "l1", "tool": "file_return", "business_key": "2026-Q1", "vendor_key": "vk", "arguments": {"period": "2026-Q1"},
             "amount": {"value": "10.50", "currency": "EUR"}},
            {"lookup_id": "l2", "tool": "file_return", "business_key": "2026-Q2"},
            {"lookup_id": "l3", "tool": "file_return", "business_key": "2026-Q3"},
        ]  # fmt: skip
        self.fake.script("look", drop, refuse(503, code="stopping", retryable=True))
        self.fake.script("answer", drop, refuse(409, code="conflict"))
        stop, asked = threading.Event(), []

        def look(question: Question) -> Seen:
            asked.append(question)
            if question.lookup_id == "l2":
                raise OSError("the portal's password is hunter2")
            if question.lookup_id == "l3":
                stop.set()
                return Seen(hits=[{"business_key": "x", "result": object()}])
            return Seen(hits=[Hit("2026-Q1", "R-7", True, True, amount="10.50", currency="EUR", result={"receipt": "R-7"})], complete=True, world="live")

        with self.assertLogs("quittance"):
            answer_lookups(self.client(), "tax", look, stop=stop, rest=0.01)
        first: List[Question] = asked
        self.assertEqual((first[0].amount, first[0].currency, first[0].arguments), ("10.50", "EUR", {"period": "2026-Q1"}))
        answers = {b["id"]: b for b in self.fake.bodies("answer")}
        self.assertEqual(answers["l1"], {
            "id": "l1", "complete": True, "possible": [], "world": "live",
            "hits": [{"business_key": "2026-Q1", "reference": "R-7", "recipient_matches": True, "final": True, "amount": "10.50", "currency": "EUR",
                      "result": {"receipt": "R-7"}}],
        })  # fmt: skip
        self.assertEqual(answers["l2"]["error"], "the worker could not look")
        self.assertEqual((answers["l3"]["error"], answers["l3"]["complete"]), ("the worker's answer is not JSON", False))
        self.assertEqual(self.fake.bodies("look")[0]["pool"], "tax")

    def test_a_token_that_opens_nothing_ends_it(self) -> None:
        self.fake.script("look", refuse(401, code="unauthorized"))
        with self.assertRaises(Problem):
            answer_lookups(self.client(), "tax", lambda q: Seen())
