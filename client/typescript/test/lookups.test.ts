import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";

import { answerLookups, Paused, Problem, type Look, type Question, type Seen } from "../src/index.js";
import { newClient, newRun, thrown } from "./world.js";

test("a worker's answer lets the run go on", async () => {
  const client = newClient();
  const run = await newRun(client);
  const period = `2026-Q1 ${randomUUID()}`;
  const stopping = new AbortController();
  const asked: Question[] = [];
  const look: Look = (q) => {
    asked.push(q);
    return { hits: [{ business_key: period, reference: `R-${run.id}`, recipient_matches: true, final: true, result: { receipt: 9007199254740993n } }], complete: true };
  };
  const worker = answerLookups(client, "tax", look, { signal: stopping.signal, atOnce: 2 });
  const args = { period, big: 9007199254740993n };
  const paused = await thrown(run.do("file", args, () => Promise.reject(new Error("reset"))));
  assert.ok(paused instanceof Paused);
  await run.wait();
  const out = await run.do("file", args, () => assert.fail("performed"));
  assert.deepEqual([out.result, out.decidedBy, out.reference], [{ receipt: 9007199254740993n }, "look_up", `R-${run.id}`]);
  const [q] = asked;
  assert.deepEqual([q?.tool, q?.run_id, q?.business_key, q?.effect_id, q?.arguments, q?.attempts.length], ["file", run.id, period, out.effectId, args, 1]);
  assert.match(q?.vendor_key ?? "", /^qt_/);
  stopping.abort();
  await worker;
});

test("a pool that no tool names ends the loop", async () => {
  const err = await thrown(answerLookups(newClient(), "nobody", () => assert.fail(), { signal: AbortSignal.timeout(20_000) }));
  assert.ok(err instanceof Problem && err.code === "invalid", String(err));
});

const question = (id: string) => ({ lookup_id: id, answer_within_ms: 60_000, effect_id: "e1", tool: "file_return", business_key: "2026-Q1", arguments: {} });
const questions = (...ids: string[]): [number, string] => [200, JSON.stringify({ questions: ids.map(question) })];
const record = { business_key: "2026-Q1", reference: "R-7", recipient_matches: true, final: true, result: 1 };
const seen: Seen = { hits: [record], complete: true };

/** Answers the claims by a list and then ends the loop; takes answers by another list. */
async function work(claims: [number, string][], look: Look, o: { answers?: [number, string][]; log?: (line: string) => void; atOnce?: number } = {}) {
  const done = new AbortController();
  const got: { path: string; body: string }[] = [];
  const server = http.createServer(async (q, a) => {
    const chunks: Buffer[] = [];
    for await (const chunk of q) chunks.push(chunk as Buffer);
    const claim = q.url === "/v1/lookups/claim";
    got.push({ path: q.url ?? "", body: Buffer.concat(chunks).toString() });
    const next = (claim ? claims : (o.answers ?? [])).shift();
    if (claim && !next) return void done.abort();
    const [status, body] = next ?? [200, "{}"];
    a.writeHead(status, { "content-type": "application/json" }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  after(() => server.close().closeAllConnections());
  const client = newClient({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, log: (...line) => o.log?.(JSON.stringify(line)) });
  await answerLookups(client, "tax", look, { signal: done.signal, ...(o.atOnce && { atOnce: o.atOnce }) });
  return { claims: got.filter((g) => g.path.endsWith("claim")), answers: got.filter((g) => g.path.endsWith("answer")) };
}

test("a look that fails is said to have failed, and why stays here", async () => {
  const lines: string[] = [];
  const failing = () => Promise.reject(new Error("401 for token hunter2"));
  const { answers } = await work([questions("l/1")], failing, { log: (line) => lines.push(line) });
  assert.deepEqual(answers, [{ path: "/v1/lookups/l%2F1/answer", body: '{"error":"the worker could not look"}' }]);
  assert.ok(lines.some((line) => line.includes("hunter2")));
});

test("records that went through a float are not sent", async () => {
  const { answers } = await work([questions("l")], () => ({ hits: [{ ...record, result: 2 ** 53 }], complete: true }));
  assert.equal(answers[0]?.body, '{"error":"the worker could not look"}');
});

test("an answer that is refused is not left unanswered, one that comes too late is", async () => {
  const refused: [number, string] = [413, '{"code":"too_large","title":"no"}'];
  const late: [number, string] = [409, '{"code":"lookup_over","title":"over","final":true}'];
  const { answers } = await work([questions("a"), questions("b")], () => seen, { answers: [refused, [200, "{}"], late] });
  assert.deepEqual(
    answers.map((a) => a.path[12] + " " + a.body.slice(0, 60)),
    ['a {"hits":[{"business_key":"2026-Q1","reference":"R-7","recipi', `a {"error":"the worker's answer was refused: too_large"}`, 'b {"hits":[{"business_key":"2026-Q1","reference":"R-7","recipi'],
  );
});

test("the loop goes on through outages and pages", async () => {
  const { answers } = await work([[503, "no server is ready"], [200, "<html>"], [200, "{}"], questions(), questions("l")], () => seen);
  assert.equal(answers.length, 1);
});

test("several are looked for at one time, and no more are taken", async () => {
  let now = 0;
  let most = 0;
  const look = async () => {
    most = Math.max(most, ++now);
    await new Promise((resolve) => setTimeout(resolve, 50));
    now--;
    return seen;
  };
  const { claims, answers } = await work([questions("1", "2"), questions("3"), questions("4", "5"), questions("6")], look, { atOnce: 3 });
  assert.deepEqual([most, answers.length], [3, 6]);
  assert.equal(claims[0]?.body, '{"pool":"tax","max":3,"wait":"30000ms"}');
  assert.equal((JSON.parse(claims[1]?.body ?? "") as { max: number }).max, 1);
});
