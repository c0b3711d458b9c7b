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

import threading
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

from ._client import Client
from ._errors import NoAnswer, Problem
from ._http import backoff, escape
from ._json import RawJSON, dumps

#: How long, in seconds, the server holds a claim while nothing is due: so long may the loop
#: take to notice that it is to stop.
_POLL = 10.0


@dataclass(frozen=True)
class Question:
    """What a look-up asks: did this effect take place? It is this worker's alone until
    deadline, on `time.monotonic()`.

    business_key is what to search by; vendor_key is what every attempt passed on; reference
    is the downstream's own name for it, as far as it is known. amount is decimal text in the
    unit of currency. canary is the business key of a record that exists, to be looked for
    with the same credentials; world is where the effects take place. members is all that the
    server sent. Look after the question came: an older view proves nothing.
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
    canary: str = ""
    world: str = ""
    deadline: float = 0.0
    members: Mapping[str, Any] = field(default_factory=dict)

    def remaining(self) -> float:
        """Is how many seconds are left to answer, never below 0: a time-out for the look."""
        return max(0.0, self.deadline - time.monotonic())

    @classmethod
    def read(cls, value: Any, sent: float) -> "Question":
        """Reads what came as the answer to a claim that was sent at the given time."""
        if not isinstance(value, dict) or not isinstance(value.get("lookup_id"), str) or not isinstance(value.get("tool"), str):
            raise NoAnswer("what came back is not a question")
        amount = value.get("amount") or {}
        texts = ("lookup_id", "tool", "business_key", "vendor_key", "reference", "effect_id", "run_id", "canary", "world")
        return cls(
            **{name: str(value.get(name) or "") for name in texts}, amount=str(amount.get("value", "")), currency=str(amount.get("currency", "")),
            arguments=value.get("arguments"), deadline=sent + (value.get("answer_within_ms") or 0) / 1000, members=value,
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
        if self.error is not None:
            return {"error": self.error}
        return {
            "hits": RawJSON(dumps(hits)), "possible": RawJSON(dumps(list(self.possible))), "complete": self.complete,
            "canary_seen": self.canary_seen, "world": self.world,
        }  # fmt: skip


def answer_lookups(client: Client, pool: str, look: Callable[[Question], Seen], *, at_once: int = 1, stop: Optional[threading.Event] = None) -> None:
    """Answers the look-ups of the tools whose policy says `worker: {pool: NAME}`, at_once of
    them at one time, until stop is set: then no more questions are taken, and those under
    way are answered.

    look is where the downstream is asked. What it raises is logged here, and told to the
    server as "could not look" without its words, which may hold anything; return a Seen with
    an error to say more. The loop goes on through outages and raises Problem only where
    asking again would not help: a token that opens nothing, a pool that no tool names.
    """
    stop = stop or threading.Event()
    if at_once == 1:
        _work(client, pool, look, stop)
        return
    with ThreadPoolExecutor(at_once, "quittance-look") as threads:
        every = [threads.submit(_work, client, pool, look, stop) for _ in range(at_once)]
        try:
            done, _ = wait(every, return_when=FIRST_COMPLETED)
        finally:
            stop.set()  # one ends for all
    for ended in every:
        ended.result()


def _work(client: Client, pool: str, look: Callable[[Question], Seen], stop: threading.Event) -> None:
    tries = 0
    while not stop.is_set():
        sent = time.monotonic()
        try:
            body = {"pool": pool, "max": 1, "wait": "%dms" % int(_POLL * 1000)}
            answer = client._transport.once("POST", "/v1/lookups/claim", body, wait=_POLL)
            questions = [Question.read(q, sent) for q in answer.value("questions") or []]
        except (Problem, NoAnswer) as error:
            if isinstance(error, Problem) and not error.retryable:
                raise
            client._log.warning("look-ups of pool %s can't be claimed: %s", pool, error)
            stop.wait(backoff(tries, error.retry_after if isinstance(error, Problem) else 0))
            tries += 1
            continue
        tries = 0
        for question in questions:
            _answer(client, question, _look(client, question, look))


def _look(client: Client, question: Question, look: Callable[[Question], Seen]) -> Dict[str, Any]:
    try:
        return look(question).body()
    except Exception as error:
        client._log.warning("look-up %s of %s failed: %s", question.lookup_id, question.tool, error)
        return {"error": "the worker could not look (%s)" % type(error).__name__}


def _answer(client: Client, question: Question, body: Dict[str, Any]) -> None:
    try:
        _send(client, question, body)
    except (Problem, NoAnswer) as error:
        refused = isinstance(error, Problem) and 400 <= error.status < 500 and error.code != "lookup_over"
        if refused and body.get("error") is None:
            # What the server cannot take must not look like a worker that died.
            _answer(client, question, {"error": "the worker's answer was refused: %s" % (error.code if isinstance(error, Problem) else "")})
            return
        client._log.warning("the answer of look-up %s was not taken, the question is asked again: %s", question.lookup_id, error)


def _send(client: Client, question: Question, body: Dict[str, Any]) -> None:
    path = "/v1/lookups/%s/answer" % escape(question.lookup_id)
    client._retry(question.remaining(), lambda: client._transport.once("POST", path, body))
