from __future__ import annotations

import os
import time
import unittest
from unittest import mock

import quittance
from quittance import TooLate

from .case import FakeCase

ENVIRONMENT = {
    "QUITTANCE_RUN_ID": "payday/1", "QUITTANCE_AGENT": "ap-bot", "QUITTANCE_WORKER": "host/7", "QUITTANCE_ATTEMPT_ID": "A1", "QUITTANCE_LEASE": "ql_secret",
    "QUITTANCE_EPOCH": "4", "QUITTANCE_LEASE_SECONDS": "30", "QUITTANCE_CHECKPOINT": "/tmp/checkpoint.json", "QUITTANCE_TURN": "3",
}  # fmt: skip


class HandedOver(FakeCase):
    def test_the_lease_that_is_held_for_this_process_is_taken_once(self) -> None:
        with mock.patch.dict(os.environ, ENVIRONMENT):
            handed = quittance.handed()
        assert handed is not None
        self.assertEqual((handed.run_id, handed.lease, handed.epoch, handed.checkpoint, handed.turn), ("payday/1", "ql_secret", 4, "/tmp/checkpoint.json", 3))
        run = self.client().open(handed.run_id, **handed.options)
        run._acquire()
        first, second = self.fake.bodies("open")
        self.assertEqual((first["attempt_id"], first["worker"], first["agent"], first["lease_seconds"]), ("A1", "host/7", "ap-bot", 30))
        self.assertNotEqual(second["attempt_id"], "A1")

    def test_a_process_that_was_started_otherwise(self) -> None:
        self.assertIsNone(quittance.handed({}))
        self.assertIsNone(quittance.handed({"QUITTANCE_RUN_ID": "r"}))
        small = quittance.handed({"QUITTANCE_RUN_ID": "r", "QUITTANCE_ATTEMPT_ID": "a"})
        assert small is not None
        self.assertEqual((small.checkpoint, small.turn, "lease_seconds" in small.options), (None, 0, False))


class Clocks(unittest.TestCase):
    def test_whichever_clock_says_that_the_deadline_passed(self) -> None:
        call = quittance.Call("e", "k", "v", "{}", 1, time.monotonic() + 60, time.time() + 60)
        call.ready()
        self.assertGreater(call.remaining(), 50)
        for clock in ("monotonic", "time"):
            later = getattr(time, clock)() + 61  # the machine slept, or the wall's clock was set back
            with mock.patch("quittance._call.time.%s" % clock, return_value=later):
                self.assertEqual(call.remaining(), 0)
                with self.assertRaises(TooLate):
                    call.ready()


class Proxies(FakeCase):
    def test_no_proxy_stands_between_the_guard_and_its_server(self) -> None:
        nowhere = "http://127.0.0.1:1"
        with mock.patch.dict(os.environ, {name: nowhere for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")}):
            self.client(patience=0.0).open("r", agent="bot").release()
