import type { Client } from "./client.js";
import { parse, rawMembers, stringify } from "./json.js";
import { NoAnswer, Problem } from "./problem.js";
import { backoff, escape, mayRepeat, retry, sleep, tryTimeout } from "./request.js";

/** What a look-up asks: did this effect take place? Nobody else is asked until answer_by. */
export interface Question {
  lookup_id: string;
  /** Until when the answer is waited for, on the server's clock. */
  answer_by: string;
  /** What is left of it, in milliseconds. */
  answer_within_ms: number;
  /** What the answer shows must be as of this time, or later. */
  asked_at: string;
  effect_id: string;
  run_id: string;
  tool: string;
  /** What the outside world calls the action: what to search by. */
  business_key?: string;
  /** What every attempt passed on as idempotency key. */
  vendor_key: string;
  /** The downstream's own name for it, as far as it is known. */
  reference?: string;
  amount?: { value: string; currency: string };
  /** As they are stored: secrets are replaced. See {@link parse} for numbers. */
  arguments: unknown;
  /** All that may have been sent, the oldest first. */
  attempts: { begun_at?: string; deadline?: string }[];
  /** The business key of a record that exists, to be looked for with the same credentials. */
  canary?: string;
  world?: string;
}

/** A record that goes by the business key. What is left out counts as not said. */
export interface Hit {
  business_key: string;
  reference: string;
  /** A decimal as text, with currency, where the tool has an amount. */
  amount?: string;
  currency?: string;
  recipient_matches: boolean;
  /** Whether it will not change any more. */
  final: boolean;
  /** What the agent is given as the tool's result. */
  result: unknown;
  /** Whether it carries our own key, the vendor_key. */
  ours?: boolean;
  /** Whether it did not and never will take effect. */
  never?: boolean;
  /** Whether it took effect and the money came back. */
  reversed?: boolean;
  /** The downstream's own word, shown to people. */
  state?: string;
}

/** What a worker saw. It brings records, never a verdict; what they prove is the server's business. */
export interface Seen {
  /** Each a {@link Hit}, or an object that the policy's own expressions read. An empty list says that there are none. */
  hits: (Hit | Record<string, unknown>)[];
  /** Records that may be ours without the key; any of them blocks "not taken". */
  possible?: unknown[];
  /** Whether everything was read. */
  complete: boolean;
  /** Whether a record that exists was seen by the same credentials. */
  canary_seen?: boolean;
  world?: string;
}

/** Why it could not be looked, which proves nothing. It is stored and shown: no secrets. */
interface Failed {
  error: string;
}

/**
 * Looks where a question can be answered; signal aborts when the answer is not waited for
 * any more. Look after the question came and not before: what a cache holds may be older.
 */
export type Look = (question: Question, signal: AbortSignal) => Seen | Promise<Seen>;

/** How long the server holds a claim while nothing is due, in milliseconds. */
const wait = 30_000;

/**
 * Answers the look-ups of the tools whose policy says `worker: {pool: NAME}`, atOnce of them
 * at one time, until signal aborts; then it takes no more questions, answers those under way
 * and returns. What look throws is logged here, because it may hold anything, and told to
 * the server as "could not look". It goes on through outages and throws a {@link Problem}
 * only where asking again would not help: a token that opens nothing, a pool that no tool
 * names.
 */
export async function answerLookups(client: Client, pool: string, look: Look, options: { signal: AbortSignal; atOnce?: number }): Promise<void> {
  const { signal, atOnce = 1 } = options;
  const under = new Set<Promise<void>>();
  try {
    for (let tries = 0; !signal.aborted; ) {
      if (under.size >= atOnce) {
        await Promise.race(under);
        continue;
      }
      try {
        for (const q of await claim(client, pool, Math.min(atOnce - under.size, 100), signal)) {
          const done = answer(client, q, look).finally(() => under.delete(done));
          under.add(done);
        }
        tries = 0;
      } catch (err) {
        const after = mayRepeat(err);
        if (signal.aborted) return;
        if (after === undefined) throw err;
        client.log("warn", "look-ups can't be claimed; it is tried again", { pool, error: String(err) });
        await sleep(backoff(tries++, after), signal);
      }
    }
  } finally {
    await Promise.all(under);
  }
}

async function claim(client: Client, pool: string, max: number, signal: AbortSignal): Promise<Question[]> {
  const body = stringify({ pool, max, wait: `${wait}ms` });
  const { text } = await client.transport.once({ method: "POST", path: "/v1/lookups/claim", body, signal, timeout: wait + tryTimeout });
  const questions = parse(rawMembers(text).get("questions") ?? "null");
  if (!Array.isArray(questions)) throw new NoAnswer("what came back are not questions");
  return questions as Question[];
}

async function answer(client: Client, q: Question, look: Look): Promise<void> {
  const over = AbortSignal.timeout(q.answer_within_ms);
  const post = (body: string) =>
    retry(q.answer_within_ms, over, () => client.transport.once({ method: "POST", path: `/v1/lookups/${escape(q.lookup_id)}/answer`, body, signal: over }));
  try {
    const body = await seen(client, q, look, over);
    try {
      await post(body);
    } catch (err) {
      if (!(err instanceof Problem) || err.status >= 500 || err.code === "lookup_over") throw err;
      // What it cannot take must not look like a worker that died.
      const failed: Failed = { error: `the worker's answer was refused: ${err.code}` };
      await post(stringify(failed));
    }
  } catch (err) {
    client.log("warn", "a look-up's answer was not taken; the question is asked again", { lookup: q.lookup_id, effect: q.effect_id, error: String(err) });
  }
}

/** Calls the team's code and writes down what it saw, or that it could not look. */
async function seen(client: Client, q: Question, look: Look, over: AbortSignal): Promise<string> {
  try {
    return stringify(await look(q, over), "exact");
  } catch (err) {
    client.log("warn", "a look-up could not look", { lookup: q.lookup_id, effect: q.effect_id, error: String(err) });
    const failed: Failed = { error: "the worker could not look" };
    return stringify(failed);
  }
}
