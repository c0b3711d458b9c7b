from __future__ import annotations

import asyncio
import inspect
from typing import Any, List

from quittance import Call, QuittanceError, call_id, tool

from .case import FakeCase

sent: List[Any] = []


@tool
def send_payment(vendor: str, invoice: str, amount: str = "1.00", *, call: Call) -> dict:  # type: ignore[type-arg]
    """Pays an invoice."""
    sent.append((vendor, invoice, amount, call.vendor_key))
    return {"id": "po_%d" % len(sent)}


@tool(name="post_letter")
async def letter(to: str, **more: Any) -> str:
    sent.append((to, more))
    return "sent"


class Tools(FakeCase):
    def setUp(self) -> None:
        super().setUp()
        sent.clear()

    def test_a_tool_is_guarded_by_the_run_it_is_called_in(self) -> None:
        with self.client().open("r", agent="bot"):
            self.assertEqual(send_payment("ACME", invoice="INV-9"), {"id": "po_1"})
        with self.client().open("r", agent="bot"):
            self.assertEqual(send_payment(invoice="INV-9", vendor="ACME", amount="1.00"), {"id": "po_1"})
        self.assertEqual(sent, [("ACME", "INV-9", "1.00", "vk-e1")])
        self.assertEqual(self.fake.bodies("begin")[0]["arguments"], {"vendor": "ACME", "invoice": "INV-9", "amount": "1.00"})
        self.assertEqual(self.fake.bodies("begin")[0]["tool"], "send_payment")

    def test_outside_of_a_run_nothing_is_performed(self) -> None:
        with self.assertRaises(QuittanceError):
            send_payment("ACME", "INV-9")
        with self.client().open("r", agent="bot"):
            with self.assertRaises(TypeError):
                send_payment("ACME")
            with self.assertRaises(TypeError):
                send_payment("ACME", "INV-9", call=None)
            with self.assertRaises(QuittanceError):
                letter("ACME")  # it needs an AsyncClient's run
            with self.assertRaises(TypeError):
                tool(lambda call, **more: self.fail("performed"))(call="mine")
        self.assertEqual((sent, self.fake.bodies("begin")), ([], []))

    def test_the_signature_is_that_of_the_arguments(self) -> None:
        self.assertEqual(list(inspect.signature(send_payment).parameters), ["vendor", "invoice", "amount"])
        self.assertEqual((send_payment.__name__, send_payment.__doc__), ("send_payment", "Pays an invoice."))
        for unnamed in (lambda *rest: None, eval("lambda a, /: None")):
            with self.assertRaises(TypeError):
                tool(unnamed)

    def test_a_call_id_tells_a_retry_from_a_second_call(self) -> None:
        run = self.client().open("r", agent="bot")
        pay = send_payment.on(run)
        with call_id("call_1"):
            first, again = pay("ACME", "INV-9"), pay("ACME", "INV-9")
        with call_id("call_2"):
            second = pay("ACME", "INV-9")
        self.assertEqual((first, again, second), ({"id": "po_1"}, {"id": "po_1"}, {"id": "po_2"}))
        self.assertEqual([b.get("call_id") for b in self.fake.bodies("begin")], ["call_1", "call_1", "call_2"])

    def test_a_coroutine_function(self) -> None:
        async def work() -> None:
            async with self.async_client() as client:
                async with client.open("r", agent="bot") as run:
                    self.assertEqual(await letter("ACME", colour="red"), "sent")
                    self.assertEqual(await send_payment.on(run)("ACME", "INV-9"), {"id": "po_2"})

        asyncio.run(work())
        self.assertEqual(self.fake.bodies("begin")[0]["arguments"], {"to": "ACME", "colour": "red"})
        self.assertEqual(self.fake.bodies("begin")[0]["tool"], "post_letter")
        self.assertEqual(sent[0], ("ACME", {"colour": "red"}))
