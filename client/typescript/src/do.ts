import { callDigest } from "./digest.js";
import { rawMembers, RawJSON, stringify } from "./json.js";
import type { Turn } from "./occurrences.js";
import { Outcome, Unrecorded, type DoOptions } from "./outcome.js";
import { attempt, Call, Referenced, Refused, type Perform, type Report } from "./perform.js";
import { asPaused, NoAnswer, Paused, Problem, whileDoing } from "./problem.js";
import { retry } from "./request.js";
import type { Run } from "./run.js";

/** The answer of begin, as far as it is used. */
interface BeginAnswer {
  do: "proceed" | "replay" | "pass";
  effect_id: string;
  key: string;
  attempt: number;
  fence: number;
  perform_within_ms: number;
  vendor_key: string;
  /** The policy only observes the tool: its call is recorded, and nothing stops it. */
  observed?: boolean;
  outcome: string;
  decided_by?: string;
  reference?: string;
  result_size?: number;
  result_digest?: string;
  log_position?: string;
}

/** When a request was sent, on both clocks. */
interface Moment {
  monotonic: number;
  wall: number;
}

/** {@link Run.do}. @internal */
export async function guarded<A, R>(run: Run, tool: string, args: A, tooled: Perform<A, R>, o: DoOptions): Promise<Outcome<R>> {
  const text = written(tool, args);
  const lease = run.lease.enter();
  try {
    const digest = o.key ? `key:${o.key}` : callDigest(tool, text, run.volatile[tool]);
    const turn = run.calls.take(digest, o.callId ?? o.key, o.occurrence);
    let cameBack = false;
    try {
      const { answer, raw, sent } = await begin(run, tool, text, lease, turn, o).catch((err: unknown) => {
        throw whileDoing(`couldn't begin ${tool}`, asPaused(run.id, run.lease.refused(err)));
      });
      switch (answer.do) {
        case "replay":
          cameBack = true;
          return replayed(answer, raw) as Outcome<R>;
        case "pass":
          return (await pass(text, tooled, o)) as Outcome<R>;
        case "proceed":
          return (await proceed(run, text, answer, sent, tooled, o, () => (cameBack = true))) as Outcome<R>;
      }
    } finally {
      turn.end(cameBack);
    }
  } finally {
    run.lease.exit();
  }
}

function written(tool: string, args: unknown): string {
  try {
    return stringify(args, "exact");
  } catch (err) {
    throw new TypeError(`couldn't write the arguments of ${tool}: ${err instanceof Error ? err.message : err}`, { cause: err });
  }
}

/**
 * Writes the intent. sent is when the request that was answered left. Every try has the
 * same attempt id: the server gives a lost answer again.
 */
async function begin(
  run: Run,
  tool: string,
  text: string,
  lease: string,
  turn: Turn,
  o: DoOptions,
): Promise<{ answer: BeginAnswer; raw: string; sent: Moment }> {
  try {
    const begun = await retry(run.client.patience, o.signal, async () => {
      const sent = { monotonic: performance.now(), wall: Date.now() };
      const { body, text: raw } = await run.client.transport.once({
        method: "POST",
        path: "/v1/effects",
        signal: o.signal,
        body: stringify({
          run_id: run.id,
          lease,
          attempt_id: turn.attemptId,
          tool,
          arguments: new RawJSON(text),
          occurrence: o.key ? undefined : turn.occurrence,
          key: o.key,
          call_id: o.callId,
          client_time: new Date(sent.wall),
          context: o.context,
          log_position: run.lease.position || undefined,
        }),
      });
      if (!understood(body)) throw new NoAnswer("what came back is not begin's answer");
      return { answer: body as unknown as BeginAnswer, raw, sent };
    });
    turn.answered();
    run.lease.moved(begun.answer.log_position);
    return begun;
  } catch (err) {
    if (err instanceof Problem && err.status < 500) {
      turn.answered();
      run.lease.moved(err.document.log_position);
    } else {
      turn.unanswered();
    }
    throw err;
  }
}

/** Tells an answer of begin from other JSON, such as a proxy's. */
function understood(a: Record<string, unknown>): boolean {
  return a.do === "pass" || (typeof a.effect_id === "string" && a.effect_id !== "" && (a.do === "proceed" || a.do === "replay"));
}

/** The longest timer there is; past it setTimeout fires at once. */
const longestTimer = 2 ** 31 - 1;

/** Makes the call, or does not when it is too late, and records the outcome. */
async function proceed<A, R>(
  run: Run,
  text: string,
  a: BeginAnswer,
  sent: Moment,
  tooled: Perform<A, R>,
  o: DoOptions,
  cameBack: () => void,
): Promise<Outcome> {
  const within = a.observed ? unguardedDeadline : Number(a.perform_within_ms) || 0;
  const deadline = sent.monotonic + within;
  const ends = new AbortController();
  const late = () => ends.abort(new DOMException("the deadline passed", "TimeoutError"));
  const timer = setTimeout(late, Math.min(Math.max(0, deadline - performance.now()), longestTimer));
  const call = new Call<A>({
    effectId: a.effect_id,
    key: a.key,
    vendorKey: a.vendor_key,
    argumentsText: text,
    attempt: a.attempt,
    deadline,
    wallDeadline: sent.wall + within,
    signal: o.signal ? AbortSignal.any([ends.signal, o.signal]) : ends.signal,
  });
  const report = await attempt(tooled, call);
  clearTimeout(timer);
  return await record(run, a, report, cameBack);
}

/**
 * Tells the server what became of a call, now or through the spool, and turns it into
 * what do returns or throws.
 */
async function record(run: Run, a: BeginAnswer, report: Report, cameBack: () => void): Promise<Outcome> {
  let recorded = false;
  let state = "";
  let lost: unknown;
  try {
    const finished = await run.client.deliverer.deliver({
      run_id: run.id,
      effect_id: a.effect_id,
      key: a.key,
      finish: {
        fence: a.fence,
        outcome: report.word,
        ...(report.result !== undefined && { result: report.result }),
        ...(report.problem !== undefined && { error: report.problem }),
        ...(report.reference && { reference: report.reference }),
        ...(run.lease.position && { log_position: run.lease.position }),
      },
    });
    recorded = finished !== undefined;
    state = finished?.state ?? "";
    run.lease.moved(finished?.position);
  } catch (err) {
    lost = err;
  }
  if (report.word === "taken") {
    cameBack();
    const out = new Outcome({
      effectId: a.effect_id,
      key: a.key,
      replayed: false,
      recorded,
      reference: report.reference,
      resultText: report.result,
    });
    if (lost) throw new Unrecorded(a.effect_id, out, lost);
    return out;
  }
  // The second: the policy's rule knows this error for a refusal.
  if (report.word === "failed" || state === "failed") {
    cameBack();
    const reason = new RawJSON(report.problem ?? "null");
    const refusal = new Refused(reason, { cause: report.error, effectId: a.effect_id, recorded });
    throw lost ? new Unrecorded(a.effect_id, undefined, new AggregateError([refusal, lost], refusal.message)) : refusal;
  }
  if (a.observed && !lost) throw report.error;
  const cause = lost ? new Unrecorded(a.effect_id, undefined, new AggregateError([report.error, lost])) : report.error;
  throw new Paused(run.id, [{ effect_id: a.effect_id, reason: "interrupted" }], cause);
}

/** What was recorded, as if the call had been made. */
function replayed(a: BeginAnswer, raw: string): Outcome {
  const members = rawMembers(raw);
  if (a.outcome === "failed") {
    const reason = new RawJSON(members.get("error") ?? "null");
    throw new Refused(reason, { replayed: true, effectId: a.effect_id, recorded: true, decidedBy: a.decided_by });
  }
  return new Outcome({
    effectId: a.effect_id,
    key: a.key,
    replayed: true,
    recorded: true,
    decidedBy: a.decided_by,
    reference: a.reference,
    resultText: members.get("result"),
    resultSize: a.result_size,
    resultDigest: a.result_digest,
  });
}

/** What the deadline of an unguarded or only observed call is, in milliseconds: none, in effect. */
const unguardedDeadline = 24 * 60 * 60 * 1000;

/**
 * Makes a call that the policy does not guard, a read for instance. Its errors are the
 * tool's own and pause nothing, also that its result is not JSON.
 */
async function pass<A, R>(text: string, tooled: Perform<A, R>, o: DoOptions): Promise<Outcome> {
  let returned: unknown = await tooled(
    new Call<A>({
      effectId: "",
      key: "",
      vendorKey: "",
      argumentsText: text,
      attempt: 1,
      deadline: performance.now() + unguardedDeadline,
      wallDeadline: Date.now() + unguardedDeadline,
      signal: o.signal ?? new AbortController().signal,
    }),
  );
  let reference: string | undefined;
  if (returned instanceof Referenced) ({ reference, result: returned } = returned);
  const resultText = stringify(returned === undefined ? null : returned);
  return new Outcome({ effectId: "", key: "", replayed: false, recorded: false, reference, resultText });
}
