"""One call: what a tool is told of it, and what became of it."""

from __future__ import annotations

import contextvars
import time
from dataclasses import dataclass
from typing import Any, Optional

from ._errors import Refused, TooLate
from ._json import dumps, loads

TAKEN, FAILED, UNKNOWN = "taken", "failed", "unknown"

#: Is unknown to the server's rules, like every word that is neither taken nor failed, and
#: tells a person what happened.
NOT_SENT = "not_sent"


class Call:
    """What a tool needs to know to perform one attempt.

    effect_id, key     the effect's names
    vendor_key         the vendor's own idempotency key; the same for every attempt
    attempt            from 1
    deadline           when the call must have been sent by, on `time.monotonic()`; it has
                       passed too when the wall's clock says so: the other stands still while
                       the machine sleeps
    """

    def __init__(self, effect_id: str, key: str, vendor_key: str, arguments: str, attempt: int, deadline: float, wall_deadline: float) -> None:
        self.effect_id, self.key, self.vendor_key = effect_id, key, vendor_key
        self.arguments_text = arguments  # JSON, as it was recorded
        self.attempt, self.deadline = attempt, deadline
        self._wall_deadline = wall_deadline

    @property
    def arguments(self) -> Any:
        """Is what was recorded, read anew: numbers are int, float where that is exact, else
        Decimal."""
        return loads(self.arguments_text)

    def remaining(self) -> float:
        """Is how many seconds are left to send the call, never below 0: a time-out for it."""
        return max(0.0, min(self.deadline - time.monotonic(), self._wall_deadline - time.time()))

    def ready(self) -> None:
        """Raises TooLate when the call must not be sent any more. A tool that prepares for
        long asks again immediately before it sends."""
        if time.monotonic() >= self.deadline or time.time() >= self._wall_deadline:
            raise TooLate


_current: "contextvars.ContextVar[Optional[Call]]" = contextvars.ContextVar("quittance_call", default=None)


def current_call() -> Call:
    """Is the call that is being performed here, for tools that cannot take it as a parameter.
    Raises LookupError outside of one."""
    call = _current.get()
    if call is None:
        raise LookupError("no guarded call is being performed here")
    return call


class Reference:
    """Is returned by a tool for a result together with the downstream's own name for what
    happened, such as its payment id: the proof by which it can be found again."""

    def __init__(self, reference: str, result: Any = None) -> None:
        self.reference, self.result = reference, result


@dataclass(frozen=True)
class Outcome:
    """What became of a call, performed now or recorded before.

    Of a result above the stored limit only size and digest are kept; then result_omitted is
    True and result_text None. recorded is False when the server could not be told yet (the
    outcome is in the spool and is delivered in the background), and for a tool that the
    policy does not guard, of which nothing is recorded.
    """

    outcome: str  # taken, or failed
    effect_id: str = ""
    key: str = ""
    replayed: bool = False  # nothing was performed: this is the record
    recorded: bool = False
    decided_by: str = ""  # of a replay: agent, late_agent, look_up, vendor_key or person
    reference: str = ""
    result_text: Optional[str] = None  # JSON, as it was recorded
    error_text: Optional[str] = None
    result_omitted: bool = False
    result_size: int = 0
    result_digest: str = ""

    @property
    def result(self) -> Any:
        """Is the result, read from what was recorded, so that a replay gives what the call
        gave. Raises LookupError where it is not held."""
        if self.result_text is None:
            raise LookupError("the result of %s is not held (%d bytes)" % (self.effect_id, self.result_size))
        return loads(self.result_text)


@dataclass(frozen=True)
class Report:
    """What became of a performed call, to be recorded."""

    outcome: str
    result: Optional[str] = None
    error: Optional[str] = None
    reference: str = ""
    raised: Optional[BaseException] = None


def message(text: str) -> str:
    """Is how an error is recorded."""
    return dumps({"message": text})


def returned(value: Any) -> Report:
    """Reports what a tool returned."""
    reference = ""
    if isinstance(value, Reference):
        reference, value = value.reference, value.result
    try:
        return Report(TAKEN, result=dumps(value), reference=reference)
    except (TypeError, ValueError) as error:
        # It happened; that its result cannot be written down changes nothing.
        return Report(TAKEN, result=message("couldn't write the result down: %s" % error), reference=reference)


def raised(error: BaseException) -> Report:
    """Reports what a tool raised: nobody knows whether it happened, unless the tool says so."""
    if isinstance(error, Refused):
        return Report(FAILED, error=reason_text(error), raised=error)
    if isinstance(error, TooLate):
        return Report(NOT_SENT, error=message(str(error)), raised=error)
    if isinstance(error, Exception):
        return Report(UNKNOWN, error=message(str(error)), raised=error)
    # What interrupts a program may hold anything.
    return Report(UNKNOWN, error=message("the call did not return: %s" % type(error).__name__), raised=error)


def reason_text(refused: Refused) -> str:
    """Is a refusal's reason as JSON; an exception is recorded by its message."""
    if isinstance(refused.reason, BaseException):
        return message(str(refused.reason))
    try:
        return dumps(refused.reason)
    except (TypeError, ValueError) as error:
        return message("couldn't write the reason down: %s" % error)
