"""What the tests of the client share."""

from __future__ import annotations

import tempfile
import unittest
from typing import Any

from quittance import AsyncClient, Client

from .fake import Fake


class FakeCase(unittest.TestCase):
    """A fake server and clients of it."""

    def setUp(self) -> None:
        self.fake = Fake()
        self.addCleanup(self.fake.close)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.spool = folder.name

    def client(self, **options: Any) -> Client:
        settings = dict({"spool": self.spool, "patience": 5.0, "finish_wait": 0.0}, **options)
        client = Client(self.fake.url, "secret-token", **settings)
        self.addCleanup(client.close)
        return client

    def async_client(self, **options: Any) -> AsyncClient:
        settings = dict({"spool": self.spool, "patience": 5.0, "finish_wait": 0.0}, **options)
        return AsyncClient(self.fake.url, "secret-token", **settings)
