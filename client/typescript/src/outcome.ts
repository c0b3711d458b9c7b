import { parse } from "./json.js";

/** What an agent may tell a person about a call. It is shown as a claim and is never part of the key. */
export interface Context {
  labels?: Record<string, string>;
  /** Where the agent's own trace of this call is found. */
  trace?: string;
  why?: string;
  due_at?: Date | string;
}

/** What changes one call of {@link Run.do}. */
export interface DoOptions {
  /**
   * The framework's id of this call. The same id with the same arguments, in this
   * process, is a retry of one call; without it every call that came back makes the next
   * identical one a second call.
   */
  callId?: string | undefined;
  /**
   * A key of the caller's own, within its run. It replaces arguments and occurrence: the
   * same key is always the same call.
   */
  key?: string | undefined;
  /** Which of the identical calls this is, from 1, where the caller counts by itself. */
  occurrence?: number | undefined;
  context?: Context | undefined;
  /** Ends the asking, and aborts the signal that perform is given. */
  signal?: AbortSignal | undefined;
}

/** What became of a call, performed now or recorded before: it took effect. */
export class Outcome<R = unknown> {
  readonly effectId: string;
  readonly key: string;
  /** Nothing was performed: this is the record. */
  readonly replayed: boolean;
  /** Of a replay: agent, late_agent, look_up, vendor_key or person. */
  readonly decidedBy: string | undefined;
  /**
   * False when the server could not be told yet (the outcome is in the spool and is
   * delivered in the background), and for a tool that the policy does not guard, of which
   * nothing is recorded.
   */
  readonly recorded: boolean;
  /** The downstream's own name for what happened. */
  readonly reference: string | undefined;
  /** The result as JSON; undefined when it was too large to be kept. */
  readonly resultText: string | undefined;
  /** Bytes of the whole result, when it was too large to be kept. */
  readonly resultSize: number | undefined;
  /** SHA-256 of the whole result in hex, when it was too large to be kept. */
  readonly resultDigest: string | undefined;

  /** @internal */
  constructor(o: {
    effectId: string;
    key: string;
    replayed: boolean;
    recorded: boolean;
    decidedBy?: string | undefined;
    reference?: string | undefined;
    resultText?: string | undefined;
    resultSize?: number | undefined;
    resultDigest?: string | undefined;
  }) {
    this.effectId = o.effectId;
    this.key = o.key;
    this.replayed = o.replayed;
    this.recorded = o.recorded;
    this.decidedBy = o.decidedBy;
    this.reference = o.reference;
    this.resultText = o.resultText;
    this.resultSize = o.resultSize;
    this.resultDigest = o.resultDigest;
  }

  /**
   * The result, read from its text each time: the same whether it was performed now or is
   * replayed. Throws when it was too large to be kept; the call took effect all the same.
   */
  get result(): R {
    if (this.resultText === undefined) {
      throw new Error(`the result of ${this.effectId} is not held (${this.resultSize ?? 0} bytes); it took effect`);
    }
    return parse(this.resultText) as R;
  }
}

/** The call was made, and its outcome could neither be delivered nor be kept: only this error knows it. */
export class Unrecorded extends Error {
  override readonly name = "Unrecorded";
  /** When the call took effect. */
  readonly outcome: Outcome | undefined;

  constructor(effectId: string, outcome: Outcome | undefined, cause: unknown) {
    super(`the outcome of ${effectId} could neither be delivered nor be kept`, { cause });
    this.outcome = outcome;
  }
}
