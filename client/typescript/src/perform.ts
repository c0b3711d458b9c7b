import { parse, stringify } from "./json.js";

/** A call was not sent because its deadline had passed. */
export class TooLate extends Error {
  override readonly name = "TooLate";

  constructor(effectId: string) {
    super(`${effectId}: the deadline passed before the call was sent`);
  }
}

/** What a tool needs to know to perform one attempt. */
export class Call<A = unknown> {
  readonly effectId: string;
  readonly key: string;
  /** The vendor's own idempotency key, to be passed on; the same for every attempt. */
  readonly vendorKey: string;
  /** What is on record, read back: a bigint up to 2^53 - 1 comes as a number. See {@link parse}. */
  readonly arguments: A;
  /** The same as the text that was sent. */
  readonly argumentsText: string;
  /** From 1. */
  readonly attempt: number;
  /** When the call must have been sent by, in milliseconds on the clock of performance.now(). */
  readonly deadline: number;
  /** Aborts at the deadline, and when whoever asked for the call gave up. Hand it to fetch. */
  readonly signal: AbortSignal;
  #wallDeadline: number;

  /** @internal */
  constructor(c: {
    effectId: string;
    key: string;
    vendorKey: string;
    argumentsText: string;
    attempt: number;
    deadline: number;
    wallDeadline: number;
    signal: AbortSignal;
  }) {
    this.effectId = c.effectId;
    this.key = c.key;
    this.vendorKey = c.vendorKey;
    this.argumentsText = c.argumentsText;
    this.arguments = parse(c.argumentsText) as A;
    this.attempt = c.attempt;
    this.deadline = c.deadline;
    this.#wallDeadline = c.wallDeadline;
    this.signal = c.signal;
  }

  /**
   * Throws a {@link TooLate} once the call must not be sent any more. A tool that prepares
   * for long asks again immediately before it sends.
   */
  checkDeadline(): void {
    // The monotonic clock stands still while the machine sleeps; the other one does not.
    if (performance.now() >= this.deadline || Date.now() >= this.#wallDeadline) throw new TooLate(this.effectId);
  }
}

/**
 * Does the dangerous thing, once. What it returns is recorded and replayed: a value that
 * is JSON, or one from {@link reference}. What it throws means that nobody knows whether
 * it happened, unless it is a {@link Refused}.
 */
export type Perform<A, R> = (call: Call<A>) => R | Referenced<R> | Promise<R | Referenced<R>>;

/** A result with the downstream's name for what happened. */
export class Referenced<R> {
  readonly reference: string;
  readonly result: R;

  constructor(reference: string, result: R) {
    this.reference = reference;
    this.result = result;
  }
}

/**
 * Returns a result together with the downstream's own name for what happened, such as
 * its payment id: the proof by which it can be found again.
 */
export function reference<R>(name: string, result: R): Referenced<R> {
  return new Referenced(name, result);
}

/**
 * A definite refusal by the downstream: nothing happened and nothing will. A tool throws
 * it; `run.do` throws it, now and when it is replayed.
 */
export class Refused extends Error {
  override readonly name = "Refused";
  /** What the downstream said, as it is on record. */
  readonly reason: unknown;
  /** The same as JSON text. */
  readonly reasonText: string;
  readonly replayed: boolean;
  /** Set by run.do, as of an outcome. */
  readonly effectId: string | undefined;
  readonly recorded: boolean;
  readonly decidedBy: string | undefined;

  /** @param reason an error, or a value that is JSON and is replayed as it is */
  constructor(reason: unknown, options: RefusedOptions = {}) {
    const text = reason instanceof Error ? message(reason) : written(reason);
    super(`refused: ${text}`, { cause: options.cause ?? (reason instanceof Error ? reason : undefined) });
    this.reasonText = text;
    this.reason = parse(text);
    this.replayed = options.replayed ?? false;
    this.effectId = options.effectId;
    this.recorded = options.recorded ?? false;
    this.decidedBy = options.decidedBy;
  }
}

interface RefusedOptions {
  cause?: unknown;
  replayed?: boolean;
  effectId?: string | undefined;
  recorded?: boolean;
  decidedBy?: string | undefined;
}

/** How an error is recorded: its message. */
export function message(err: unknown): string {
  return stringify({ message: (err instanceof Error ? err.message : String(err)).toWellFormed() });
}

/** The words of an outcome that mean something to the server; every other is unknown. */
export type Word = "taken" | "failed" | "unknown" | "not_sent";

/** What became of a performed call. */
export interface Report {
  word: Word;
  result?: string; // JSON
  problem?: string; // JSON
  reference?: string;
  /** What perform threw. */
  error?: unknown;
}

/** Calls perform and says what became of it. */
export async function attempt<A, R>(perform: Perform<A, R>, call: Call<A>): Promise<Report> {
  try {
    call.checkDeadline();
    return taken(await perform(call));
  } catch (err) {
    return inDoubt(err);
  }
}

/** Reports what a tool returned. That it cannot be written down changes nothing: it happened. */
export function taken(returned: unknown): Report {
  const named = returned instanceof Referenced;
  const result = written(named ? returned.result : returned);
  return { word: "taken", result, ...(named && { reference: returned.reference }) };
}

function written(value: unknown): string {
  try {
    return value === undefined ? "null" : stringify(value);
  } catch (err) {
    return message(new Error(`couldn't write the result down: ${err instanceof Error ? err.message : err}`));
  }
}

function inDoubt(err: unknown): Report {
  const refusal = caused(err, Refused);
  if (refusal) return { word: "failed", problem: refusal.reasonText, error: err };
  // Found in time that it was too late: a word of its own says so to whoever decides.
  return { word: caused(err, TooLate) ? "not_sent" : "unknown", problem: message(err), error: err };
}

/** The error itself, or the one that caused it, if it is of a kind. */
export function caused<E extends Error>(err: unknown, kind: abstract new (...args: never[]) => E): E | undefined {
  for (let depth = 0; err instanceof Error && depth < 20; depth++, err = err.cause) {
    if (err instanceof kind) return err;
  }
  return undefined;
}
