from __future__ import annotations

import threading
from typing import Any, List

from quittance import Call, InFlight, LeaseLost, NoAnswer, NothingReady, Paused, Refused, TooLate, current_call

from .case import FakeCase
from .fake import Handler, drop, refuse


class Do(FakeCase):
    def test_what_interrupts_the_program_is_recorded_and_goes_on(self) -> None:
        run = self.client().open("r", agent="bot")

        def interrupted(call: Call) -> None:
            raise KeyboardInterrupt("secret words")

        with self.assertRaises(KeyboardInterrupt):
            run.do("pay", {"n": 1}, interrupted)
        finish = self.fake.bodies("finish")[0]
        self.assertEqual((finish["outcome"], finish["error"]), ("unknown", {"message": "the call did not return: KeyboardInterrupt"}))

    def test_an_exception_that_the_tool_does_not_explain_pauses_and_keeps_its_cause(self) -> None:
        run = self.client().open("r", agent="bot")
        broken = ConnectionResetError("reset")

        def lost(call: Call) -> None:
            raise broken

        with self.assertRaises(Paused) as caught:
            run.do("pay", {"n": 1}, lost)
        self.assertIs(caught.exception.__cause__, broken)
        self.assertIn("Make no further calls", str(caught.exception))

    def test_a_refusal_by_the_tool_is_the_same_error_outside(self) -> None:
        run = self.client().open("r", agent="bot")

        def declined(call: Call) -> None:
            raise Refused({"code": "declined"})

        with self.assertRaises(Refused) as caught:
            run.do("pay", {"n": 1}, declined)
        self.assertEqual((caught.exception.reason, caught.exception.replayed), ({"code": "declined"}, False))
        again = self.client().open("r", agent="bot")
        with self.assertRaises(Refused) as replayed:
            again.do("pay", {"n": 1}, declined)
        self.assertEqual((replayed.exception.reason, replayed.exception.replayed), ({"code": "declined"}, True))
        self.assertEqual(len(self.fake.bodies("finish")), 1)

    def test_a_result_that_is_no_json_happened_all_the_same(self) -> None:
        run = self.client().open("r", agent="bot")
        out = run.do("pay", {"n": 1}, lambda call: object())
        self.assertEqual(out.outcome, "taken")
        self.assertIn("couldn't write the result down", out.result["message"])

    def test_a_coroutine_function_is_refused_before_anything_happens(self) -> None:
        run = self.client().open("r", agent="bot")

        async def pay(call: Call) -> None:
            raise AssertionError

        with self.assertRaises(TypeError):
            run.do("pay", {"n": 1}, pay)
        self.assertEqual(self.fake.bodies("begin"), [])
        with self.assertRaises(Paused):
            run.do("pay", {"n": 1}, lambda call: pay(call))

    def test_the_call_is_at_hand_while_it_is_performed(self) -> None:
        run = self.client().open("r", agent="bot")
        seen: List[Any] = []

        def pay(call: Call) -> None:
            seen.append((current_call() is call, call.arguments, call.vendor_key, call.attempt))
            self.assertTrue(50 < call.remaining() <= 60)
            call.arguments["n"] = 2  # a copy: what was recorded stays
            seen.append(call.arguments)

        run.do("pay", {"n": 1}, pay)
        self.assertEqual(seen, [(True, {"n": 1}, "vk-e1", 1), {"n": 1}])
        with self.assertRaises(LookupError):
            current_call()

    def test_nothing_is_sent_after_the_deadline(self) -> None:
        self.fake.within = 0
        run = self.client().open("r", agent="bot")
        with self.assertRaises(Paused) as caught:
            run.do("pay", {"n": 1}, lambda call: self.fail("performed"))
        self.assertIsInstance(caught.exception.__cause__, TooLate)
        self.assertEqual(self.fake.bodies("finish")[0]["outcome"], "not_sent")

    def test_an_unanswered_begin_is_repeated_under_its_own_id(self) -> None:
        client = self.client(patience=0.0)
        run = client.open("r", agent="bot")

        def acted(handler: Handler) -> bool:
            with self.fake.changed:
                self.fake.begin(self.fake.calls[-1][1])
            handler.close_connection = True
            return False

        self.fake.script("begin", acted, drop)  # on the kept connection and on a fresh one
        with self.assertRaises(NoAnswer):
            run.do("pay", {"n": 1}, lambda call: self.fail("performed"))
        out = run.do("pay", {"n": 1}, lambda call: "po_1")
        self.assertEqual((out.result, out.replayed), ("po_1", False))
        self.assertEqual(len({b["attempt_id"] for b in self.fake.bodies("begin")}), 1)

    def test_a_refused_begin_is_over(self) -> None:
        run = self.client().open("r", agent="bot")
        self.fake.script("begin", refuse(409, code="effect_in_flight", retry_action="poll"))
        with self.assertRaises(InFlight):
            run.do("pay", {"n": 1}, lambda call: self.fail("performed"))
        run.do("pay", {"n": 1}, lambda call: None)
        self.assertEqual(len({b["attempt_id"] for b in self.fake.bodies("begin")}), 2)
        self.assertEqual([b["occurrence"] for b in self.fake.bodies("begin")], [1, 1])


class Holding(FakeCase):
    def test_a_block_gives_the_run_back_unless_it_was_closed(self) -> None:
        client = self.client()
        with client.open("r", agent="bot") as run:
            run.close()
        self.assertEqual([r for r, _ in self.fake.calls], ["open", "close"])
        with self.assertRaises(ZeroDivisionError):
            with client.open("s", agent="bot"):
                raise ZeroDivisionError
        self.assertEqual([r for r, _ in self.fake.calls][2:], ["open", "release"])

    def test_release_waits_for_calls_under_way_and_lets_none_begin(self) -> None:
        run = self.client().open("r", agent="bot")
        stands, go_on = threading.Event(), threading.Event()

        def pay(call: Call) -> str:
            stands.set()
            go_on.wait()
            return "po_1"

        paying = threading.Thread(target=run.do, args=("pay", {"n": 1}, pay))
        paying.start()
        stands.wait()
        releasing = threading.Thread(target=run.release)
        releasing.start()
        while not run._leaving:
            pass
        with self.assertRaises(LeaseLost):
            run.do("pay", {"n": 2}, lambda call: self.fail("performed"))
        self.assertTrue(releasing.is_alive())
        go_on.set()
        paying.join()
        releasing.join()
        self.assertEqual([r for r, _ in self.fake.calls][-2:], ["finish", "release"])
        run.release()  # is released already
        self.assertEqual(len(self.fake.bodies("release")), 1)

    def test_a_checkpoint_that_cannot_be_read_gives_the_lease_back(self) -> None:
        self.fake.checkpoint = {"turn": 1, "state": 1, "occurrences": {}}
        self.fake.script("saved", refuse(404, code="not_found"))
        from quittance import NotFound

        with self.assertRaises(NotFound):
            self.client().open("r", agent="bot")
        self.assertEqual(len(self.fake.bodies("release")), 1)

    def test_nothing_ready(self) -> None:
        def none(handler: Handler) -> bool:
            handler.reply(204, None)
            return False

        self.fake.script("claim", none)
        with self.assertRaises(NothingReady):
            self.client().claim(["bot"])
        self.assertEqual(self.client().claim(["bot"]).agent, "bot")

    def test_the_position_of_the_log_is_returned(self) -> None:
        run = self.client().open("r", agent="bot")
        run.do("pay", {"n": 1}, lambda call: None)
        run.checkpoint(1, {})
        self.assertEqual([b.get("log_position") for _, b in self.fake.calls], [None, "p0", "p1", "p2"])
