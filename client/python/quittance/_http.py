"""Requests to the server, over connections that are kept alive."""

from __future__ import annotations

import http.client
import io
import os
import random
import socket
import ssl
import threading
import time
import urllib.parse
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, TypeVar, Union

from ._errors import NoAnswer, Problem, problem_from
from ._json import Member, members, write_object

T = TypeVar("T")

#: Bounds what is read of one answer: arguments and results at their stored limits stay
#: far below.
ANSWER_LIMIT = 64 << 20

#: As many idle connections are kept.
_IDLE = 16


class Answer(NamedTuple):
    """What the server said: the members of its object, empty for a 204."""

    status: int
    members: Dict[str, Member]
    position: str  # the log position

    def value(self, name: str) -> Any:
        """Is a member's value, None where it is absent."""
        found = self.members.get(name)
        return found.value if found else None

    def text(self, name: str) -> str:
        value = self.value(name)
        return value if isinstance(value, str) else ""

    def number(self, name: str) -> int:
        value = self.value(name)
        return value if isinstance(value, int) else 0

    def raw(self, name: str) -> Optional[str]:
        """Is a member's JSON as it was sent."""
        found = self.members.get(name)
        return found.text if found else None


_AnyConnection = Union[http.client.HTTPConnection, http.client.HTTPSConnection]


class Transport:
    """Sends requests to one server as the owner of one token. Safe for concurrent use."""

    def __init__(self, url: str, token: str, try_timeout: float, context: Optional[ssl.SSLContext]) -> None:
        parts = urllib.parse.urlsplit(url.rstrip("/"))
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError("the server's address must be a URL such as http://127.0.0.1:8080")
        for what, text in (("token", token), ("path of the server's address", parts.path)):
            if any(not 0x21 <= ord(c) <= 0x7E for c in text):
                raise ValueError("the %s must be one word of ASCII" % what)  # it would end the line
        self._secure = parts.scheme == "https"
        self._host, self._port, self._prefix = parts.hostname, parts.port, parts.path
        self._context = context or (ssl.create_default_context() if self._secure else None)
        # Every request's head but for its first line and length: it is written once.
        self._head = " HTTP/1.1\r\nHost: %s\r\nAccept-Encoding: identity\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: " % (
            _host(parts.netloc.rpartition("@")[2]), token)  # fmt: skip
        self._try_timeout = try_timeout
        self._lock = threading.Lock()
        self._idle: List[_AnyConnection] = []
        self._pid = os.getpid()
        self._closed = False

    def once(self, method: str, path: str, body: Optional[Mapping[str, Any]] = None, wait: float = 0.0, within: Optional[float] = None) -> Answer:
        """Sends a request a single time, and reads the answer in the time of one try plus
        wait, or within that many seconds. Raises Problem where the server refused, and
        NoAnswer."""
        until = time.monotonic() + (within if within is not None else self._try_timeout + wait)
        data = write_object(body) if body is not None else None
        status, headers, text = self._exchange(method, path, data, until)
        try:
            found = members(text) if text else {}
        except (ValueError, RecursionError):
            found = {}
        if not 200 <= status <= 299:
            raise problem_from(status, {k: m.value for k, m in found.items()}, headers.get("Retry-After"))
        if not found and status != 204:
            raise NoAnswer("the server gave no answer: status %d without the JSON it should hold" % status)
        answer = Answer(status, found, "")
        return answer._replace(position=answer.text("log_position") or headers.get("Quittance-Log-Position") or "")

    def _exchange(self, method: str, path: str, data: Optional[bytes], until: float) -> "tuple[int, Any, str]":
        while True:
            connection, used = self._take()
            try:
                return self._send(connection, method, path, data, until)
            except (OSError, http.client.HTTPException, UnicodeError) as error:
                connection.close()
                # A connection that the server closed while it was idle says nothing about
                # the server; every request of ours may be sent again.
                stale = used and isinstance(error, (ConnectionError, http.client.RemoteDisconnected))
                if not stale or time.monotonic() >= until:
                    raise NoAnswer("the server gave no answer: %s" % (error or type(error).__name__)) from error
            except BaseException:
                connection.close()
                raise

    def _send(self, c: _AnyConnection, method: str, path: str, data: Optional[bytes], until: float) -> "tuple[int, Any, str]":
        c.timeout = _left(until)
        if c.sock is None:
            c.connect()
        sock: Any = c.sock
        sock.settimeout(c.timeout)
        body = data or b""
        # Head and body leave in one packet: the server is woken once.
        sock.sendall(("%s %s%s%s%d\r\n\r\n" % (method, self._prefix, path, self._head, len(body))).encode("ascii") + body)
        response = http.client.HTTPResponse(_Timed(sock, until), method=method)  # type: ignore[arg-type]
        response.begin()
        raw = _whole(response)
        keep = not response.will_close and response.isclosed()
        if keep:
            self._give_back(c)
        else:
            c.close()
        return response.status, response.headers, raw.decode("utf-8")

    def _take(self) -> "tuple[_AnyConnection, bool]":
        with self._lock:
            if self._pid != os.getpid():  # a forked process must not share connections
                self._idle, self._pid = [], os.getpid()
            if self._idle:
                return self._idle.pop(), True
        if self._secure:
            return http.client.HTTPSConnection(self._host, self._port, context=self._context), False
        return http.client.HTTPConnection(self._host, self._port), False

    def _give_back(self, c: _AnyConnection) -> None:
        with self._lock:
            if len(self._idle) < _IDLE and self._pid == os.getpid() and not self._closed:
                self._idle.append(c)
                return
        c.close()

    def close(self) -> None:
        """Closes the connections that are idle."""
        with self._lock:
            idle, self._idle, self._closed = self._idle, [], True
        for c in idle:
            c.close()

    def __del__(self) -> None:
        # Of a client that nobody closed.
        for c in getattr(self, "_idle", []):
            c.close()


def _host(name: str) -> str:
    """Writes a host, with its port, as a header has it."""
    return name if name.isascii() else name.encode("idna").decode("ascii")


def _whole(response: http.client.HTTPResponse) -> bytes:
    """Reads an answer to its end, or fails."""
    if response.length is not None and response.length <= ANSWER_LIMIT:
        return response.read()
    parts: List[bytes] = []
    size = 0
    while response.length is None and size <= ANSWER_LIMIT:
        part = response.read(1 << 16)
        if not part:
            return b"".join(parts)
        parts.append(part)
        size += len(part)
    raise http.client.HTTPException("it is longer than %d bytes" % ANSWER_LIMIT)


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError("it took too long")
    return left


class _Timed:
    """Is a socket to read an answer from that, however slowly it comes, ends in time."""

    def __init__(self, sock: socket.socket, until: float) -> None:
        self._sock, self._until = sock, until

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_TimedReader(self._sock, self._until), 1 << 16)


class _TimedReader(io.RawIOBase):
    def __init__(self, sock: socket.socket, until: float) -> None:
        # A file of the socket's own: http.client closes the socket of an answer that is the
        # connection's last before it reads it, and only files keep it open.
        self._file = sock.makefile("rb", buffering=0)
        self._sock, self._until = sock, until

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Optional[int]:
        self._sock.settimeout(_left(self._until))
        return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()


def escape(name: str) -> str:
    """Writes a name as one segment of a path. A dot segment would be cleaned away by servers
    and proxies on the way."""
    text = urllib.parse.quote(name, safe="")
    return text.replace(".", "%2E") if not text.strip(".") else text


def retry(patience: float, send: Callable[[], T], pause: Callable[[float], bool]) -> T:
    """Calls send until it gets an answer that another try would not change, or until
    patience, in seconds, is over; then the last error is raised. pause waits, and says
    that there is no sense in trying on by returning True."""
    start, tries = time.monotonic(), 0
    while True:
        try:
            return send()
        except (Problem, NoAnswer) as error:
            after = again_after(error)
            if after is None:
                raise
            wait = backoff(tries, after)
            if time.monotonic() - start + wait > patience or pause(wait):
                raise
            tries += 1


def again_after(error: Exception) -> Optional[float]:
    """Tells how long the server asked to wait before the same request is sent again, None
    where a program must not send it: a refusal that waits for a person, a poll or
    another holder."""
    if isinstance(error, Problem):
        same = error.retryable and error.retry_action in ("", "retry_same")
        return float(error.retry_after) if same else None
    return 0.0


def backoff(tries: int, after: float) -> float:
    """Grows from 50 ms to 5 s, jittered, so that agents that lost the server together do
    not come back together."""
    most = min(5.0, 0.05 * (1 << min(tries, 10)))
    return after + most / 4 + random.random() * most
