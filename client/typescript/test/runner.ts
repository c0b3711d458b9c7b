// The conformance runner: does what ../../conformance/README.md says, a line at a time,
// with this client and nothing else.
import { createInterface } from "node:readline";

import {
  answerLookups,
  callDigest,
  Client,
  NoAnswer,
  Paused,
  Problem,
  RawJSON,
  reference,
  Refused,
  stringify,
  TooLate,
  type Call,
  type DoOptions,
  type Outcome,
  type Question,
  type Run,
  type Seen,
} from "../src/index.js";

/** What a tool of a scenario fails with. */
class ToolError extends Error {}

type Answer = Record<string, unknown>;

interface Script {
  pause?: boolean;
  late_by_ms?: number;
  crash?: boolean;
  raise?: string;
  refuse?: string;
  result?: string;
  reference?: string;
  size?: number;
}

interface Command {
  op: string;
  run?: string;
  agent?: string;
  agents?: string[];
  lease_seconds?: number;
  wait_held_ms?: number;
  wait_ready_ms?: number;
  tool?: string;
  arguments?: string;
  call_id?: string;
  key?: string;
  perform?: Script;
  background?: string;
  turn?: number;
  state?: string;
  outcome?: "finished" | "failed" | "cancelled";
  volatile?: string[];
  calls?: number;
  pool?: string;
  seen?: string;
}

/** A call that stands still in its tool. */
class Background {
  stands!: () => void;
  standing = new Promise<void>((resolve) => (this.stands = resolve));
  goOn!: () => void;
  going = new Promise<void>((resolve) => (this.goOn = resolve));
  done!: Promise<Answer>;
}

const ok = { ok: true };
const client = new Client({
  url: process.env.QUITTANCE_URL ?? "",
  token: process.env.QUITTANCE_TOKEN ?? "",
  spool: process.env.QUITTANCE_SPOOL ?? "",
  patienceMs: 10_000,
});
const runs = new Map<string, Run>();
const background = new Map<string, Background>();

const lines = createInterface({ input: process.stdin, crlfDelay: Infinity });
for await (const line of lines) {
  let answer: Answer;
  try {
    answer = await obey(JSON.parse(line) as Command);
  } catch (err) {
    answer = refusal(err);
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
process.exit(0);

async function obey(c: Command): Promise<Answer> {
  switch (c.op) {
    case "open":
      return opened(
        await client.open(c.run ?? "", {
          agent: c.agent ?? "bot",
          ...(c.lease_seconds && { leaseSeconds: c.lease_seconds }),
          waitHeldMs: c.wait_held_ms ?? 0,
        }),
      );
    case "claim": {
      const run = await client.claim(c.agents ?? [], { waitReadyMs: c.wait_ready_ms ?? 0 });
      return run ? opened(run) : { error: "nothing_ready" };
    }
    case "digest":
      return { digest: callDigest(c.tool ?? "", c.arguments ?? "", c.volatile ?? []) };
    case "answer_lookups":
      return { ok: true, question: await answerOne(c.pool ?? "", new RawJSON(c.seen ?? "")) };
    case "crash":
      process.kill(process.pid, "SIGKILL");
      return await new Promise(() => {});
    case "go":
    case "join": {
      const b = background.get(c.background ?? "");
      if (!b) return { error: "usage", detail: "no such background call" };
      if (c.op === "join") return await b.done;
      b.goOn();
      return ok;
    }
  }
  const run = runs.get(c.run ?? "");
  if (!run) return { error: "usage", detail: "the run is not open here" };
  switch (c.op) {
    case "call": {
      if (!c.background) return await call(run, c);
      const b = new Background();
      background.set(c.background, b);
      b.done = call(run, c, b);
      return await Promise.race([b.standing.then(() => ok), b.done]);
    }
    case "bench":
      return { median_us: await median(run, c.tool ?? "", c.calls ?? 0) };
    case "checkpoint":
      await run.checkpoint(c.turn ?? 0, new RawJSON(c.state ?? "null"));
      return ok;
    case "state":
      return state(run);
    case "wait":
      await run.wait();
      return ok;
    case "release":
      await run.release();
      return ok;
    case "close":
      await run.close(c.outcome ?? "finished");
      return ok;
    case "on_sigterm":
      run.releaseOnSignal(20_000, "SIGTERM");
      return ok;
  }
  return { error: "usage", detail: "no such command" };
}

/** Of what one call took, in microseconds. */
async function median(run: Run, tool: string, calls: number): Promise<number> {
  const took: number[] = [];
  for (let n = 0; n < calls; n++) {
    const start = performance.now();
    await run.do(tool, { n }, () => null);
    took.push((performance.now() - start) * 1000);
  }
  return took.sort((a, b) => a - b)[calls >> 1] ?? 0;
}

/** Works until one question was answered by what was seen. */
async function answerOne(pool: string, seen: unknown): Promise<Answer> {
  const done = new AbortController();
  let asked: Answer = {};
  const look = (q: Question) => {
    asked = { effect: q.effect_id, tool: q.tool, business_key: q.business_key, arguments: stringify(q.arguments) };
    done.abort();
    return seen as Seen;
  };
  await answerLookups(client, pool, look, { signal: done.signal });
  return asked;
}

function opened(run: Run): Answer {
  runs.set(run.id, run);
  return { ok: true, run: run.id, ...state(run) };
}

function state(run: Run): Answer {
  return { turn: run.turn, state: run.stateText ?? null };
}

async function call(run: Run, c: Command, b?: Background): Promise<Answer> {
  let performed = 0;
  let saw: Answer | undefined;
  const perform = async (made: Call) => {
    performed++;
    saw = { vendor_key: made.vendorKey, attempt: made.attempt, arguments: made.argumentsText };
    return await act(c.perform ?? {}, made, b);
  };
  const options: DoOptions = { callId: c.call_id, key: c.key };
  let a: Answer;
  try {
    a = taken(await run.do(c.tool ?? "", new RawJSON(c.arguments ?? ""), perform, options));
  } catch (err) {
    a = err instanceof Refused ? refused(err) : refusal(err);
  }
  return { ...a, performed, ...(saw && { saw }) };
}

function taken(out: Outcome): Answer {
  return {
    outcome: "taken",
    effect: out.effectId,
    replayed: out.replayed,
    recorded: out.recorded,
    decided_by: out.decidedBy ?? "",
    reference: out.reference ?? "",
    result: out.resultText ?? null,
    result_size: out.resultSize ?? 0,
    result_digest: out.resultDigest ?? "",
  };
}

function refused(err: Refused): Answer {
  return {
    outcome: "failed",
    effect: err.effectId,
    replayed: err.replayed,
    recorded: err.recorded,
    decided_by: err.decidedBy ?? "",
    reason: err.reasonText,
  };
}

async function act(s: Script, made: Call, b: Background | undefined): Promise<unknown> {
  if (s.pause && b) {
    b.stands();
    await b.going;
  }
  if (s.late_by_ms) {
    const ms = made.deadline - performance.now() + s.late_by_ms;
    await new Promise((resolve) => setTimeout(resolve, ms));
    made.checkDeadline();
  }
  if (s.crash) {
    process.kill(process.pid, "SIGKILL");
    await new Promise(() => {});
  }
  if (s.raise !== undefined) throw new ToolError(s.raise);
  if (s.refuse !== undefined) throw new Refused(new RawJSON(s.refuse));
  let result: unknown = s.result === undefined ? null : new RawJSON(s.result);
  if (s.size) result = "x".repeat(s.size);
  return s.reference ? reference(s.reference, result) : result;
}

function refusal(err: unknown): Answer {
  if (err instanceof Paused) {
    return { paused: err.waitingFor.map((w) => ({ effect: w.effect_id, reason: w.reason })), cause: cause(err.cause) };
  }
  if (err instanceof NoAnswer || (err instanceof Problem && err.code.startsWith("http_"))) return { error: "no_answer" };
  if (err instanceof Problem) return { error: err.code };
  if (err instanceof TypeError || err instanceof SyntaxError) return { error: "not_an_object" };
  if (err instanceof ToolError) return { error: "tool", detail: err.message };
  return { error: "usage", detail: String(err) };
}


/** What a pause says about the call that was made just now. */
function cause(err: unknown): string {
  if (err === undefined || err instanceof Problem) return "";
  if (err instanceof TooLate) return "too_late";
  return `tool: ${err instanceof Error ? err.message : String(err)}`;
}
