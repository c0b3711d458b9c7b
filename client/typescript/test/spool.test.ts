import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { after, test } from "node:test";

import { Deliverer } from "../src/deliver.js";
import { Transport } from "../src/request.js";
import { defaultSpool, Spool, type Spooled } from "../src/spool.js";
import { folder } from "./world.js";

const outcome: Spooled = {
  run_id: "r/1",
  effect_id: "e1",
  key: "k",
  finish: { fence: 3, outcome: "taken", result: '{"id": 9007199254740993, "fee": 1.50}', reference: "po_1" },
};

test("a file is what every client writes, and its owner's alone", async () => {
  const spool = new Spool(path.join(folder(), "deep", "spool"));
  const name = await spool.save(outcome);
  assert.match(name, /^\d{8}T\d{6}\.\d{6}-[A-Z2-7]{8}\.json$/);
  assert.deepEqual(readdirSync(spool.dir), [name]);
  assert.equal(
    readFileSync(path.join(spool.dir, name), "utf8"),
    '{"run_id":"r/1","effect_id":"e1","key":"k","finish":{"fence":3,"outcome":"taken","result":{"id": 9007199254740993, "fee": 1.50},"reference":"po_1"}}',
  );
  assert.equal(statSync(spool.dir).mode & 0o777, 0o700);
  assert.equal(statSync(path.join(spool.dir, name)).mode & 0o777, 0o600);
  assert.deepEqual(await spool.load(name), outcome, "a result is read back byte for byte");
  await spool.remove(name);
  await spool.remove(name);
  assert.equal(await spool.load(name), undefined);
});

test("what a crash leaves is neither sent nor in the way", async () => {
  const spool = new Spool(folder());
  assert.deepEqual(await new Spool(path.join(spool.dir, "absent")).names(), []);
  writeFileSync(path.join(spool.dir, ".20260101T000000.000000-ABCDEFGH.json-123"), '{"run_id":"half');
  writeFileSync(path.join(spool.dir, "20260101T000000.000001-ABCDEFGH.json"), '{"run_id":"torn');
  writeFileSync(path.join(spool.dir, "README"), "what is this");
  mkdirSync(path.join(spool.dir, "folder.json"));
  const good = await spool.save(outcome);
  assert.deepEqual(await spool.names(), ["20260101T000000.000001-ABCDEFGH.json", good]);

  const sent: string[] = [];
  const d = await deliverer(spool, (path_, body) => (sent.push(`${path_} ${body}`), [200, '{"state":"taken"}']));
  await d.flush();
  assert.equal(sent.length, 1);
  assert.match(sent[0] ?? "", /^\/v1\/effects\/e1\/finish .*"result":\{"id": 9007199254740993, "fee": 1.50\}/);
  assert.deepEqual(await spool.names(), []);
  assert.deepEqual(readdirSync(path.join(spool.dir, "rejected")), ["20260101T000000.000001-ABCDEFGH.json"]);
});

test("what the server refuses is set aside whole", async () => {
  const spool = new Spool(folder());
  const name = await spool.save(outcome);
  const sizes: boolean[] = [];
  const d = await deliverer(spool, (_, body) => {
    sizes.push(body.includes("result_omitted"));
    return [422, '{"code":"invalid","title":"no"}'];
  });
  await d.flush();
  assert.deepEqual(sizes, [false, true], "tried once more with size and digest");
  assert.deepEqual(await spool.names(), []);
  assert.deepEqual(await new Spool(path.join(spool.dir, "rejected")).load(name), outcome);
});

test("an effect that the server forgot is reported by its key", async () => {
  const spool = new Spool(folder());
  const sent: string[] = [];
  const d = await deliverer(spool, (path_, body) => {
    sent.push(`${path_} ${body}`);
    return path_ === "/v1/effects/finish" ? [200, "{}"] : [404, '{"code":"not_found","title":"no"}'];
  });
  assert.ok(await d.deliver(outcome));
  assert.match(sent[1] ?? "", /^\/v1\/effects\/finish \{"run_id":"r\/1","key":"k","fence":3/);
  assert.deepEqual(await spool.names(), []);
});

test("an outcome that comes during a delivery is delivered too", async () => {
  const spool = new Spool(folder());
  const waiting: (() => void)[] = [];
  const d = await deliverer(spool, async () => {
    await new Promise<void>((resolve) => waiting.push(resolve));
    return [200, "{}"];
  });
  await spool.save(outcome);
  d.kick();
  await until(() => waiting.length === 1); // its folder is listed
  await spool.save({ ...outcome, effect_id: "e2" });
  d.kick();
  waiting[0]?.();
  await until(() => waiting.length === 2);
  waiting[1]?.();
  await until(async () => (await spool.names()).length === 0);
});

test("spools of two accounts are apart, and where every client looks", () => {
  const before = process.env.XDG_CACHE_HOME;
  process.env.XDG_CACHE_HOME = "/var/cache/x";
  try {
    // The first 16 digits of SHA-256 over the server, a line feed and the token.
    assert.equal(defaultSpool("http://127.0.0.1:8080", "qa_1"), "/var/cache/x/quittance/spool/f953807da667bddc");
  } finally {
    if (before === undefined) delete process.env.XDG_CACHE_HOME;
    else process.env.XDG_CACHE_HOME = before;
  }
  assert.equal(new Set([defaultSpool("a", "t1"), defaultSpool("a", "t2"), defaultSpool("b", "t1")]).size, 3);
});

type Handler = (path: string, body: string) => [number, string] | Promise<[number, string]>;

/** Delivers to a server that answers as it is told. */
async function deliverer(spool: Spool, answer: Handler): Promise<Deliverer> {
  const server = http.createServer(async (q, a) => {
    const chunks: Buffer[] = [];
    for await (const chunk of q) chunks.push(chunk as Buffer);
    const [status, body] = await answer(q.url ?? "", Buffer.concat(chunks).toString());
    a.writeHead(status, { "content-type": "application/json" }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const d = new Deliverer(new Transport(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, "t", undefined), spool, 8 << 20, () => {});
  after(() => {
    d.stop();
    server.close().closeAllConnections();
  });
  return d;
}

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 10_000; !(await holds()); await new Promise((resolve) => setTimeout(resolve, 5))) {
    assert.ok(Date.now() < end, "it never came");
  }
}
