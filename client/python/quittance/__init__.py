"""Quittance's guard for agents: a call that must not happen twice does not.

    from quittance import Client, Paused, Reference, Refused

    with Client(url, token).open("ap/INV-9", agent="ap-bot") as run:
        paid = run.do("send_payment", invoice, lambda call: bank.pay(invoice, call.vendor_key))
        run.close()

The intent is durable before the call is performed, and what became of it is recorded
afterwards. After a crash the same code runs again: what is known is replayed, and what is
not known pauses the run until somebody has found out.
"""

from __future__ import annotations

from ._async import AsyncClient, AsyncRun
from ._call import Call, Outcome, Reference, current_call
from ._client import Client
from ._digest import call_digest
from ._errors import (
    ArgumentsError,
    Cancelled,
    Conflict,
    InFlight,
    LeaseLost,
    LogBehind,
    NoAnswer,
    NotFound,
    NothingReady,
    Paused,
    Problem,
    QuittanceError,
    Refused,
    RunClosed,
    RunHeld,
    TooLate,
    Unrecorded,
    WaitingFor,
)
from ._handed import Handed, handed
from ._json import RawJSON
from ._run import Run
from ._tool import Tool, call_id, tool

__version__ = "0.1.0"

__all__ = [
    "ArgumentsError", "AsyncClient", "AsyncRun", "Call", "Cancelled", "Client", "Conflict", "Handed", "InFlight", "LeaseLost", "LogBehind",
    "NoAnswer", "NotFound", "NothingReady", "Outcome", "Paused", "Problem", "QuittanceError", "RawJSON", "Reference", "Refused", "Run",
    "RunClosed", "RunHeld", "TooLate", "Tool", "Unrecorded", "WaitingFor", "call_digest", "call_id", "current_call", "handed", "tool",
]  # fmt: skip
