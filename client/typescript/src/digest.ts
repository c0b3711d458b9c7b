import { createHash } from "node:crypto";

import { canonicalNumber, JSONNumber, parseKeepingNumbers } from "./json.js";

/**
 * Names "the same call" within the clients, to count occurrences: the digest of the tool
 * and of the arguments, members in any order, numbers by value, the volatile paths left
 * out. It is what every client of Quittance computes, so that a checkpoint saved by one
 * is understood by another; the effect's key is computed by the server alone.
 *
 * @param args the text of a JSON object; a TypeError when it is not one
 */
export function callDigest(tool: string, args: string, volatile: readonly string[] = []): string {
  const v = parseKeepingNumbers(args);
  if (!isObject(v)) throw new TypeError(`the arguments of ${tool} must be a JSON object`);
  for (const path of volatile) leaveOut(v, path);
  return createHash("sha256").update(canonical([tool, v])).digest("hex");
}

function isObject(v: unknown): v is Record<string, unknown> {
  return typeof v === "object" && v !== null && !Array.isArray(v) && !(v instanceof JSONNumber);
}

/** Removes exactly the member at a dotted path, through objects only. */
function leaveOut(v: Record<string, unknown>, path: string): void {
  const dot = path.indexOf(".");
  if (dot < 0) {
    delete v[path];
    return;
  }
  const name = path.slice(0, dot);
  const inner = Object.hasOwn(v, name) ? v[name] : undefined;
  if (isObject(inner)) leaveOut(inner, path.slice(dot + 1));
}

function canonical(v: unknown): string {
  if (v instanceof JSONNumber) return canonicalNumber(v.text);
  if (Array.isArray(v)) return `[${v.map((item) => `${canonical(item)},`).join("")}]`;
  if (isObject(v)) {
    // A lone surrogate is a replacement character here, also where that makes two names one.
    const members = new Map(Object.entries(v).map(([name, member]) => [name.toWellFormed(), member]));
    const sorted = [...members].sort(([a], [b]) => compareCodePoints(a, b));
    return `{${sorted.map(([name, member]) => `${quote(name)}:${canonical(member)},`).join("")}}`;
  }
  return typeof v === "string" ? quote(v.toWellFormed()) : String(v);
}

/** The order of UTF-8 bytes, which is not that of UTF-16 units past U+FFFF. */
function compareCodePoints(a: string, b: string): number {
  for (let i = 0; ; ) {
    const x = a.codePointAt(i) ?? -1;
    const y = b.codePointAt(i) ?? -1;
    if (x !== y || x === -1) return x - y;
    i += x > 0xffff ? 2 : 1;
  }
}

/** A JSON string with what HTML and JavaScript would misread as escapes too. */
function quote(s: string): string {
  return JSON.stringify(s).replace(/[<>&\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
