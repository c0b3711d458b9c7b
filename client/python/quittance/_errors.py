"""What can go wrong, as a program can act on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Type


class QuittanceError(Exception):
    """The base of all errors of this package."""


@dataclass(frozen=True)
class WaitingFor:
    """One reason for a pause."""

    effect_id: str
    reason: str  # interrupted, held, contradicted, or releasing (decided, not yet visible)
    tool: str = ""
    url: str = ""  # the page where a person decides it
    release_at: Optional[str] = None  # for releasing: when

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> "WaitingFor":
        return cls(
            effect_id=str(value.get("effect_id", "")),
            reason=str(value.get("reason", "")),
            tool=str(value.get("tool", "")),
            url=str(value.get("url", "")),
            release_at=value.get("release_at"),
        )


class Paused(QuittanceError):
    """The run may not go on until something is decided: stop, or `run.wait()` and make the
    same call again.

    Its cause (`__cause__`) is the server's Problem or, where a call of this process is in
    doubt, what the tool raised.
    """

    def __init__(self, run_id: str, waiting_for: Sequence[WaitingFor] = ()) -> None:
        super().__init__(run_id, waiting_for)
        self.run_id = run_id
        self.waiting_for: List[WaitingFor] = list(waiting_for)

    def __str__(self) -> str:
        # It may end as text before a model: it must not invite another try.
        text = "Stop: the run %r is paused until a person has decided. Make no further calls." % self.run_id
        if self.waiting_for:
            text += " (effect %s is %s)" % (self.waiting_for[0].effect_id, self.waiting_for[0].reason)
        return text


class Refused(QuittanceError):
    """A definite refusal: nothing happened and nothing will.

    A tool raises it, with a reason that can be written as JSON, when the downstream said
    no for sure. `run.do` raises it, then and whenever the refusal is replayed.
    """

    def __init__(self, reason: Any = None, *, replayed: bool = False, reason_text: Optional[str] = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.replayed = replayed
        self.reason_text = reason_text  # the reason's JSON, where it is on record
        self.outcome: Any = None  # the quittance.Outcome, when `run.do` raises it

    def of(self, outcome: Any) -> "Refused":
        self.outcome = outcome
        return self

    def __str__(self) -> str:
        return "refused: %s" % (self.reason,)


class TooLate(QuittanceError):
    """A call was not sent because its deadline had passed."""

    def __init__(self) -> None:
        super().__init__("the deadline passed before the call was sent")


class NoAnswer(QuittanceError):
    """It is not known whether the server acted: the connection failed, or what came back
    was not the server's. Where a begin ends with it, nothing was performed."""


class ArgumentsError(QuittanceError, ValueError):
    """A call's arguments are not a JSON object. Nothing was sent."""

    def __init__(self, tool: str, why: str = "") -> None:
        super().__init__("couldn't begin %s: the arguments must be a JSON object%s" % (tool, ": " + why if why else ""))


class Unrecorded(QuittanceError):
    """A call was made, and what became of it could neither be delivered nor be kept on the
    disk: only whoever catches this knows. `outcome` is a `quittance.Outcome`, or None where
    the call itself is in doubt."""

    def __init__(self, effect_id: str, outcome: Any) -> None:
        super().__init__("the outcome of %s could neither be delivered nor be kept" % effect_id)
        self.outcome = outcome


class NothingReady(QuittanceError):
    """No run waits for a worker."""

    def __init__(self) -> None:
        super().__init__("no run is ready")


# The longest in seconds that a server is believed to want us to wait.
LONGEST_WAIT = 24 * 60 * 60


class Problem(QuittanceError):
    """A refusal of the server, as an RFC 9457 problem document; `code` is for programs to
    branch on. It never repeats what was sent. The codes an agent branches on have
    classes of their own below."""

    def __init__(self, status: int, members: Mapping[str, Any]) -> None:
        super().__init__(status, members)
        self.status = status
        self.members: Dict[str, Any] = dict(members)
        self.code = str(members.get("code") or "")
        self.title = str(members.get("title") or "")
        self.detail = str(members.get("detail") or "")
        self.reason = str(members.get("reason") or "")
        self.retryable = members.get("retryable") is True
        self.retry_action = str(members.get("retry_action") or "")
        after = members.get("retry_after")
        # Whoever stands between us and the server may say anything.
        self.retry_after = min(max(after, 0), LONGEST_WAIT) if isinstance(after, int) else 0
        self.final = members.get("final") is True
        self.state = str(members.get("state") or "")
        self.effect_id = str(members.get("effect_id") or "")
        self.log_position = str(members.get("log_position") or "")
        waiting = members.get("waiting_for")
        self.waiting_for = [WaitingFor.read(w) for w in waiting if isinstance(w, dict)] if isinstance(waiting, list) else []

    def __str__(self) -> str:
        text = "%s (%d): %s" % (self.code, self.status, self.detail or self.title)
        errors = self.members.get("errors")
        if isinstance(errors, list) and errors and isinstance(errors[0], dict):
            text += " %s: %s" % (errors[0].get("pointer"), errors[0].get("detail"))
        return text


class LeaseLost(Problem):
    """This process no longer acts for the run."""

    @classmethod
    def here(cls, run_id: str) -> "LeaseLost":
        """Is raised where the process knows it by itself."""
        return cls(409, {"code": "lease_lost", "title": "the run %r is not held here" % run_id, "retry_action": "abandon"})


class RunHeld(Problem):
    """Another process holds the run."""


class RunClosed(Problem):
    """The run is over."""


class LogBehind(Problem):
    """The server lost events that this agent has seen: nothing is performed."""


class Conflict(Problem):
    """The key belongs to another request."""


class Cancelled(Problem):
    """A person stopped the effect: it must never run."""


class InFlight(Problem):
    """Another attempt of this effect is under way."""


class NotFound(Problem):
    """There is no such thing in this account."""


_classes: Dict[str, Type[Problem]] = {
    "lease_lost": LeaseLost,
    "run_held": RunHeld,
    "run_closed": RunClosed,
    "log_behind": LogBehind,
    "conflict": Conflict,
    "effect_cancelled": Cancelled,
    "effect_in_flight": InFlight,
    "not_found": NotFound,
}


def problem_from(status: int, members: Optional[Mapping[str, Any]], retry_after: Optional[str]) -> Problem:
    """Makes the error of an answer. What is not a problem document comes from something
    between us and the server: only its status says anything."""
    if not members or not isinstance(members.get("code"), str):
        members = {
            "code": "too_large" if status == 413 else "http_%d" % status,
            "title": "not an answer of Quittance",
            "retryable": status >= 500 or status in (408, 429),
        }
    if not members.get("retry_after") and retry_after and retry_after.isascii() and retry_after.isdigit():
        members = dict(members, retry_after=int(retry_after))
    return _classes.get(str(members["code"]), Problem)(status, members)


def as_paused(run_id: str, error: Exception) -> Exception:
    """Gives a refusal because of a pause its type, and passes others on."""
    if isinstance(error, Problem) and error.code == "run_paused":
        paused = Paused(run_id, error.waiting_for)
        paused.__cause__ = error
        return paused
    return error
