"""JSON whose numbers stay exact.

Nothing passes through a float that a float would change: a number is read as int, as
float where writing it again gives the same number, and as Decimal otherwise.
"""

from __future__ import annotations

import dataclasses
import json
import re
from decimal import Decimal
from typing import Any, Callable, Dict, Mapping, NamedTuple, Union


class RawJSON(str):
    """JSON that is written already, taken as it is.

    Raises ValueError when it is not JSON.
    """

    def __new__(cls, text: str) -> "RawJSON":
        _checker.decode(text)
        return super().__new__(cls, text)


def _no_constant(name: str) -> Any:
    raise ValueError("%s is not JSON" % name)


def _integer(text: str) -> Union[int, Decimal]:
    try:
        return int(text)
    except ValueError:  # longer than Python converts
        return Decimal(text)


def _number(text: str) -> Union[float, Decimal]:
    value = float(text)
    exact = Decimal(text)
    return value if Decimal(repr(value)) == exact else exact


_decoder = json.JSONDecoder(parse_float=_number, parse_int=_integer, parse_constant=_no_constant)
_checker = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=_no_constant)


def loads(text: str) -> Any:
    """Reads JSON with exact numbers. Raises ValueError."""
    try:
        return _decoder.decode(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def dumps(value: Any) -> str:
    """Writes value as JSON: what the json module writes, and also Decimal (as a number) and
    dataclasses; RawJSON on its own as it is. Raises ValueError and TypeError.
    """
    if isinstance(value, RawJSON):
        return str(value)
    try:
        return _encoder.encode(value)
    except _Special:
        return _write(value)
    except RecursionError:
        raise ValueError("it is nested too deeply, or holds itself") from None


class _Special(Exception):
    """A value that the json module cannot write, and we can."""


def _special(value: Any) -> Any:
    if isinstance(value, Decimal) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
        raise _Special
    raise TypeError("%s cannot be written as JSON" % type(value).__name__)


_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_special)


def _write(value: Any) -> str:
    """Is dumps for a value with a Decimal or a dataclass somewhere inside."""
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError("%s is not JSON" % value)
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return "{" + ",".join(_name(k) + ":" + _write(v) for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_write, value)) + "]"
    return dumps(value)


def _name(key: Any) -> str:
    """Writes a member's name as the json module does."""
    return _encoder.encode({key: 0})[1:-3]


def encode(text: str) -> bytes:
    """Is text in UTF-8. Half of a surrogate pair, which has none, becomes an escape."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return _half.sub(lambda m: "\\u%04x" % ord(m.group()), text).encode("utf-8")


_half = re.compile("[\ud800-\udfff]")


class Member(NamedTuple):
    """A member of an object: its value, and its JSON as it was sent."""

    value: Any
    text: str


_SPACE = " \t\n\r"
_space = re.compile("[%s]*" % _SPACE)
_scan: Callable[[str, int], "tuple[Any, int]"] = _decoder.scan_once  # type: ignore[attr-defined]


def members(text: str) -> Dict[str, Member]:
    """Reads an object and keeps how its members were written. Raises ValueError."""
    try:
        found, at = _members(text)
    except (StopIteration, IndexError):
        raise ValueError("it is not an object") from None
    if _skip(text, at) != len(text):
        raise ValueError("something stands behind the object")
    return found


def _members(text: str) -> "tuple[Dict[str, Member], int]":
    # This reads each answer: it looks for white space, of which the server writes none,
    # only where there is some. Raises IndexError at the end of the text.
    at = _skip(text, 0)
    if text[at] != "{":
        raise ValueError("it is not an object")
    at = _skip(text, at + 1)
    found: Dict[str, Member] = {}
    if text[at] == "}":
        return found, at + 1
    while True:
        name, at = _scan(text, at)
        if text[at] in _SPACE:
            at = _skip(text, at)
        if not isinstance(name, str) or text[at] != ":":
            raise ValueError("it is not an object")
        at += 1
        if text[at] in _SPACE:
            at = _skip(text, at)
        value, end = _scan(text, at)
        found[name] = Member(value, text[at:end])
        if text[end] in _SPACE:
            end = _skip(text, end)
        at = end + 1
        if text[end] == "}":
            return found, at
        if text[end] != ",":
            raise ValueError("it is not an object")
        if text[at] in _SPACE:
            at = _skip(text, at)


def _skip(text: str, at: int) -> int:
    match = _space.match(text, at)
    return match.end() if match else at


def write_object(fields: Mapping[str, Any]) -> bytes:
    """Writes a request: members that are None are left out, RawJSON is put in as it is."""
    return encode("{" + ",".join('"%s":%s' % (k, dumps(v)) for k, v in fields.items() if v is not None) + "}")
