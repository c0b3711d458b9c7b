import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { devNull } from "node:os";
import { test } from "node:test";
import { inspect } from "node:util";

import { Client, isProblem, JSONNumber, NoAnswer, Paused, Problem, RawJSON, reference, Refused, TooLate, Unrecorded } from "../src/index.js";
import { problemFrom } from "../src/request.js";
import { decide, effect, Gate, invoice, letter, newClient, newRun, thrown, token, url } from "./world.js";

const begin = /^POST \/v1\/effects$/;
const finish = /^POST \/v1\/effects\/[^/]+\/finish$/;

test("a call is performed once, and replayed to the next process", async () => {
  const run = await newRun();
  let paid = 0;
  const args = invoice();
  const pay = () => reference(`po_${args.invoice}`, { payment: ++paid });
  const out = await run.do("pay", args, pay);
  assert.deepEqual([out.result, out.replayed, out.recorded, out.reference], [{ payment: 1 }, false, true, `po_${args.invoice}`]);
  await run.release();
  const again = await newClient().open(run.id, { agent: "bot" });
  const replay = await again.do("pay", args, pay);
  assert.deepEqual([replay.result, replay.replayed, replay.decidedBy, replay.effectId], [out.result, true, "agent", out.effectId]);
  assert.equal(paid, 1);
  assert.ok(again.epoch > 1);
});

test("numbers arrive as they were given, and come back as they were returned", async () => {
  const run = await newRun();
  const given = { big: 9007199254740993n, fee: new JSONNumber("0.10000000000000000001"), raw: new RawJSON('{"x":1.50}'), small: 7n, half: 0.5 };
  const result = { id: 9007199254740993n, fee: new JSONNumber("1.00000000000000000001"), n: 1.5 };
  const out = await run.do("send", given, (call) => {
    assert.equal(call.argumentsText, '{"big":9007199254740993,"fee":0.10000000000000000001,"raw":{"x":1.50},"small":7,"half":0.5}');
    const read: unknown = call.arguments;
    assert.deepEqual(read, { big: 9007199254740993n, fee: given.fee, raw: { x: 1.5 }, small: 7, half: 0.5 });
    return result;
  });
  assert.deepEqual(out.result, result);
  await run.release();
  const again = await newClient().open(run.id, { agent: "bot" });
  const replay = await again.do("send", given, () => assert.fail());
  assert.deepEqual(replay.result, result);
  assert.equal(replay.resultText, '{"id":9007199254740993,"fee":1.00000000000000000001,"n":1.5}');
});

test("what was recorded is what is performed", async () => {
  const run = await newRun();
  const args = { ...letter(), amount: "10.00" };
  const out = run.do("send", args, (call) => call.arguments.amount);
  args.amount = "9999.00";
  assert.equal((await out).result, "10.00");
});

test("no answer can ask for a wait below zero or for ever", () => {
  for (const [said, header, want] of [[-5, "", 0], [1e30, "", 86400], [0, "-7", 0], [0, "3", 3], [0, "soon", 0], [4, "9", 4], ["x", "", 0]] as const) {
    const p = problemFrom(503, { "retry-after": header }, JSON.stringify({ code: "unavailable", retryable: true, retry_after: said }));
    assert.equal(p.document.retry_after ?? 0, want, `${said} ${header}`);
  }
});

test("arguments that are not a JSON object are refused before anything is sent", async () => {
  const gate = await Gate.open();
  const run = await newRun(newClient({ url: gate.url }));
  for (const args of ['{"a":1}', 7, [1], null, undefined, { n: NaN }, { n: 2 ** 53 }, { f: () => 1 }, new Map(), new RawJSON("[]")]) {
    await assert.rejects(
      run.do("pay", args, () => assert.fail("performed")),
      TypeError,
    );
  }
  assert.deepEqual(gate.seen.filter((line) => begin.test(line)), []);
});

test("an error means that nobody knows: the run pauses until somebody has found out", async () => {
  const run = await newRun();
  const args = invoice();
  const cause = new Error("connection reset after the request was sent");
  const paused = await thrown(run.do("pay", args, () => Promise.reject(cause)));
  assert.ok(paused instanceof Paused && paused.cause === cause && paused.runId === run.id);
  const id = paused.waitingFor[0]?.effect_id ?? "";
  await assert.rejects(
    run.do("pay", invoice(), () => assert.fail("performed")),
    (err) => err instanceof Paused && err.cause instanceof Problem && err.waitingFor[0]?.effect_id === id,
  );
  const waited = run.wait();
  await decide(id, "taken", { reference: `po_${id}`, result: { payment: 9007199254740993n } });
  await waited;
  const out = await run.do("pay", args, () => assert.fail("performed"));
  assert.deepEqual([out.result, out.decidedBy, out.effectId], [{ payment: 9007199254740993n }, "person", id]);
});

test("a refusal is an answer, now and when it is replayed", async () => {
  const run = await newRun();
  const args = invoice();
  const declined = new Refused({ code: "card_declined", limit: 9007199254740993n });
  for (const throws of [declined, new Error("the bank said no", { cause: declined })]) {
    await assert.rejects(
      run.do("pay", args, () => Promise.reject(throws), { callId: "c" }),
      (err) => err instanceof Refused && (err.replayed || err.cause === throws) && err.reasonText === '{"code":"card_declined","limit":9007199254740993}',
    );
  }
});

test("the signal aborts at the deadline", async () => {
  const run = await newRun();
  await assert.rejects(
    run.do("quick", letter(), async (call) => {
      assert.ok(call.deadline > performance.now() && call.deadline <= performance.now() + 2000);
      await once(call.signal, "abort");
      throw call.signal.reason;
    }),
    (err) => err instanceof Paused && err.cause instanceof DOMException && err.cause.name === "TimeoutError",
  );
});

test("a tool that prepares for too long finds out and sends nothing", async (t) => {
  for (const [clock, jump] of [
    [performance, "now"],
    [Date, "now"],
  ] as const) {
    const run = await newRun();
    const paused = await thrown(
      run.do("send", letter(), (call) => {
        call.checkDeadline();
        const real = (clock as { now: () => number }).now.bind(clock);
        const mocked = t.mock.method(clock as { now: () => number }, jump, () => real() + 61_000);
        try {
          call.checkDeadline();
        } finally {
          mocked.mock.restore();
        }
      }),
    );
    assert.ok(paused instanceof Paused && paused.cause instanceof TooLate, String(paused));
  }
});

test("cancelling does not lose an outcome", async () => {
  const run = await newRun();
  const gone = new AbortController();
  const out = await run.do(
    "send",
    {},
    async (call) => {
      gone.abort();
      assert.ok(call.signal.aborted); // perform sees it,
      return "sent"; // and what it did is recorded all the same
    },
    { signal: gone.signal },
  );
  assert.deepEqual([out.result, out.recorded], ["sent", true]);
  await assert.rejects(run.do("send", letter(), () => assert.fail(), { signal: gone.signal }), { name: "AbortError" });
});

test("a begin that is given up is the same call when it is tried again", async () => {
  const args = letter();
  const gate = await Gate.open();
  const run = await newRun(newClient({ url: gate.url }));
  gate.fail(begin, "silent");
  await assert.rejects(run.do("send", args, () => assert.fail(), { signal: AbortSignal.timeout(200) }), { name: "TimeoutError" });
  gate.fail(begin, "drop_answer", 3);
  const out = await run.do("send", args, () => "once");
  assert.equal((await effect(out.effectId)).occurrence, 1);
  assert.equal((await effect(out.effectId)).state, "taken");
});

test("identical calls at once are as many calls, retries of one are one", async () => {
  const run = await newRun();
  let sent = 0;
  const send = () => ++sent;
  const { to } = letter();
  const all = await Promise.all(Array.from({ length: 5 }, () => run.do("send", { to }, send)));
  assert.equal(new Set(all.map((o) => o.effectId)).size, 5);
  const [first, retry, second] = [
    await run.do("send", { to: `b ${to}` }, send, { callId: "call_1" }),
    await run.do("send", { to: `b ${to}` }, send, { callId: "call_1" }),
    await run.do("send", { to: `b ${to}` }, send, { callId: "call_2" }),
  ];
  assert.equal(retry.effectId, first.effectId);
  assert.notEqual(second.effectId, first.effectId);
  const counted = await run.do("send", { to: `b ${to}` }, send, { occurrence: 2 });
  assert.equal(counted.effectId, second.effectId);
  const keyed = [await run.do("send", { to: `c ${to}` }, send, { key: "order-7" }), await run.do("send", { to: `c ${to}` }, send, { key: "order-7" })];
  assert.equal(keyed[0]?.effectId, keyed[1]?.effectId);
  assert.equal(sent, 8);
});

test("a wrapped tool gives results", async () => {
  const run = await newRun();
  const pay = run.tool("send", (args: { to: string }, call) => reference(`po_${call.effectId}`, { to: args.to }));
  const result: { to: string } = await pay({ to: "a" });
  assert.deepEqual(result, { to: "a" });
  const read = run.tool("read", () => [1, 2]);
  assert.deepEqual(await read({}), [1, 2]);
  await assert.rejects(
    run.tool("read", () => new Map())({}),
    /a Map is not JSON/,
    "what is not recorded is not replaced by a note either",
  );
});

test("a result that is not held is said to be so", async () => {
  const args = letter();
  const run = await newRun(newClient({ maxResult: 1000 }));
  const out = await run.do("send", args, () => "x".repeat(2000));
  assert.equal((out.result as string).length, 2000, "this process has it");
  await run.release();
  const again = await newClient().open(run.id, { agent: "bot" });
  const replay = await again.do("send", args, () => assert.fail());
  assert.deepEqual([replay.resultText, replay.resultSize], [undefined, 2002]);
  assert.throws(() => replay.result, /is not held \(2002 bytes\); it took effect/);
});

test("an outcome that can be kept nowhere is in the error", async () => {
  const gate = await Gate.open();
  const client = newClient({ url: gate.url, spool: `${devNull}/spool` });
  client.deliverer.finishWait = 100;
  const run = await newRun(client);
  gate.fail(finish, "drop_request", 100);
  await assert.rejects(
    run.do("send", letter(), () => reference("po_lost", 1)),
    (err) => err instanceof Unrecorded && err.outcome?.result === 1 && err.outcome.reference === "po_lost",
  );
  await assert.rejects(
    run.do("send", letter(), () => Promise.reject(new Error("reset"))),
    (err) => err instanceof Paused && err.cause instanceof Unrecorded && inspect(err.cause).includes("reset"),
  );
});

test("a server that takes a request and never answers is given up", async () => {
  const gate = await Gate.open();
  const client = newClient({ url: gate.url, patienceMs: 0 });
  gate.fail(/^GET/, "silent");
  await assert.rejects(client.call("GET", "/v1/runs/x", undefined, { timeoutMs: 100 }), NoAnswer);
});

test("a lease ends when no heartbeat is answered", async () => {
  const gate = await Gate.open();
  const started = performance.now();
  const run = await newRun(newClient({ url: gate.url }), 2);
  gate.fail(/heartbeat/, "silent", 100);
  while (run.held) await new Promise((resolve) => setTimeout(resolve, 20));
  assert.ok(performance.now() - started >= 2000, "a lease was given up before its end");
  await assert.rejects(run.do("send", letter(), () => assert.fail()), (err) => isProblem(err, "lease_lost"));
});

test("a run is given back at the end of its block, after the calls under way", async () => {
  const args = letter();
  const client = newClient();
  let id: string;
  let sent: Promise<unknown>;
  {
    await using run = await newRun(client);
    id = run.id;
    sent = run.do("send", args, () => new Promise((resolve) => setTimeout(resolve, 200, "sent")));
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await sent;
  const next = await client.open(id, { agent: "bot" });
  assert.equal((await next.do("send", args, () => assert.fail())).replayed, true);
});

test("a process that has nothing else to do ends, whatever it holds", async () => {
  const script = `
    const { Client } = await import(${JSON.stringify(new URL("../src/index.js", import.meta.url).href)});
    const client = new Client({ url: process.env.QUITTANCE_URL, token: process.env.QUITTANCE_TOKEN });
    const run = await client.open("ends-${Date.now()}", { agent: "bot" });
    await run.do("send", { to: "${Date.now()}" }, () => 1);
    `;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = AbortSignal.timeout(20_000);
  const [code] = (await once(child, "exit", { signal: ended }).finally(() => child.kill("SIGKILL"))) as [number];
  assert.equal(code, 0);
});

test("secrets are in no error and in no print", async () => {
  const client = new Client({ url: "http://127.0.0.1:1", token: "secret-token", patienceMs: 0 });
  const err = await thrown(client.open("r", { agent: "bot" }));
  const run = await newRun();
  const held = run.lease.token();
  const shown = inspect([err, client], { depth: 9, showHidden: true }) + inspect(run, { depth: 9, showHidden: true });
  assert.ok(!shown.includes("secret-token") && !shown.includes(token) && !shown.includes(held), "a secret is shown");
  assert.throws(() => new Client({ url: "ftp://x", token: "secret-token" }), (e) => e instanceof TypeError && !e.message.includes("secret"));
});

test("a redirect is not followed", async () => {
  const { createServer } = await import("node:http");
  const asked: string[] = [];
  const server = createServer((q, a) => {
    asked.push(q.url ?? "");
    a.writeHead(307, { location: `${url}/v1/runs/x` }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const client = newClient({ url: `http://127.0.0.1:${(server.address() as { port: number }).port}` });
  await assert.rejects(client.open("r", { agent: "bot" }), (err) => err instanceof Problem && err.code === "http_307");
  server.close().closeAllConnections();
  assert.equal(asked.length, 1);
});
