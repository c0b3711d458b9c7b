import assert from "node:assert/strict";
import { test } from "node:test";

import { callDigest, JSONNumber, parse, RawJSON, stringify } from "../src/index.js";
import { canonicalNumber, rawMembers } from "../src/json.js";

test("numbers keep their value on the way in", () => {
  for (const [text, want] of [
    ["1", 1],
    ["-0.5", -0.5],
    ["9007199254740991", 9007199254740991],
    ["9007199254740992", 9007199254740992n], // whatever a double holds, the type goes by the size
    ["9007199254740993", 9007199254740993n],
    ["-9007199254740993", -9007199254740993n],
    ["100000000000000000000", 100000000000000000000n],
    ["1e20", new JSONNumber("1e20")],
    ["1.5e300", new JSONNumber("1.5e300")],
    ["1.5e3", 1500],
    ["1.5e-300", 1.5e-300],
    ["4200.00", 4200],
    ["0.1", 0.1],
    ["123456789.123456", 123456789.123456],
    ["0.1234567890123456789", new JSONNumber("0.1234567890123456789")],
    ["12345678901234567.5", new JSONNumber("12345678901234567.5")],
    ["1e400", new JSONNumber("1e400")],
    ["1e-400", new JSONNumber("1e-400")],
  ] as const) {
    assert.deepEqual(parse(text), want, text);
    assert.deepEqual(parse(`{"a":[${text}]}`), { a: [want] }, text);
  }
});

test("what was read is written with the same value", () => {
  for (const text of ["1", "9007199254740992", "9007199254740993", "0.1234567890123456789", "1e400", "1e20", "-0.1", "12345678901234567.5"]) {
    assert.equal(canonicalNumber(stringify(parse(text), "exact")), canonicalNumber(text), text);
  }
});

test("a number that went through a float is not taken for an argument", () => {
  for (const n of [9007199254740992, 9007199254740993, -1e16, 1e21]) {
    assert.throws(() => stringify({ a: [{ "b/c~": n }] }, "exact"), /^TypeError: at \/a\/0\/b~1c~0: an integer above 2\^53/);
    assert.equal(Number(parse(stringify(n))), n, "a result is written as the float that it is");
  }
});

test("numbers are written digit for digit", () => {
  assert.equal(
    stringify({ a: 12n, b: 9007199254740993n, c: new JSONNumber("1.50"), d: new RawJSON('{"x": 1.0}'), e: 0.1, f: -0, g: 1e-7 }, "exact"),
    '{"a":12,"b":9007199254740993,"c":1.50,"d":{"x": 1.0},"e":0.1,"f":0,"g":1e-7}',
  );
  for (const text of ["01", "+1", "1.", ".5", "NaN", "1e", "", "1 "]) assert.throws(() => new JSONNumber(text), SyntaxError, text);
  assert.throws(() => new RawJSON('{"a":'), SyntaxError);
});

test("what is not JSON is refused, and where it is", () => {
  const cycle: Record<string, unknown> = {};
  cycle.a = cycle;
  for (const [value, problem] of [
    [NaN, /NaN is not JSON/],
    [{ a: Infinity }, /at \/a: Infinity/],
    [{ a: { b: () => 1 } }, /at \/a\/b: a function/],
    [{ a: Symbol("s") }, /at \/a: a symbol/],
    [[1, undefined], /at \/1: undefined/],
    [{ m: new Map() }, /at \/m: a Map/],
    [{ s: new Set() }, /at \/s: a Set/],
    [cycle, /cycle/],
    [undefined, /undefined/],
  ] as const) {
    assert.throws(() => stringify(value), problem);
  }
});

test("what is JSON is written as JSON.stringify does", () => {
  for (const value of [
    null,
    true,
    "a\u0000\ud83d\u2028é",
    [],
    {},
    { a: undefined, b: [null, [1.5]], "": "x" },
    new Date(0),
    { d: { toJSON: () => ({ x: 1 }) } },
    [new Number(1), new String("s"), new Boolean(false)],
    JSON.parse('{"__proto__": 1}'),
    Buffer.from("x"),
  ]) {
    assert.equal(stringify(value), JSON.stringify(value));
  }
});

test("the exact reader reads what JSON.parse reads", () => {
  for (const rest of ['"a\\"\\\\":"\\\\"', '"\\u00e9\\n":[true,false,null,""]', '"__proto__":{"x":[]}', '"a":1,"a":2', ' "k" : [ 1 , 2 ] ']) {
    const text = ` {"big":9007199254740993,${rest}} `;
    const want = JSON.parse(text.replace("9007199254740993", '"big"'));
    want.big = 9007199254740993n;
    assert.deepEqual(parse(text), want);
  }
  for (const text of ["", "{", '{"a"}', "[1,]", '{"a":1,}', "01", "1 2", "tru", '"a', '"\n"', "[1 2]", "{a:1}", "-", "1.", "NaN", '"\\x"']) {
    assert.throws(() => parse(text.replace("1", "1234567890123456")), SyntaxError, text);
    assert.throws(() => rawMembers(`{"a":${text}}`), SyntaxError, text);
  }
});

test("members are cut out byte for byte", () => {
  const members = rawMembers('{"a": {"b" : [1.50, "}\\""]} ,"c":1e2, "d":"\\u0041", "a":null }');
  assert.deepEqual([...members], [
    ["a", "null"],
    ["c", "1e2"],
    ["d", '"\\u0041"'],
  ]);
  assert.throws(() => rawMembers("[]"), SyntaxError);
});

test("the digest is that of the other clients", () => {
  // Fixed for ever: checkpoints that exist go by it.
  assert.equal(
    callDigest("pay", '{"b":[1.50,null,true],"a":{"<é>":"x\\u2028\\\\\\"y"},"n":-1200,"z":0.0}'),
    "daae9f17d9b92e4a80d59dd4c12894630a3b7c8f2e616f38667b90e0078fc20a",
  );
  assert.equal(callDigest("t", '{"\\uffff":1,"\\ud83d\\ude00":2}'), callDigest("t", '{"\\ud83d\\ude00":2,"\\uffff":1}'));
  assert.equal(callDigest("t", '{"a":1,"v":{"w":2,"x":3}}', ["v.w", "a.b", "constructor.name"]), callDigest("t", '{"a":1.0,"v":{"x":3}}'));
  assert.notEqual(callDigest("t", '{"u":9007199254740993}'), callDigest("t", '{"u":9007199254740992}'));
  for (const args of ["1", "[]", "null", '"{}"']) assert.throws(() => callDigest("t", args), TypeError);
});
