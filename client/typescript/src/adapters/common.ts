// What the adapters of all frameworks share.
import { AsyncLocalStorage } from "node:async_hooks";

import { JSONNumber } from "../json.js";
import { Unrecorded, type DoOptions } from "../outcome.js";
import { Refused, type Call } from "../perform.js";
import { isProblem, NoAnswer, Paused, Problem } from "../problem.js";
import type { Run } from "../run.js";

/** The run, or what finds it where tools are defined before there is one. */
export type RunSource = Run | (() => Run);

export function runOf(source: RunSource): Run {
  return typeof source === "function" ? source() : source;
}

const calls = new AsyncLocalStorage<Call>();

/**
 * Inside a tool that an adapter guards: the call that is being performed, with the vendor
 * key to pass on and the deadline. Undefined elsewhere.
 */
export function currentCall(): Call | undefined {
  return calls.getStore();
}

/** What the model is told of a call that a person stopped for good. */
export const cancelled = { cancelled: "A person has decided that this must not be done, in these words or in others." };

/**
 * Makes a guarded call of a framework's tool and gives what the model is told: the
 * result, or a definite no. Everything after which the agent must not go on is thrown.
 */
export async function callTool(run: Run, name: string, input: unknown, tool: () => unknown, options: DoOptions): Promise<unknown> {
  try {
    return plain((await run.do(name, input, (call) => calls.run(call, tool), options)).result);
  } catch (err) {
    if (err instanceof Refused) return { refused: plain(err.reason) };
    if (isProblem(err, "effect_cancelled")) return cancelled;
    throw err;
  }
}

/**
 * Whether the agent has to stop at an error. It must never reach the model, which would
 * take it for an invitation to try again. That a call must never be made is an answer.
 */
export function stops(err: unknown): boolean {
  if (isProblem(err, "effect_cancelled")) return false;
  return err instanceof Paused || err instanceof Problem || err instanceof NoAnswer || err instanceof Unrecorded;
}

/** A value that JSON.stringify takes: digits that no number holds become text. */
function plain(v: unknown): unknown {
  if (typeof v === "bigint" || v instanceof JSONNumber) return v.toString();
  if (Array.isArray(v)) return v.map(plain);
  if (typeof v === "object" && v !== null) return Object.fromEntries(Object.entries(v).map(([name, member]) => [name, plain(member)]));
  return v;
}
