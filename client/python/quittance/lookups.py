"""Answers look-ups where only the team's own code may look: a policy's `worker` look-up.

    from quittance import Client
    from quittance.lookups import Hit, Question, Seen, answer_lookups

    def look(question: Question) -> Seen:
        rows = portal.search(question.business_key)
        return Seen(hits=[Hit(r.period, r.number, recipient_matches=True, final=r.accepted, result={"receipt": r.number}) for r in rows],
                    complete=True)

    answer_lookups(Client(url, token), "tax", look)
"""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

from ._client import Client
from ._errors import NoAnswer, Problem
from ._http import Answer, backoff, escape
from ._json import RawJSON, dumps
from ._occurrences import new_id

#: How long the loop rests when nothing is asked, in seconds.
_REST = 2.0


@dataclass(frozen=True)
class Question:
    """What a look-up asks: did this effect take place?

    business_key is what to search by; vendor_key is what every attempt passed on; reference
    is the downstream's own name for it, as far as it is known. amount is decimal text in the
    unit of currency. members is all that the server sent.
    """

    lookup_id: str
    tool: str
    business_key: str = ""
    vendor_key: str = ""
    reference: str = ""
    amount: str = ""
    currency: str = ""
    arguments: Any = None
    effect_id: str = ""
    run_id: str = ""
    members: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, answer: Answer) -> "Question":
        if not answer.text("lookup_id") or not answer.text("tool"):
            raise NoAnswer("what came back is not a question")
        amount = answer.value("amount")
        amount = amount if isinstance(amount, dict) else {}
        return cls(
            lookup_id=answer.text("lookup_id"), tool=answer.text("tool"), business_key=answer.text("business_key"),
            vendor_key=answer.text("vendor_key"), reference=answer.text("reference"), amount=str(amount.get("value", "")),
            currency=str(amount.get("currency", "")), arguments=answer.value("arguments"), effect_id=answer.text("effect_id"),
            run_id=answer.text("run_id"), members={name: m.value for name, m in answer.members.items()},
        )  # fmt: skip


@dataclass(frozen=True)
class Hit:
    """A record that goes by the business key. What is left out counts as not said.

    amount is decimal text, with currency, where the tool has an amount. final: it will not
    change any more. result is what the agent is given as the tool's result. ours: it carries
    our own key, the vendor_key. never: it did not and never will take effect. reversed: it
    took effect and the money came back. state is the downstream's own word, for people.
    """

    business_key: str
    reference: str
    recipient_matches: bool
    final: bool
    amount: Optional[str] = None
    currency: Optional[str] = None
    result: Any = None
    ours: Optional[bool] = None
    never: Optional[bool] = None
    reversed: Optional[bool] = None
    state: Optional[str] = None


@dataclass(frozen=True)
class Seen:
    """What a worker saw. It brings records, never a verdict: what they prove is the server's
    business.

    possible are records that may be ours without the key; any of them blocks "not taken".
    complete: everything was read. canary_seen: a record that exists was seen with the same
    credentials. world is where it looked. error says why it could not look; it is stored, so
    it holds no secrets.
    """

    hits: Sequence[Union[Hit, Mapping[str, Any]]] = ()
    complete: bool = False
    possible: Sequence[Any] = ()
    canary_seen: Optional[bool] = None
    world: Optional[str] = None
    error: Optional[str] = None

    def body(self) -> Dict[str, Any]:
        hits: List[Dict[str, Any]] = []
        for hit in self.hits:
            named = vars(hit) if isinstance(hit, Hit) else hit
            hits.append({name: value for name, value in named.items() if value is not None})
        return {
            "hits": RawJSON(dumps(hits)), "possible": RawJSON(dumps(list(self.possible))), "complete": self.complete,
            "canary_seen": self.canary_seen, "world": self.world, "error": self.error,
        }  # fmt: skip


def answer_lookups(client: Client, pool: str, look: Callable[[Question], Seen], *, stop: Optional[threading.Event] = None, rest: float = _REST) -> None:
    """Answers the look-ups of the tools whose policy says `worker: {pool: NAME}`, one after the
    other, until stop is set (it is looked at between questions).

    look is where the downstream is asked; what it raises is logged here and told to the
    server as "could not look". The loop goes on through outages and raises Problem only where
    asking again would not help: a token that opens nothing, a pool that does not exist.
    """
    stop = stop or threading.Event()
    while not stop.is_set():
        question = _claim(client, pool, stop)
        if question is None:
            # Apart from each other, so that idle workers do not all ask at once.
            stop.wait(rest * (0.75 + random.random() / 2))
            continue
        try:
            seen = look(question)
        except Exception as error:
            # Its words may hold what the downstream was asked with: they stay here.
            client._log.warning("look-up %s of %s failed: %s", question.lookup_id, question.tool, error)
            seen = Seen(error="the worker could not look")
        _answer(client, question.lookup_id, seen)


def _claim(client: Client, pool: str, stop: threading.Event) -> Optional[Question]:
    body = {"pool": pool, "worker": client._worker, "attempt_id": new_id()}
    tries = 0
    while not stop.is_set():
        try:
            answer = client._transport.once("POST", "/v1/lookups/claim", body)
            return None if answer.status == 204 else Question.read(answer)
        except Problem as problem:
            if not problem.retryable:
                raise
            stop.wait(backoff(tries, problem.retry_after))
        except NoAnswer:
            stop.wait(backoff(tries, 0))
        tries += 1
    return None


def _answer(client: Client, lookup_id: str, seen: Seen) -> None:
    try:
        body = seen.body()
    except (TypeError, ValueError) as error:
        client._log.error("what look-up %s saw is not JSON: %s", lookup_id, error)
        body = Seen(error="the worker's answer is not JSON").body()
    try:
        client._retry(None, lambda: client._transport.once("POST", "/v1/lookups/%s/answer" % escape(lookup_id), body))
    except (Problem, NoAnswer) as error:
        # Too late, or of no use any more: the question is asked again where it is still open.
        client._log.warning("the answer of look-up %s was not taken: %s", lookup_id, error)
