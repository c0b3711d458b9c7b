"""The name of "the same call", by which calls are counted."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Dict, List, Sequence

from ._errors import ArgumentsError


class _Literal(str):
    """A number as it was written."""


_decoder = json.JSONDecoder(parse_float=_Literal, parse_int=_Literal, parse_constant=_Literal)


def call_digest(tool: str, arguments: str, volatile: Sequence[str] = ()) -> str:
    """Names "the same call" within a run; the clients of all languages make the same.

    arguments is a JSON object, volatile are dotted paths that are left out. The effect's
    key is computed by the server alone: this digest only has to agree with it on which
    calls are equal. Raises ArgumentsError.
    """
    try:
        value = _decoder.decode(arguments)
    except (ValueError, RecursionError):
        raise ArgumentsError(tool) from None
    if not isinstance(value, dict):
        raise ArgumentsError(tool)
    for path in volatile:
        _leave_out(value, path)
    out: List[str] = []
    _write(out, [tool, value])
    text = _half.sub("\ufffd", "".join(out))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _leave_out(value: Dict[str, Any], path: str) -> None:
    """Removes exactly the member at a dotted path, through objects only."""
    name, deeper, rest = path.partition(".")
    if not deeper:
        value.pop(name, None)
    elif isinstance(value.get(name), dict):
        _leave_out(value[name], rest)


def _write(out: List[str], value: Any) -> None:
    if isinstance(value, dict):
        out.append("{")
        # Halves of surrogate pairs are one and the same here: the last of equal names counts.
        for name, member in sorted({_half.sub("\ufffd", k): v for k, v in value.items()}.items()):
            out.append(_quoted(name))
            out.append(":")
            _write(out, member)
            out.append(",")
        out.append("}")
    elif isinstance(value, list):
        out.append("[")
        for item in value:
            _write(out, item)
            out.append(",")
        out.append("]")
    elif isinstance(value, _Literal):
        out.append(exact_number(value))
    elif isinstance(value, str):
        out.append(_quoted(value))
    else:
        out.append({None: "null", True: "true", False: "false"}[value])


_half = re.compile("[\ud800-\udfff]")
_escaped = re.compile("[<>&\u2028\u2029]")
_strings = json.JSONEncoder(ensure_ascii=False)


def _quoted(text: str) -> str:
    return _escaped.sub(lambda m: "\\u%04x" % ord(m.group()), _strings.encode(text))


_whole = re.compile(r"[+-]?[0-9]+\Z")


def exact_number(text: str) -> str:
    """Writes a JSON number as digits and a power of ten without needless zeros, so that
    1, 1.0 and 1e0 are equal and nothing passes through a float.
    """
    mantissa, _, exponent = text.lower().partition("e")
    power = 0
    if exponent:
        # One that no limit allows; the server refuses it.
        if not _whole.match(exponent) or len(exponent) > 20 or not -(2**63) <= int(exponent) < 2**63:
            return str(text)
        power = int(exponent)
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    short = digits.rstrip("0")
    if not short:
        return "0"
    return "%s%se%d" % (sign, short, power - len(fraction) + len(digits) - len(short))
