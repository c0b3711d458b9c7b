"""One guarded call between its begin and its end, the same for plain and async tools."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional

from ._call import FAILED, TAKEN, Call, Outcome, Report, raised
from ._digest import call_digest
from ._errors import ArgumentsError, NoAnswer, Paused, Problem, QuittanceError, Refused, Unrecorded, WaitingFor
from ._http import Answer
from ._json import RawJSON, dumps, loads
from ._occurrences import Turn
from ._spool import Finish

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Type

    from ._run import Run

#: What `Call.ready` of an unguarded or only observed call goes by, in seconds: no deadline, in effect.
_UNGUARDED = 24 * 3600.0


def begin(run: "Run", tool: str, args: Any, call_id: Optional[str], key: Optional[str], context: Optional[Mapping[str, Any]]) -> "Step":
    """Writes the intent. Where it raises, nothing may be performed."""
    try:
        text = dumps(args)
    except (TypeError, ValueError) as error:
        raise ArgumentsError(tool, str(error)) from error
    token = run._enter()
    try:
        digest = call_digest(tool, text, run._volatile.get(tool) or ())  # refuses what is no object
        turn = run._calls.take("key:" + key, key) if key else run._calls.take(digest, call_id)
        try:
            answer, sent = _ask(run, turn, {
                "run_id": run.id, "lease": token, "attempt_id": turn.attempt_id, "tool": tool, "arguments": RawJSON(text),
                "occurrence": None if key else turn.occurrence, "key": key, "call_id": call_id, "context": context,
            })  # fmt: skip
        except BaseException:
            turn.end(False)
            raise
        return Step(run, turn, answer, sent, text)
    except BaseException:
        run._exit()
        raise


def _ask(run: "Run", turn: Turn, body: Dict[str, Any]) -> "tuple[Answer, tuple[float, float]]":
    """Returns begin's answer and when the request that was answered left, on the monotonic
    clock and the wall's. Every try has the same attempt id: the server gives a lost answer again."""
    sent = (0.0, 0.0)

    def send() -> Answer:
        nonlocal sent
        sent = (time.monotonic(), time.time())
        now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        answer = run._client._transport.once("POST", "/v1/effects", dict(body, client_time=now, log_position=run._position or None))
        do = answer.text("do")
        if do != "pass" and not (do in ("proceed", "replay") and answer.text("effect_id")):
            raise NoAnswer("what came back is not begin's answer")
        return answer

    turn.unanswered()  # until there is one
    try:
        answer = run._client._retry(None, send)
    except Problem as problem:
        if problem.status < 500:
            turn.answered()
        raise run._refused(problem)
    turn.answered()
    run._moved(answer.position)
    return answer, sent


class Step:
    """A call that was begun. As a context manager it gives its occurrence back at the end,
    used up when it came back with an outcome."""

    def __init__(self, run: "Run", turn: Turn, answer: Answer, sent: "tuple[float, float]", arguments: str) -> None:
        self._run, self._turn, self._answer = run, turn, answer
        self._came_back = False
        self._effect_id, self._key = answer.text("effect_id"), answer.text("key")
        self.replayed = answer.text("do") == "replay"
        self.guarded = answer.text("do") == "proceed"
        #: The policy only observes the tool: its call is recorded, and nothing stops it.
        self.observed = self.guarded and answer.value("observed") is True
        within = answer.number("perform_within_ms") / 1000 if self.guarded and not self.observed else _UNGUARDED
        self.call = Call(self._effect_id, self._key, answer.text("vendor_key"), arguments, answer.number("attempt") or 1, sent[0] + within, sent[1] + within)

    def __enter__(self) -> "Step":
        return self

    def __exit__(self, kind: "Optional[Type[BaseException]]", error: Optional[BaseException], trace: "Optional[TracebackType]") -> None:
        self.end()

    def end(self) -> None:
        """Gives occurrence and run back; called once."""
        self._turn.end(self._came_back)
        self._run._exit()

    def not_performed(self) -> None:
        """Ends a call whose caller has gone before anything was performed. The next identical
        call is told the same answer."""
        if self.guarded:
            self._turn.unanswered()
        self.end()

    def replay(self) -> Outcome:
        """Is what was recorded, given as if the call had been made."""
        a = self._answer
        self._came_back = True
        if a.text("outcome") == FAILED:
            reason = a.raw("error")
            raise Refused(None if reason is None else loads(reason), replayed=True, reason_text=reason).of(self._outcome(FAILED, error=reason, replayed=True))
        return self._outcome(TAKEN, result=a.raw("result"), replayed=True)

    def _outcome(self, outcome: str, result: Optional[str] = None, error: Optional[str] = None, replayed: bool = False, recorded: bool = True, reference: str = "") -> Outcome:
        a = self._answer
        return Outcome(
            outcome=outcome, effect_id=self._effect_id, key=self._key, replayed=replayed, recorded=recorded,
            decided_by=a.text("decided_by"), reference=a.text("reference") if replayed else reference,
            result_text=result, error_text=error,
            result_omitted=a.value("result_omitted") is True, result_size=a.number("result_size"), result_digest=a.text("result_digest"),
        )  # fmt: skip

    def passed(self, report: Report) -> Outcome:
        """Is the outcome of a call that the policy does not guard, a read for instance."""
        return Outcome(TAKEN, result_text=report.result, reference=report.reference)

    def interrupted(self, error: BaseException) -> None:
        """Records what interrupted the program, which goes on with that."""
        try:
            self.record(raised(error))
        except QuittanceError:
            pass  # the interruption is what is raised

    def record(self, report: Report) -> Outcome:
        """Tells the server what became of a call, now or through the spool, and turns it into
        what `do` returns or raises."""
        run = self._run
        answer, kept = run._client._deliverer.deliver(
            Finish(
                run_id=run.id, effect_id=self._effect_id, key=self._key, fence=self._answer.number("fence"),
                outcome=report.outcome, result=report.result, error=report.error, reference=report.reference,
            ),
            run._position,
        )  # fmt: skip
        run._moved(answer.position if answer else "")
        outcome: Optional[Outcome] = None
        if report.outcome == TAKEN:
            outcome = self._outcome(TAKEN, result=report.result, recorded=answer is not None, reference=report.reference)
        elif report.outcome == FAILED or (answer and answer.state == FAILED):
            # The second: the policy's rule knows this error for a refusal.
            outcome = self._outcome(FAILED, error=report.error, recorded=answer is not None)
        self._came_back = outcome is not None
        if not kept:
            raise Unrecorded(self._effect_id, outcome) from report.raised
        if outcome is None and self.observed and report.raised is not None:
            raise report.raised
        if outcome is None:
            raise Paused(run.id, [WaitingFor(self._effect_id, "interrupted")]) from report.raised
        if outcome.outcome == TAKEN:
            return outcome
        if isinstance(report.raised, Refused):
            report.raised.reason_text = report.error
            raise report.raised.of(outcome)
        refused = Refused(loads(report.error or "null"), reason_text=report.error).of(outcome)
        raise refused from report.raised
