import assert from "node:assert/strict";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";

import { answerLookups, Problem, type Question, type Seen } from "../src/index.js";
import { newClient } from "./world.js";

const question = {
  lookup_id: "l/1",
  effect_id: "e1",
  tool: "file_return",
  business_key: "2026-Q1",
  vendor_key: "qt_1",
  arguments: "{{args}}",
};
const asked = JSON.stringify(question).replace('"{{args}}"', '{"period":"2026-Q1","id":9007199254740993}');
const record = { business_key: "2026-Q1", reference: "R-7", recipient_matches: true, final: true, result: { receipt: 9007199254740993n } };
const seen: Seen = { hits: [record], complete: true, canary_seen: true, world: "live" };

/** Answers each claim by what is left of a list, then by 204 and says that it is idle. */
async function server(claims: [number, string][], idle: () => void, answers: [number, string][] = []) {
  const got: { path: string; body: string }[] = [];
  const s = http.createServer(async (q, a) => {
    const chunks: Buffer[] = [];
    for await (const chunk of q) chunks.push(chunk as Buffer);
    got.push({ path: q.url ?? "", body: Buffer.concat(chunks).toString() });
    const [status, body] = (q.url === "/v1/lookups/claim" ? claims : answers).shift() ?? [204, ""];
    a.writeHead(status, { "content-type": "application/json" }).end(body);
    if (q.url === "/v1/lookups/claim" && status === 204) idle();
  });
  await new Promise<void>((resolve) => s.listen(0, "127.0.0.1", resolve));
  after(() => s.close().closeAllConnections());
  return { got, client: (log?: (line: string) => void) => newClient({ url: `http://127.0.0.1:${(s.address() as AddressInfo).port}`, log: (...line) => log?.(JSON.stringify(line)) }) };
}

async function work(claims: [number, string][], look: (q: Question) => Seen | Promise<Seen>, answers: [number, string][] = [], log?: (line: string) => void) {
  const done = new AbortController();
  const { got, client } = await server(claims, () => done.abort(), answers);
  await answerLookups(client(log), "tax", look, { signal: done.signal });
  return got;
}

test("a question is answered with what was seen, digit for digit", async () => {
  const got = await work([[200, asked]], (q) => {
    assert.deepEqual([q.lookup_id, q.tool, q.business_key, q.arguments], ["l/1", "file_return", "2026-Q1", { period: "2026-Q1", id: 9007199254740993n }]);
    return seen;
  });
  assert.deepEqual(
    got.map((g) => g.path),
    ["/v1/lookups/claim", "/v1/lookups/l%2F1/answer", "/v1/lookups/claim"],
  );
  assert.match(got[0]?.body ?? "", /^\{"pool":"tax","worker":".+","attempt_id":"[A-Z2-7]{26}"\}$/);
  assert.equal(
    got[1]?.body,
    '{"hits":[{"business_key":"2026-Q1","reference":"R-7","recipient_matches":true,"final":true,"result":{"receipt":9007199254740993}}],"complete":true,"canary_seen":true,"world":"live"}',
  );
});

test("a look that fails is said to have failed, and why stays here", async () => {
  const lines: string[] = [];
  const failing = () => Promise.reject(new Error("401 for token hunter2"));
  const got = await work([[200, asked], [200, asked]], failing, [], (line) => lines.push(line));
  assert.deepEqual(
    got.filter((g) => g.path.endsWith("answer")).map((g) => g.body),
    Array(2).fill('{"hits":[],"complete":false,"error":"the worker could not look"}'),
  );
  assert.ok(lines.some((line) => line.includes("hunter2")));
});

test("records that went through a float are not sent", async () => {
  const got = await work([[200, asked]], () => ({ hits: [{ ...record, result: 2 ** 53 }], complete: true }));
  assert.equal(got[1]?.body, `{"hits":[],"complete":false,"error":"the worker's answer is not JSON"}`);
});

test("the loop goes on through outages, pages and answers that come too late", async () => {
  const late: [number, string][] = [[409, '{"code":"stale","title":"answered","retryable":false,"final":true}']];
  const got = await work([[503, "no server is ready"], [200, "<html>"], [200, "{}"], [200, asked], [200, asked]], () => seen, late);
  assert.equal(got.filter((g) => g.path.endsWith("answer")).length, 2);
});

test("a token that opens nothing ends it", async () => {
  const refused: [number, string][] = [[401, '{"code":"unauthorized","title":"no","retryable":false,"final":true}']];
  await assert.rejects(
    work(refused, () => seen),
    (err) => err instanceof Problem && err.code === "unauthorized",
  );
});

test("a look that is stopped half-way is not answered", async () => {
  const done = new AbortController();
  const { got, client } = await server([[200, asked]], () => {});
  const look = async () => {
    done.abort();
    return seen;
  };
  await answerLookups(client(), "tax", look, { signal: done.signal });
  assert.deepEqual(
    got.map((g) => g.path),
    ["/v1/lookups/claim"],
  );
});
