"""The runner for Python: obeys the commands of client/conformance/README.md.

With the argument "async" it does so through the AsyncClient.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
import time
from typing import Any, Callable, Dict, Optional, Union

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import quittance  # noqa: E402
from quittance.lookups import Question, Seen, answer_lookups  # noqa: E402

Answer = Dict[str, Any]
OK: Answer = {"ok": True}


class Background:
    """A call that stands still in its tool."""

    def __init__(self) -> None:
        self.news = threading.Event()  # it stands, or has ended
        self.go_on = threading.Event()
        self.ended = threading.Event()
        self.answer: Optional[Answer] = None


def act(script: Dict[str, Any], call: quittance.Call, background: Optional[Background]) -> Any:
    """Is the tool."""
    if script.get("pause") and background:
        background.news.set()
        background.go_on.wait()
    if script.get("late_by_ms"):
        time.sleep(call.remaining() + script["late_by_ms"] / 1000)
        call.ready()
    if script.get("crash"):
        os._exit(9)
    if script.get("raise"):
        raise ToolError(script["raise"])
    if "refuse" in script:
        raise quittance.Refused(quittance.RawJSON(script["refuse"]))
    result: Any = quittance.RawJSON(script["result"]) if "result" in script else None
    if script.get("size"):
        result = "x" * script["size"]
    return quittance.Reference(script["reference"], result) if script.get("reference") else result


class ToolError(RuntimeError):
    """What a tool of a scenario fails with."""


def refusal(error: BaseException) -> Answer:
    if isinstance(error, quittance.Paused):
        waiting = [{"effect": w.effect_id, "reason": w.reason} for w in error.waiting_for]
        return {"paused": waiting, "cause": cause(error.__cause__)}
    if isinstance(error, quittance.NothingReady):
        return {"error": "nothing_ready"}
    if isinstance(error, quittance.NoAnswer) or (isinstance(error, quittance.Problem) and error.code.startswith("http_")):
        return {"error": "no_answer"}
    if isinstance(error, quittance.Problem):
        return {"error": error.code}
    if isinstance(error, quittance.ArgumentsError):
        return {"error": "not_an_object"}
    if isinstance(error, ToolError):
        return {"error": "tool", "detail": str(error)}
    return {"error": "usage", "detail": "%s: %s" % (type(error).__name__, error)}


def cause(error: Optional[BaseException]) -> str:
    """Is what a pause says about the call that was made just now."""
    if error is None or isinstance(error, quittance.Problem):
        return ""
    return "too_late" if isinstance(error, quittance.TooLate) else "tool: %s" % error


def raw(text: str) -> Any:
    """Is JSON for the client; what is none is given to it as it is, to be refused."""
    try:
        return quittance.RawJSON(text)
    except ValueError:
        return text


class Runner:
    """Drives the plain client. The async one differs in `call`, `perform` and `wait_for`."""

    def __init__(self, asynchronous: bool) -> None:
        options: Dict[str, Any] = {"spool": os.environ["QUITTANCE_SPOOL"], "patience": 10.0}
        address = (os.environ["QUITTANCE_URL"], os.environ["QUITTANCE_TOKEN"])
        self.loop: Optional[asyncio.AbstractEventLoop] = None
        self.client: Union[quittance.Client, quittance.AsyncClient]
        if asynchronous:
            self.loop = asyncio.new_event_loop()
            threading.Thread(target=self.loop.run_forever, daemon=True).start()
            self.client = quittance.AsyncClient(*address, **options)
        else:
            self.client = quittance.Client(*address, **options)
        self.runs: Dict[str, Any] = {}
        self.background: Dict[str, Background] = {}

    def wait_for(self, value: Any) -> Any:
        """Is the value that the plain client returns at once."""
        if self.loop is None:
            return value

        async def awaited() -> Any:
            return await value

        return asyncio.run_coroutine_threadsafe(awaited(), self.loop).result()

    def obey(self, c: Dict[str, Any]) -> Answer:
        op, name = c.get("op"), c.get("run", "")
        if op == "open":
            held = c.get("wait_held_ms", 0) / 1000
            return self.opened(self.client.open(name, agent=c.get("agent", "bot"), lease_seconds=c.get("lease_seconds", 60), wait_held=held))
        if op == "claim":
            return self.opened(self.client.claim(c["agents"], wait_ready=c.get("wait_ready_ms", 0) / 1000))
        if op == "digest":
            return {"digest": quittance.call_digest(c["tool"], c["arguments"], c.get("volatile") or [])}
        if op == "answer_lookups":
            return self.answer_lookup(c)
        if op == "crash":
            os._exit(9)
        if op in ("go", "join"):
            background = self.background[c["background"]]
            if op == "go":
                background.go_on.set()
                return OK
            background.ended.wait()
            return background.answer or {}
        run = self.runs[name]
        if op == "call":
            return self.start(run, c)
        if op == "bench":
            return self.bench(run, c)
        if op == "state":
            return {"turn": run.turn, "state": run.state_text}
        if op == "on_sigterm":
            run.release_on_signal(20.0, [signal.SIGTERM])
            return OK
        does: Dict[str, Callable[[], Any]] = {
            "checkpoint": lambda: run.checkpoint(c["turn"], quittance.RawJSON(c["state"])),
            "wait": lambda: run.wait(),
            "release": lambda: run.release(),
            "close": lambda: run.close(c.get("outcome", "finished")),
        }
        if op not in does:
            return {"error": "usage", "detail": "no such command"}
        self.wait_for(does[str(op)]())
        return OK

    def answer_lookup(self, c: Dict[str, Any]) -> Answer:
        """Ends the loop once it has a question: what is under way is answered."""
        stop, answer = threading.Event(), dict(OK)

        def look(question: Question) -> Seen:
            answer["question"] = {
                "effect": question.effect_id, "tool": question.tool, "business_key": question.business_key,
                "arguments": json.dumps(question.arguments),
            }  # fmt: skip
            stop.set()
            return Seen(**json.loads(c["seen"]))

        client = self.client if isinstance(self.client, quittance.Client) else self.client._client
        answer_lookups(client, c["pool"], look, stop=stop)
        return answer

    def bench(self, run: Any, c: Dict[str, Any]) -> Answer:
        took = []
        if self.loop is None:
            for n in range(c["calls"]):
                start = time.perf_counter()
                run.do(c["tool"], {"n": n}, lambda call: None)
                took.append(time.perf_counter() - start)
        else:

            async def nothing(call: quittance.Call) -> None:
                return None

            async def bench() -> None:
                for n in range(c["calls"]):
                    start = time.perf_counter()
                    await run.do(c["tool"], {"n": n}, nothing)
                    took.append(time.perf_counter() - start)

            self.wait_for(bench())
        return {"median_us": int(sorted(took)[len(took) // 2] * 1e6)}

    def opened(self, opening: Any) -> Answer:
        run = self.wait_for(opening)
        self.runs[run.id] = run
        return {"ok": True, "run": run.id, "turn": run.turn, "state": run.state_text}

    def start(self, run: Any, c: Dict[str, Any]) -> Answer:
        if "background" not in c:
            return self.call(run, c, None)
        background = self.background[c["background"]] = Background()

        def work() -> None:
            background.answer = self.call(run, c, background)
            background.ended.set()
            background.news.set()

        threading.Thread(target=work, daemon=True).start()
        background.news.wait()
        return OK if not background.ended.is_set() else background.answer or {}

    def call(self, run: Any, c: Dict[str, Any], background: Optional[Background]) -> Answer:
        seen: Answer = {"performed": 0}

        def perform(call: quittance.Call) -> Any:
            seen["performed"] += 1
            seen["saw"] = {"vendor_key": call.vendor_key, "attempt": call.attempt, "arguments": call.arguments_text}
            return act(c.get("perform") or {}, call, background)

        async def perform_async(call: quittance.Call) -> Any:
            # In a thread, because the tool stands still, and deaf to a cancellation.
            working = asyncio.get_running_loop().run_in_executor(None, perform, call)
            while True:
                try:
                    return await asyncio.shield(working)
                except asyncio.CancelledError:
                    pass

        tool = perform if self.loop is None or (c.get("perform") or {}).get("late_by_ms") else perform_async
        try:
            out = self.wait_for(run.do(c["tool"], raw(c["arguments"]), tool, call_id=c.get("call_id"), key=c.get("key")))
        except quittance.Refused as error:
            out = error.outcome
        except BaseException as error:
            return dict(refusal(error), **seen)
        answer = {
            "outcome": out.outcome, "effect": out.effect_id, "replayed": out.replayed, "recorded": out.recorded, "decided_by": out.decided_by,
            "reference": out.reference, "result_size": out.result_size, "result_digest": out.result_digest,
        }  # fmt: skip
        answer["reason" if out.outcome == "failed" else "result"] = out.error_text if out.outcome == "failed" else out.result_text
        return dict(answer, **seen)


def main() -> None:
    runner = Runner("async" in sys.argv[1:])
    for line in sys.stdin:
        try:
            answer = runner.obey(json.loads(line))
        except Exception as error:
            answer = refusal(error)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    os._exit(0)  # as a process that is killed: nothing is released


main()
