from __future__ import annotations

import dataclasses
import unittest
from decimal import Decimal

from quittance import ArgumentsError, RawJSON, call_digest
from quittance._json import dumps, encode, loads, members


@dataclasses.dataclass
class Invoice:
    number: str
    amount: Decimal


class ExactNumbers(unittest.TestCase):
    def test_a_number_is_read_as_what_holds_it(self) -> None:
        for text, want in {
            "9007199254740993": 9007199254740993,
            "0.1": 0.1,
            "4200.00": 4200.0,
            "1e2": 100.0,
            "0.12345678901234567890": Decimal("0.12345678901234567890"),
            "1e400": Decimal("1e400"),
            "9007199254740993.0": Decimal("9007199254740993.0"),
        }.items():
            got = loads(text)
            self.assertEqual(got, want, text)
            self.assertIs(type(got), type(want), text)

    def test_an_integer_longer_than_python_converts(self) -> None:
        self.assertEqual(loads("1" * 5000), Decimal("1" * 5000))

    def test_decimals_and_dataclasses_are_written(self) -> None:
        self.assertEqual(dumps({"i": [Invoice("INV-9", Decimal("4200.00"))], 1: None}), '{"i":[{"number":"INV-9","amount":4200.00}],"1":null}')

    def test_what_is_no_json_is_refused(self) -> None:
        holds_itself: list = []  # type: ignore[type-arg]
        holds_itself.append(holds_itself)
        for value in (float("nan"), Decimal("NaN"), [Decimal("Infinity")], object(), {(1, 2): 3}, holds_itself, {"d": Decimal(1), "o": object()}):
            with self.assertRaises((ValueError, TypeError)):
                dumps(value)
        for text in ("{", "NaN", '{"a":Infinity}', "1 2", ""):
            with self.assertRaises(ValueError):
                RawJSON(text)

    def test_half_a_surrogate_pair_is_written_as_an_escape(self) -> None:
        self.assertEqual(encode(dumps({"x": "\ud800", "é": "\U0001f600"})), '{"x":"\\ud800","é":"\U0001f600"}'.encode("utf-8"))


class Members(unittest.TestCase):
    def test_members_keep_how_they_were_written(self) -> None:
        got = members('\n{ "a" : [1.10, {"x":"}"}] ,\t"b":1E400,"c":"\\u00e9"} ')
        self.assertEqual({k: m.text for k, m in got.items()}, {"a": '[1.10, {"x":"}"}]', "b": "1E400", "c": '"\\u00e9"'})
        self.assertEqual(got["c"].value, "é")
        self.assertEqual(members("{}"), {})

    def test_other_texts_are_refused(self) -> None:
        for text in ("", "[]", "{", '{"a"}', '{"a":1,}', '{"a":1}x', '{"a":1 "b":2}', "<html>", '{1:2}', '{"a":NaN}'):
            with self.assertRaises(ValueError, msg=text):
                members(text)


class Digest(unittest.TestCase):
    """What all languages agree on is in client/conformance/digests.json."""

    def test_arguments_that_are_no_object_are_refused(self) -> None:
        for text in ("[]", "null", '"{}"', "{", "[" * 100000):
            with self.assertRaises(ArgumentsError):
                call_digest("pay", text)
