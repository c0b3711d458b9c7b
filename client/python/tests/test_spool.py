from __future__ import annotations

import json
import os
import stat
import time
from typing import List

from quittance import Outcome, Reference, Unrecorded
from quittance._spool import Finish

from .case import FakeCase
from .fake import refuse

# Written by the Go client.
GO_FILE = (
    b'{"run_id":"r","effect_id":"e1","key":"k","finish":{"fence":1,"outcome":"taken","result":{"n":9007199254740993,"x":0.10},"reference":"po_1"}}'
)


class SpoolFiles(FakeCase):
    def files(self) -> List[str]:
        return sorted(n for n in os.listdir(self.spool) if n.endswith(".json"))

    def test_a_file_of_the_go_client_is_read_and_written_alike(self) -> None:
        finish = Finish.read(GO_FILE)
        self.assertEqual(finish, Finish("r", "e1", "k", 1, "taken", result='{"n":9007199254740993,"x":0.10}', reference="po_1"))
        self.assertEqual(finish.file(), GO_FILE)

    def test_an_outcome_is_for_its_owners_eyes_and_goes_when_it_is_delivered(self) -> None:
        self.fake.script("finish", *[refuse(503, code="stopping", retryable=True)] * 3)
        client = self.client()
        run = client.open("r", agent="bot")
        modes: List[int] = []
        deliver = client._deliverer.kick
        client._deliverer.kick = lambda: modes.extend(stat.S_IMODE(os.stat(os.path.join(self.spool, n)).st_mode) for n in self.files()) or deliver()  # type: ignore[func-returns-value,assignment]
        out = run.do("pay", {"n": 1}, lambda call: Reference("po_1", {"id": 1}))
        self.assertEqual((out.outcome, out.recorded, out.reference), ("taken", False, "po_1"))
        self.assertEqual(modes, [0o600])
        self.fake.wait_for(lambda: [e for e in self.fake.effects.values() if e["state"] == "taken"])
        end = time.monotonic() + 20
        while self.files() and time.monotonic() < end:
            time.sleep(0.005)
        self.assertEqual(self.files(), [])
        self.assertEqual(["log_position" in b for b in self.fake.bodies("finish")], [True, False, False, False])

    def test_what_is_refused_or_unreadable_is_set_aside_and_never_dropped(self) -> None:
        broken = {"1.json": b"{", "2.json": b'{"run_id":1,"effect_id":"e","key":"k","finish":{"outcome":"taken"}}', "3.json": b"\xff"}
        for name, raw in dict(broken, **{"4.json": GO_FILE}).items():
            with open(os.path.join(self.spool, name), "wb") as f:
                f.write(raw)
        self.fake.script("finish", *[refuse(422, code="invalid")] * 2)
        client = self.client()
        with self.assertLogs("quittance"):
            client.open("r", agent="bot")
        self.assertEqual(self.files(), [])
        aside = os.path.join(self.spool, "rejected")
        self.assertEqual(sorted(os.listdir(aside)), ["1.json", "2.json", "3.json", "4.json"])
        with open(os.path.join(aside, "4.json"), "rb") as f:
            self.assertEqual(f.read(), GO_FILE)
        first, second = self.fake.bodies("finish")
        self.assertEqual(first["result"], {"n": 9007199254740993, "x": 0.10})
        self.assertEqual((second.get("result"), second["result_omitted"], second["result_size"]), (None, True, 31))

    def test_what_can_be_neither_delivered_nor_kept_is_said(self) -> None:
        blocked = os.path.join(self.spool, "file")
        open(blocked, "w").close()
        run = self.client(spool=os.path.join(blocked, "spool")).open("r", agent="bot")
        self.fake.script("finish", *[refuse(503, code="stopping", retryable=True)] * 5)
        with self.assertLogs("quittance"), self.assertRaises(Unrecorded) as caught:
            run.do("pay", {"n": 1}, lambda call: "po_1")
        outcome = caught.exception.outcome
        self.assertIsInstance(outcome, Outcome)
        self.assertEqual((outcome.result, outcome.recorded), ("po_1", False))

    def test_the_default_folder_is_apart_for_each_server_and_token(self) -> None:
        from quittance._spool import default_folder

        folders = {default_folder(u, t) for u in ("http://a", "http://b") for t in ("t1", "t2")}
        self.assertEqual(len(folders), 4)
        self.assertFalse([f for f in folders if "t1" in f])

    def test_an_outcome_with_half_a_surrogate_survives_the_disk(self) -> None:
        finish = Finish("r", "e1", "k", 1, "taken", result=json.dumps("\ud800"), error='"\ud801"')
        again = Finish.read(finish.file())
        self.assertEqual((again.result, json.loads(again.error or "")), ('"\\ud800"', "\ud801"))
