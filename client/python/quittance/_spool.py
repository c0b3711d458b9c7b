"""Outcomes that the server does not have yet, on the disk.

One file each, in the format of the Go client's spool: clients of both languages may
share a folder. A file is there whole or not at all, also after a crash of the machine.
An outcome delivered twice is recorded once.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import sys
import tempfile
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any, Dict, List, Mapping, Optional

from ._json import RawJSON, encode, members, write_object

#: Holds what the server refused as malformed: an outcome is never dropped, but repeating
#: it would not help.
_REJECTED = "rejected"

_NAME = re.compile(r"[^.].*\.json\Z")


@dataclass(frozen=True)
class Finish:
    """What became of a call, on its way to the server. result and error are JSON text."""

    run_id: str
    effect_id: str
    key: str
    fence: int
    outcome: str
    result: Optional[str] = None
    error: Optional[str] = None
    reference: str = ""
    result_omitted: bool = False
    result_size: int = 0
    result_digest: str = ""

    def without_result(self) -> "Finish":
        """Replaces what cannot be sent by its size and digest."""
        if self.result is None:
            return replace(self, error=None)
        raw = encode(self.result)
        return replace(
            self, result=None, error=None, result_omitted=True, result_size=len(raw), result_digest=hashlib.sha256(raw).hexdigest()
        )

    def body(self) -> Dict[str, Any]:
        """Is the request that tells it, without the names of the effect."""
        return {
            "fence": self.fence or None,
            "outcome": self.outcome,
            "result": None if self.result is None else RawJSON(self.result),
            "error": None if self.error is None else RawJSON(self.error),
            "reference": self.reference or None,
            "result_omitted": self.result_omitted or None,
            "result_size": self.result_size or None,
            "result_digest": self.result_digest or None,
        }

    def file(self) -> bytes:
        finish = RawJSON(write_object(self.body()).decode("utf-8"))
        return write_object({"run_id": self.run_id, "effect_id": self.effect_id, "key": self.key, "finish": finish})

    @classmethod
    def read(cls, raw: bytes) -> "Finish":
        """Reads a file. Raises ValueError."""
        outer = {k: m.value for k, m in members(raw.decode("utf-8")).items()}
        inner = members(members(raw.decode("utf-8"))["finish"].text) if "finish" in outer else {}
        values = {k: m.value for k, m in inner.items()}
        names = [outer.get("run_id"), outer.get("effect_id"), outer.get("key"), values.get("outcome")]
        if not all(isinstance(n, str) for n in names):
            raise ValueError("it is not an outcome")
        return cls(
            run_id=outer["run_id"],
            effect_id=outer["effect_id"],
            key=outer["key"],
            fence=_kind(values, "fence", 0),
            outcome=values["outcome"],
            result=inner["result"].text if "result" in inner else None,
            error=inner["error"].text if "error" in inner else None,
            reference=_kind(values, "reference", ""),
            result_omitted=_kind(values, "result_omitted", False),
            result_size=_kind(values, "result_size", 0),
            result_digest=_kind(values, "result_digest", ""),
        )


def _kind(values: Mapping[str, Any], name: str, default: Any) -> Any:
    value = values.get(name, default)
    if type(value) is not type(default):
        raise ValueError("%s is not what it should be" % name)
    return value


class Spool:
    """A folder of outcomes. Several processes may share it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def save(self, finish: Finish) -> str:
        """Writes an outcome durably and returns its file's name. Names sort by time.
        Raises OSError."""
        now = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S.%f")
        name = "%s-%s.json" % (now, secrets.token_hex(4))
        self._write(self.folder, name, finish)
        return name

    def reject(self, name: str, finish: Finish) -> None:
        """Keeps an outcome aside for a person."""
        self._write(os.path.join(self.folder, _REJECTED), name, finish)

    def _write(self, folder: str, name: str, finish: Finish) -> None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        handle, partial = tempfile.mkstemp(prefix="." + name + "-", dir=folder)  # for its owner alone
        try:
            with os.fdopen(handle, "wb") as f:
                f.write(finish.file())
                f.flush()
                os.fsync(f.fileno())
            os.replace(partial, os.path.join(folder, name))
        except BaseException:
            try:
                os.unlink(partial)
            except OSError:
                pass
            raise
        _sync_folder(folder)

    def names(self) -> List[str]:
        """Lists what waits, oldest first. A folder that does not exist holds nothing."""
        try:
            return sorted(n for n in os.listdir(self.folder) if _NAME.match(n))
        except FileNotFoundError:
            return []

    def load(self, name: str) -> Optional[Finish]:
        """Reads one outcome; None when another process delivered it meanwhile. Raises
        ValueError for a file that is none."""
        try:
            with open(os.path.join(self.folder, name), "rb") as f:
                return Finish.read(f.read())
        except FileNotFoundError:
            return None

    def remove(self, name: str) -> None:
        """Forgets a delivered outcome. Should the removal be lost in a crash, it is delivered
        once more, which changes nothing."""
        try:
            os.unlink(os.path.join(self.folder, name))
        except FileNotFoundError:
            pass

    def set_aside(self, name: str) -> None:
        """Moves a file that cannot be read out of the way."""
        aside = os.path.join(self.folder, _REJECTED)
        os.makedirs(aside, mode=0o700, exist_ok=True)
        try:
            os.replace(os.path.join(self.folder, name), os.path.join(aside, name))
        except FileNotFoundError:
            pass


def _sync_folder(folder: str) -> None:
    """Makes a rename survive a crash of the machine. Windows cannot, and needs not."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def default_folder(server: str, token: str) -> str:
    """Is apart for each server and token, so that an outcome never reaches another account;
    the same as the Go client's."""
    owner = hashlib.sha256((server + "\n" + token).encode("utf-8")).hexdigest()[:16]
    return os.path.join(_cache_folder(), "quittance", "spool", owner)


def _cache_folder() -> str:
    home = os.path.expanduser("~")
    if os.name == "nt":
        return os.environ.get("LOCALAPPDATA") or tempfile.gettempdir()
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Caches")
    given = os.environ.get("XDG_CACHE_HOME") or ""
    if os.path.isabs(given):
        return given
    return os.path.join(home, ".cache") if os.path.isabs(home) else tempfile.gettempdir()
