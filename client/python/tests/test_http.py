from __future__ import annotations

import time
from typing import List

from quittance import NoAnswer, Problem
from quittance._errors import problem_from
from quittance._http import ANSWER_LIMIT, escape

from .case import FakeCase
from .fake import Handler, drop, refuse


class Connections(FakeCase):
    def test_connections_are_kept_and_one_that_was_closed_meanwhile_is_not_an_outage(self) -> None:
        peers: List[str] = []

        def noted(handler: Handler) -> bool:
            peers.append("%s:%d" % handler.client_address)
            return True

        def noted_and_closed(handler: Handler) -> bool:
            handler.close_connection = True  # without a word, as an idle time-out does
            return noted(handler)

        self.fake.script("open", noted, noted_and_closed, noted)
        client = self.client(patience=0.0)
        for run in ("a", "b", "c"):
            client._transport.once("PUT", "/v1/runs/" + run, {})
        self.assertEqual(peers[0], peers[1])
        self.assertNotEqual(peers[1], peers[2])

    def test_a_fresh_connection_that_breaks_is_no_answer(self) -> None:
        self.fake.script("open", drop, drop)
        with self.assertRaises(NoAnswer):
            self.client()._transport.once("PUT", "/v1/runs/r", {})
        self.assertEqual(len(self.fake.bodies("open")), 1)

    def test_an_answer_that_trickles_ends_in_time(self) -> None:
        def trickle(handler: Handler) -> bool:
            handler.close_connection = True
            try:
                for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b" " * 1000:
                    handler.wfile.write(bytes([byte]))
                    handler.wfile.flush()
                    time.sleep(0.02)
            except OSError:
                pass
            return False

        self.fake.script("open", trickle)
        start = time.monotonic()
        with self.assertRaises(NoAnswer):
            self.client(try_timeout=0.3)._transport.once("PUT", "/v1/runs/r", {})
        self.assertLess(time.monotonic() - start, 10)  # and not the 20 s of the whole answer

    def test_half_an_answer_is_none(self) -> None:
        def half(handler: Handler) -> bool:
            handler.close_connection = True
            handler.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"run_id":"r"}')
            return False

        def endless(handler: Handler) -> bool:
            handler.close_connection = True
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n{" % (ANSWER_LIMIT + 1))
            return False

        def page(handler: Handler) -> bool:
            handler.close_connection = True
            handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n<html>Sign in</html>")
            return False

        def nothing(handler: Handler) -> bool:
            handler.reply(200, None)
            return False

        for way in (half, endless, page, nothing):
            self.fake.script("open", way)
            with self.assertRaises(NoAnswer, msg=way.__name__):
                self.client()._transport.once("PUT", "/v1/runs/r", {})

    def test_an_answer_in_chunks_is_read(self) -> None:
        def chunks(handler: Handler) -> bool:
            handler.wfile.write(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n{"run_i\r\n7\r\nd":"r"}\r\n0\r\n\r\n')
            return False

        self.fake.script("open", chunks)
        self.assertEqual(self.client()._transport.once("PUT", "/v1/runs/r", {}).text("run_id"), "r")

    def test_the_last_answer_of_a_connection_is_read(self) -> None:
        def last(handler: Handler) -> bool:
            handler.close_connection = True
            handler.wfile.write(b'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 14\r\n\r\n')
            handler.wfile.flush()
            time.sleep(0.02)
            handler.wfile.write(b'{"run_id":"r"}')
            return False

        def old(handler: Handler) -> bool:
            handler.close_connection = True
            handler.wfile.write(b'HTTP/1.0 200 OK\r\n\r\n{"run_id":"r"}')
            return False

        self.fake.script("open", last, old)
        client = self.client()
        for _ in range(2):
            self.assertEqual(client._transport.once("PUT", "/v1/runs/r", {}).text("run_id"), "r")

    def test_a_redirect_is_not_followed(self) -> None:
        def elsewhere(handler: Handler) -> bool:
            handler.reply(307, None, Location=self.fake.url + "/v1/runs/other")
            return False

        self.fake.script("open", elsewhere)
        with self.assertRaises(Problem) as caught:
            self.client()._transport.once("PUT", "/v1/runs/r", {})
        self.assertEqual((caught.exception.code, caught.exception.retryable), ("http_307", False))
        self.assertEqual(len(self.fake.bodies("open")), 1)

    def test_no_answer_can_ask_for_a_wait_below_zero_or_for_ever(self) -> None:
        for said, header, want in ((-5, None, 0), (10**30, None, 86400), (0, "-7", 0), (0, "3", 3), (0, "soon", 0), (0, "\u00b2", 0), (4, "9", 4), ("x", None, 0), (None, "9" * 40, 86400)):
            members = {"code": "unavailable", "retryable": True, "retry_after": said}
            self.assertEqual(problem_from(503, members, header).retry_after, want, (said, header))

    def test_retry_after_is_heeded_and_other_refusals_are_not_repeated(self) -> None:
        self.fake.script("open", refuse(503, code="not_ready", retryable=True, retry_action="retry_same", retry_after=1))
        start = time.monotonic()
        self.client().open("r", agent="bot")
        self.assertGreaterEqual(time.monotonic() - start, 1)
        self.fake.script("open", refuse(409, code="log_behind", retryable=True, retry_action="human"), drop)
        with self.assertRaises(Problem):
            self.client().open("r", agent="bot")
        self.assertEqual(len(self.fake.bodies("open")), 3)

    def test_the_token_is_in_no_error(self) -> None:
        from quittance import Client

        for url, token in (("http://127.0.0.1:1", "qa_secret\r\nX: y"), ("127.0.0.1:1", "qa_secret"), ("ftp://x", "qa_secret"), ("http://x/?a=b", "qa_secret")):
            with self.assertRaises(ValueError) as caught:
                Client(url, token)
            self.assertNotIn("qa_secret", str(caught.exception))
        with self.assertRaises(NoAnswer) as unreachable:
            Client("http://127.0.0.1:1", "qa_secret", patience=0.0, spool=self.spool).open("r", agent="bot")
        self.assertNotIn("qa_secret", repr(unreachable.exception))

    def test_a_run_id_is_one_segment(self) -> None:
        for name, want in {"a/b": "a%2Fb", "..": "%2E%2E", ".": "%2E", "a.b": "a.b", "50% é": "50%25%20%C3%A9"}.items():
            self.assertEqual(escape(name), want)
