// JSON whose numbers survive. JSON.parse turns 9007199254740993 into ...992 and drops
// the digits of a decimal that no double holds; a key, an amount or a vendor's id that
// went through it is another one.

/** Any JSON text, written as it is: arguments that were read elsewhere, for instance. */
export class RawJSON {
  readonly text: string;

  /** Throws a SyntaxError when text is not JSON. */
  constructor(text: string) {
    JSON.parse(text);
    this.text = text;
  }
}

/**
 * A number that no JavaScript number holds exactly, as its digits: what {@link parse}
 * gives for 0.1234567890123456789. It may also be made, to send one.
 */
export class JSONNumber {
  readonly text: string;

  /** Throws a SyntaxError when text is not a JSON number. */
  constructor(text: string) {
    if (!/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text)) throw new SyntaxError("not a JSON number");
    this.text = text;
  }

  toString(): string {
    return this.text;
  }

  /** For JSON.stringify: the digits as a string, which loses none. */
  toJSON(): string {
    return this.text;
  }
}

/** Deeper than any document the server takes; a cycle is deeper than that. */
const maxDepth = 1000;

/** How {@link stringify} treats what may have been damaged before it came here. */
export type Strictness =
  | "exact" // an integer above 2^53 that is a number is refused: it went through a float
  | "lenient"; // it is written as the float that it is

/**
 * Writes JSON as JSON.stringify does, and refuses what that leaves out or makes up:
 * NaN, functions, Map and Set, undefined in a list, a cycle. A bigint, a
 * {@link JSONNumber} and a {@link RawJSON} are written digit for digit. Members that are
 * undefined are left out. Throws a TypeError that names the place by a JSON pointer.
 */
export function stringify(value: unknown, strictness: Strictness = "lenient"): string {
  return write(value, "", strictness, 0);
}

function write(v: unknown, at: string, how: Strictness, depth: number): string {
  if (v !== null && typeof v === "object") return writeObject(v, at, how, depth);
  switch (typeof v) {
    case "string":
      return JSON.stringify(v);
    case "number":
      return writeNumber(v, at, how);
    case "bigint":
    case "boolean":
      return String(v);
    case "object":
      return "null";
  }
  throw refuse(at, `${typeof v === "undefined" ? "undefined" : `a ${typeof v}`} is not JSON`);
}

function writeNumber(v: number, at: string, how: Strictness): string {
  if (!Number.isFinite(v)) throw refuse(at, `${v} is not JSON`);
  if (how === "exact" && Number.isInteger(v) && !Number.isSafeInteger(v)) {
    throw refuse(at, "an integer above 2^53 is not exact as a number: give a bigint, a JSONNumber or a string");
  }
  return JSON.stringify(v);
}

function writeObject(v: object, at: string, how: Strictness, depth: number): string {
  if (v instanceof RawJSON || v instanceof JSONNumber) return v.text;
  if (depth >= maxDepth) throw refuse("", `nested deeper than ${maxDepth}, or in a cycle`);
  if ("toJSON" in v && typeof v.toJSON === "function") return write(v.toJSON(""), at, how, depth + 1);
  if (Array.isArray(v)) {
    const items: string[] = [];
    for (let i = 0; i < v.length; i++) items.push(write(v[i], `${at}/${i}`, how, depth + 1));
    return `[${items.join(",")}]`;
  }
  if (Object.getPrototypeOf(v) !== Object.prototype) { // most are plain
    if (v instanceof Number || v instanceof String || v instanceof Boolean) return write(v.valueOf(), at, how, depth);
    if (v instanceof Map || v instanceof Set) throw refuse(at, `a ${v.constructor.name} is not JSON`);
  }
  let members = "";
  for (const [name, member] of Object.entries(v)) {
    if (member === undefined) continue;
    members += `${members && ","}${JSON.stringify(name)}:${write(member, `${at}/${escapePointer(name)}`, how, depth + 1)}`;
  }
  return `{${members}}`;
}

function escapePointer(name: string): string {
  return /[~/]/.test(name) ? name.replaceAll("~", "~0").replaceAll("/", "~1") : name;
}

function refuse(at: string, problem: string): TypeError {
  return new TypeError(at === "" ? problem : `at ${at}: ${problem}`);
}

// Whatever JSON.parse could change has sixteen digits in a row, a point among them or
// not, or an exponent. Text that looks like it is a false alarm that costs some time.
const risky = /[\d.]{16}|\d[eE]/;

/**
 * Reads JSON. An integer is a number up to 2^53 - 1 and a bigint above; a decimal is a
 * number where that is written with the same value, and otherwise a {@link JSONNumber},
 * as is 1e20. All of it can be written again without a loss. Throws a SyntaxError.
 */
export function parse(text: string): unknown {
  if (!risky.test(text)) return JSON.parse(text);
  return new Reader(text, exactNumber).document();
}

/** Reads JSON and keeps every number as its text. */
export function parseKeepingNumbers(text: string): unknown {
  return new Reader(text, (digits) => new JSONNumber(digits)).document();
}

/**
 * The members of a JSON object, each as its text, byte for byte as it was sent.
 * Throws a SyntaxError when text is not an object.
 */
export function rawMembers(text: string): Map<string, string> {
  return new Reader(text, () => 0).rawMembers();
}

function exactNumber(digits: string): number | bigint | JSONNumber {
  const n = Number(digits);
  if (/^-?\d+$/.test(digits)) return Number.isSafeInteger(n) ? n : BigInt(digits);
  const exact = Number.isSafeInteger(n) || !Number.isInteger(n);
  return exact && Number.isFinite(n) && canonicalNumber(String(n)) === canonicalNumber(digits) ? n : new JSONNumber(digits);
}

/**
 * A JSON number as its digits and a power of ten, without needless zeros: 1, 1.0 and
 * 1e0 are equal and nothing passes through a float. An exponent of more than 64 bits
 * leaves the number as it was; the server refuses it.
 */
export function canonicalNumber(text: string): string {
  const [, sign, whole = "", fraction = "", exponent = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  const power = BigInt(exponent);
  if (power !== BigInt.asIntN(64, power)) return text;
  const digits = (whole + fraction).replace(/^0+/, "");
  const short = digits.replace(/0+$/, "");
  if (short === "") return "0";
  return `${sign}${short}e${power + BigInt(digits.length - short.length - fraction.length)}`;
}

/** What a string cannot hold as it stands: an escape, or a control character, which is refused. */
const notItself = /[\\\u0000-\u001f]/;

const numberHere = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

/** A reader of one document, that hands each number's text to a function. */
class Reader {
  #text: string;
  #at = 0;
  #number: (digits: string) => unknown;

  constructor(text: string, number: (digits: string) => unknown) {
    this.#text = text;
    this.#number = number;
  }

  document(): unknown {
    const v = this.#value();
    this.#end();
    return v;
  }

  rawMembers(): Map<string, string> {
    const members = new Map<string, string>();
    this.#members((name) => {
      this.#space();
      const start = this.#at;
      this.#value();
      members.set(name, this.#text.slice(start, this.#at));
    });
    this.#end();
    return members;
  }

  #value(): unknown {
    this.#space();
    switch (this.#text[this.#at]) {
      case "{": {
        const o: Record<string, unknown> = {};
        this.#members((name) => {
          if (name !== "__proto__") o[name] = this.#value();
          // One of that name is a member like every other.
          else Object.defineProperty(o, name, { value: this.#value(), enumerable: true, configurable: true, writable: true });
        });
        return o;
      }
      case "[":
        return this.#items();
      case '"':
        return this.#string();
      case "t":
        return this.#word("true", true);
      case "f":
        return this.#word("false", false);
      case "n":
        return this.#word("null", null);
    }
    return this.#number(this.#digits());
  }

  #members(read: (name: string) => void): void {
    this.#space();
    this.#expect("{");
    this.#space();
    if (this.#skip("}")) return;
    do {
      this.#space();
      const name = this.#string();
      this.#space();
      this.#expect(":");
      read(name);
      this.#space();
    } while (this.#skip(","));
    this.#expect("}");
  }

  #items(): unknown[] {
    const items: unknown[] = [];
    this.#expect("[");
    this.#space();
    if (this.#skip("]")) return items;
    do {
      items.push(this.#value());
      this.#space();
    } while (this.#skip(","));
    this.#expect("]");
    return items;
  }

  #string(): string {
    const start = this.#at;
    this.#expect('"');
    for (;;) {
      const end = this.#text.indexOf('"', this.#at);
      if (end < 0) throw this.#wrong();
      this.#at = end + 1;
      let backslashes = 0;
      while (this.#text[end - 1 - backslashes] === "\\") backslashes++;
      if (backslashes % 2 === 0) break;
    }
    const inside = this.#text.slice(start + 1, this.#at - 1);
    return notItself.test(inside) ? (JSON.parse(`"${inside}"`) as string) : inside;
  }

  #word<T>(word: string, value: T): T {
    if (!this.#text.startsWith(word, this.#at)) throw this.#wrong();
    this.#at += word.length;
    return value;
  }

  #digits(): string {
    numberHere.lastIndex = this.#at;
    const found = numberHere.exec(this.#text);
    if (!found) throw this.#wrong();
    this.#at = numberHere.lastIndex;
    return found[0];
  }

  #space(): void {
    for (;;) {
      const c = this.#text.charCodeAt(this.#at);
      if (c !== 32 && c !== 10 && c !== 13 && c !== 9) return;
      this.#at++;
    }
  }

  #skip(c: string): boolean {
    if (this.#text[this.#at] !== c) return false;
    this.#at++;
    return true;
  }

  #expect(c: string): void {
    if (!this.#skip(c)) throw this.#wrong();
  }

  #end(): void {
    this.#space();
    if (this.#at < this.#text.length) throw this.#wrong();
  }

  // It never repeats the text, which may be anybody's secret.
  #wrong(): SyntaxError {
    return new SyntaxError(`not JSON at character ${this.#at}`);
  }
}
