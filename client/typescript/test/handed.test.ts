import assert from "node:assert/strict";
import { test } from "node:test";

import { Call, handed, TooLate } from "../src/index.js";
import { newClient, newRun } from "./world.js";

test("the lease that is held for this process is taken, once", async () => {
  const run = await newRun();
  await run.release();
  const attempt = `handed-${run.id}`;
  const environment = {
    QUITTANCE_RUN_ID: run.id,
    QUITTANCE_AGENT: "bot",
    QUITTANCE_WORKER: "worker/1",
    QUITTANCE_ATTEMPT_ID: attempt,
    QUITTANCE_LEASE: "ql_secret",
    QUITTANCE_EPOCH: "4",
    QUITTANCE_LEASE_SECONDS: "30",
    QUITTANCE_CHECKPOINT: "/tmp/checkpoint.json",
    QUITTANCE_TURN: "3",
  };
  const given = handed(environment);
  assert.ok(given);
  assert.deepEqual([given.lease, given.epoch, given.checkpoint, given.turn], ["ql_secret", 4, "/tmp/checkpoint.json", 3]);
  const worker = await newClient().open(given.runId, given.options); // as quittance work holds it
  const command = await newClient().open(given.runId, given.options);
  assert.equal(command.epoch, worker.epoch);
  await command.release();
});

test("a process that was started otherwise is handed nothing", () => {
  assert.equal(handed({}), undefined);
  assert.equal(handed({ QUITTANCE_RUN_ID: "r" }), undefined);
  assert.deepEqual(handed({ QUITTANCE_RUN_ID: "r", QUITTANCE_ATTEMPT_ID: "a" })?.options, { agent: "", attemptId: "a" });
});

test("whichever clock says that the deadline passed", (t) => {
  const parts = { effectId: "e", key: "k", vendorKey: "v", argumentsText: "{}", attempt: 1, signal: new AbortController().signal };
  const call = new Call({ ...parts, deadline: performance.now() + 60_000, wallDeadline: Date.now() + 60_000 });
  call.checkDeadline();
  for (const clock of [performance, Date] as const) {
    const later = clock.now() + 61_000; // the machine slept, or the wall's clock was set back
    const stopped = t.mock.method(clock, "now", () => later);
    assert.throws(() => call.checkDeadline(), TooLate);
    stopped.mock.restore();
  }
});
