import type { Client } from "./client.js";
import { parse, rawMembers, stringify } from "./json.js";
import { newId } from "./occurrences.js";
import { NoAnswer, Problem } from "./problem.js";
import { backoff, escape, retry, sleep } from "./request.js";

/** What a look-up asks: did this effect take place? */
export interface Question {
  lookup_id: string;
  effect_id?: string;
  run_id?: string;
  tool: string;
  /** What the outside world calls the action: what to search by. */
  business_key?: string;
  /** What every attempt passed on as idempotency key. */
  vendor_key?: string;
  /** The downstream's own name for it, as far as it is known. */
  reference?: string;
  amount?: { value: string; currency: string };
  /** As they were sent; see {@link parse} for numbers. */
  arguments: unknown;
  attempts?: { attempt?: number; begun_at?: string; deadline?: string }[];
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
  result?: unknown;
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
  hits: Hit[];
  /** Records that may be ours without the key; any of them blocks "not taken". */
  possible?: unknown[];
  /** Whether everything was read. */
  complete: boolean;
  /** Whether a record that exists was seen by the same credentials. */
  canary_seen?: boolean;
  world?: string;
  /** Why it could not look. It is stored: no secrets. */
  error?: string;
}

/** How long, in milliseconds, the loop rests when nothing is asked. */
const rest = 2000;

/**
 * Answers the look-ups of the tools whose policy says `worker: {pool: NAME}`, one after the
 * other, until signal aborts. look is where the downstream is asked; what it throws is
 * logged here and told to the server as "could not look". It goes on through outages and
 * throws a {@link Problem} only where asking again would not help: a token that opens
 * nothing, a pool that does not exist.
 */
export async function answerLookups(
  client: Client,
  pool: string,
  look: (question: Question, signal: AbortSignal) => Seen | Promise<Seen>,
  options: { signal: AbortSignal; restMs?: number },
): Promise<void> {
  const { signal } = options;
  while (!signal.aborted) {
    const question = await claim(client, pool, signal);
    if (!question) {
      // Apart from each other, so that idle workers do not all ask at once.
      await sleep((options.restMs ?? rest) * (0.75 + Math.random() / 2), signal);
      continue;
    }
    const seen = await attempt(client, question, look, signal);
    if (signal.aborted) return; // half a look proves nothing; the question is asked again
    await answer(client, question.lookup_id, seen);
  }
}

async function claim(client: Client, pool: string, signal: AbortSignal): Promise<Question | undefined> {
  const body = stringify({ pool, worker: client.worker, attempt_id: newId() });
  for (let tries = 0; ; tries++) {
    try {
      const got = await client.transport.once({ method: "POST", path: "/v1/lookups/claim", body, signal });
      if (got.status === 204) return undefined;
      const question = got.body as unknown as Question;
      if (typeof question.lookup_id !== "string") throw new NoAnswer("what came back is not a question");
      return { ...question, arguments: parse(rawMembers(got.text).get("arguments") ?? "null") };
    } catch (err) {
      if (signal.aborted) return undefined;
      if (err instanceof Problem && !err.document.retryable) throw err;
      if (!(err instanceof Problem || err instanceof NoAnswer)) throw err;
      const after = err instanceof Problem ? (err.document.retry_after ?? 0) * 1000 : 0;
      await sleep(backoff(tries, after), signal);
    }
  }
}

async function attempt(
  client: Client,
  question: Question,
  look: (question: Question, signal: AbortSignal) => Seen | Promise<Seen>,
  signal: AbortSignal,
): Promise<Seen> {
  try {
    return await look(question, signal);
  } catch (err) {
    // Its words may hold what the downstream was asked with: they stay here.
    client.log("warn", "a look-up failed", { lookup: question.lookup_id, tool: question.tool, error: String(err) });
    return { hits: [], complete: false, error: "the worker could not look" };
  }
}

async function answer(client: Client, id: string, seen: Seen): Promise<void> {
  let body: string;
  try {
    body = stringify(seen, "exact");
  } catch (err) {
    client.log("error", "a look-up's answer is not JSON", { lookup: id, error: String(err) });
    body = stringify({ hits: [], complete: false, error: "the worker's answer is not JSON" });
  }
  try {
    await retry(client.patience, undefined, () => client.transport.once({ method: "POST", path: `/v1/lookups/${escape(id)}/answer`, body }));
  } catch (err) {
    // Too late, or of no use any more: the question is asked again where it is still open.
    client.log("warn", "a look-up's answer was not taken", { lookup: id, error: String(err) });
  }
}
