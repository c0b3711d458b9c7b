"""Tells "again" from "twice" within a run."""

from __future__ import annotations

import threading
import uuid
from typing import Dict, Mapping, Optional, Set


def new_id() -> str:
    """Makes an id that no other process makes."""
    return uuid.uuid4().hex


class _Identical:
    """What is known of the calls with one digest. Numbers start at 1."""

    def __init__(self) -> None:
        self.done: Set[int] = set()  # came back
        self.busy: Dict[int, int] = {}  # how many perform it now
        self.attempt: Dict[int, str] = {}  # the attempt id of a begin that got no answer


class Occurrences:
    """The n-th identical call that came back with an outcome used up n. A call that did not
    come back gives its number free again, so that the next identical call is the same one.
    Safe for concurrent use."""

    def __init__(self, saved: Optional[Mapping[str, int]] = None) -> None:
        self._lock = threading.Lock()
        self._calls: Dict[str, _Identical] = {}
        self._by_call: Dict[str, int] = {}  # digest and call id -> its occurrence
        for digest, n in (saved or {}).items():
            self._same(digest).done.update(range(1, n + 1))

    def _same(self, digest: str) -> _Identical:
        return self._calls.setdefault(digest, _Identical())

    def take(self, digest: str, call_id: Optional[str]) -> "Turn":
        """Gives the lowest number that is neither used up nor being performed or, where
        call_id was seen with this digest before, the number it had then."""
        with self._lock:
            same = self._same(digest)
            n = self._by_call.get(digest + call_id) if call_id else None
            if n is None:
                n = 1
                while n in same.done or same.busy.get(n, 0) > 0:
                    n += 1
                if call_id:
                    self._by_call[digest + call_id] = n
            same.busy[n] = same.busy.get(n, 0) + 1
            return Turn(self, digest, n, same.attempt.get(n) or new_id())

    def counts(self) -> Dict[str, int]:
        """Is what a checkpoint saves: how many came back, up to the first that did not, so
        that a resumed run makes that one again first."""
        with self._lock:
            counts = {}
            for digest, same in self._calls.items():
                n = 0
                while n + 1 in same.done:
                    n += 1
                if n:
                    counts[digest] = n
            return counts


class Turn:
    """The right to make one call under one occurrence."""

    def __init__(self, every: Occurrences, digest: str, occurrence: int, attempt_id: str) -> None:
        self._every, self._digest = every, digest
        self.occurrence, self.attempt_id = occurrence, attempt_id

    def unanswered(self) -> None:
        """Keeps the attempt id for the next identical call: the begin may have arrived, and
        only the same id can be told its answer."""
        with self._every._lock:
            self._every._same(self._digest).attempt[self.occurrence] = self.attempt_id

    def answered(self) -> None:
        """Forgets the attempt id: the next begin of this occurrence is another try."""
        with self._every._lock:
            self._every._same(self._digest).attempt.pop(self.occurrence, None)

    def end(self, came_back: bool) -> None:
        """Gives the number back, used up when the call came back with an outcome."""
        with self._every._lock:
            same = self._every._same(self._digest)
            same.busy[self.occurrence] -= 1
            if came_back:
                same.done.add(self.occurrence)
