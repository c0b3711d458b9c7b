"""The downstream: POST /v1/payments with an Idempotency-Key makes a payment."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any, Dict

import quittance


def pay(url: str, order: Dict[str, Any], call: quittance.Call) -> quittance.Reference:
    """Tells the three things apart that matter: it was paid, it was refused for sure, or nobody
    knows. Only an answer of the bank itself that says so is a refusal; a time-out, a broken
    connection, a 5xx and a page that is not the bank's are not."""
    request = urllib.request.Request(url + "/v1/payments", json.dumps(order).encode("utf-8"), method="POST")
    request.add_header("Content-Type", "application/json")
    request.add_header("Idempotency-Key", call.vendor_key)
    call.ready()  # immediately before it is sent
    try:
        with urllib.request.urlopen(request, timeout=call.remaining()) as response:
            paid = json.loads(response.read(1 << 20))
    except urllib.error.HTTPError as error:
        answer = error.read(1 << 20)
        if 400 <= error.code < 500 and error.code != 408 and _is_the_banks(answer):
            raise quittance.Refused(json.loads(answer)) from error
        raise
    return quittance.Reference(paid["id"], {"payment_id": paid["id"]})


def _is_the_banks(answer: bytes) -> bool:
    try:
        refusal = json.loads(answer)
    except ValueError:
        return False
    return isinstance(refusal, dict) and isinstance(refusal.get("code"), str)
