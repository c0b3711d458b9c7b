"""A stand-in for the server that keeps to the contract as far as tests of the client need
it, and fails as it is told. What clients and the real server agree on is tested in
client/conformance."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Dict, List, Optional, Tuple

Reply = Tuple[int, Optional[Dict[str, Any]]]


class Fake:
    """Answers on a port of its own."""

    def __init__(self) -> None:
        self.effects: Dict[str, Dict[str, Any]] = {}
        self.calls: List[Tuple[str, Dict[str, Any]]] = []  # route and body, in their order
        self.lease = 0
        self.paused: List[Dict[str, Any]] = []  # what a begin or open is refused for
        self.within = 60000  # perform_within_ms
        self.checkpoint: Optional[Dict[str, Any]] = None
        self.questions: List[Dict[str, Any]] = []
        self.scripts: Dict[str, List[Callable[["Handler"], bool]]] = {}
        self.changed = threading.Condition()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"fake": self}))
        self.server.daemon_threads = True
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def script(self, route: str, *does: Callable[["Handler"], bool]) -> None:
        """Has the next calls of a route met by these, one each. One that returns True is
        answered as usual afterwards."""
        self.scripts.setdefault(route, []).extend(does)

    def bodies(self, route: str) -> List[Dict[str, Any]]:
        with self.changed:
            return [body for r, body in self.calls if r == route]

    def wait_for(self, what: Callable[[], Any]) -> Any:
        """Waits until what is true, and returns it."""
        with self.changed:
            if not self.changed.wait_for(what, 20):
                raise AssertionError("it never came")
            return what()

    def answer(self, route: str, body: Dict[str, Any]) -> Reply:
        if route == "open" or route == "claim":
            if self.paused:
                return self.refuse_paused()
            self.lease += 1
            lease = {"token": "lease-%d" % self.lease, "epoch": self.lease, "expires_at": "2030-01-01T00:00:00Z"}
            answer = {"run_id": body.get("run_id", "r"), "agent": "bot", "state": "running", "lease": lease, "log_position": "p0"}
            if self.checkpoint:
                answer["checkpoint"] = {"turn": self.checkpoint["turn"]}
            return 200, answer
        if route == "begin":
            return self.begin(body)
        if route == "finish":
            effect = next(e for e in self.effects.values() if e["id"] == body["id"])
            effect["finish"] = body
            effect["state"] = {"taken": "taken", "failed": "failed"}.get(body["outcome"], "interrupted")
            return 200, {"effect_id": effect["id"], "state": effect["state"], "version": 2, "log_position": "p2"}
        if route == "checkpoint":
            self.checkpoint = {"turn": body["turn"], "state": body["state"], "occurrences": body["occurrences"]}
            return 204, None
        if route == "saved":
            return 200, self.checkpoint
        if route == "look":
            return 200, {"questions": [self.questions.pop(0)] if self.questions else []}
        return 200, {"state": "running", "log_position": "p1"}

    def begin(self, body: Dict[str, Any]) -> Reply:
        if self.paused:
            return self.refuse_paused()
        key = json.dumps([body["tool"], body["arguments"], body.get("occurrence"), body.get("key")], sort_keys=True)
        effect = self.effects.setdefault(key, {"id": "e%d" % (len(self.effects) + 1), "state": "new", "attempts": 0})
        finish = effect.get("finish")
        if finish and effect["state"] in ("taken", "failed"):
            kept = {k: finish[k] for k in ("result", "error", "reference") if k in finish}
            return 200, dict(kept, do="replay", replayed=True, effect_id=effect["id"], key=key, outcome=effect["state"], decided_by="agent")
        if effect["state"] == "in_flight" and effect["attempt_id"] != body["attempt_id"]:
            return 409, {"code": "effect_in_flight", "title": "under way", "retry_action": "poll"}
        if effect["state"] != "in_flight":
            effect.update(state="in_flight", attempt_id=body["attempt_id"], attempts=effect["attempts"] + 1)
        return 201, {
            "do": "proceed", "effect_id": effect["id"], "key": key, "attempt": effect["attempts"], "fence": effect["attempts"],
            "perform_within_ms": self.within, "vendor_key": "vk-" + effect["id"], "log_position": "p1",
        }  # fmt: skip

    def refuse_paused(self) -> Reply:
        return 409, {"code": "run_paused", "title": "paused", "retryable": True, "retry_action": "human", "waiting_for": self.paused}


class Handler(BaseHTTPRequestHandler):
    fake: Fake
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def serve(self) -> None:
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode("utf-8")
        parts = self.path.split("?")[0].split("/")[2:]
        route = {"runs": "run", "effects": "begin", "lookups": "look"}[parts[0]]
        body = json.loads(text) if text else {}
        if parts[0] == "runs" and len(parts) == 2:
            route = "claim" if parts[1] == "claim" else {"PUT": "open", "GET": "run"}[self.command]
            body["run_id"] = parts[1]
        elif parts[0] == "runs":
            route = {"checkpoints": "checkpoint", "checkpoint": "saved"}.get(parts[2], parts[2])
            if route == "checkpoint":
                body["turn"] = int(parts[3])
        elif parts[-1] in ("finish", "answer"):
            route, body["id"] = parts[-1], parts[1]
        with self.fake.changed:
            self.fake.calls.append((route, body))
            does = self.fake.scripts.get(route)
            script = does.pop(0) if does else None
            self.fake.changed.notify_all()
        if script and not script(self):
            return
        with self.fake.changed:
            status, answer = self.fake.answer(route, body)
            self.fake.changed.notify_all()
        self.reply(status, answer)

    do_GET = do_PUT = do_POST = serve

    def reply(self, status: int, answer: Optional[Dict[str, Any]], **headers: str) -> None:
        raw = b"" if answer is None else json.dumps(answer).encode("utf-8")
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)
        self.wfile.flush()


def drop(handler: Handler) -> bool:
    """Breaks the connection before the server has acted."""
    handler.close_connection = True
    return False


def refuse(status: int, **members: Any) -> Callable[[Handler], bool]:
    def refused(handler: Handler) -> bool:
        handler.reply(status, dict({"title": "no"}, **members))
        return False

    return refused
