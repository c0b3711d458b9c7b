/** The codes of a {@link Problem} that a program may branch on. Texts can change; these cannot. */
export type Code =
  | "malformed"
  | "unauthorized"
  | "forbidden"
  | "not_found" // another account's things look absent
  | "run_held" // another process holds the run
  | "run_paused"
  | "run_closed"
  | "lease_lost" // this process no longer acts for the run
  | "log_behind" // the server was restored from an older backup
  | "effect_in_flight" // another attempt is under way
  | "effect_cancelled" // it must never run
  | "effect_open" // a run with an open effect cannot be closed
  | "conflict" // the same key for another request
  | "stale_fence"
  | "too_large"
  | "unsupported_type"
  | "invalid"
  | "ambiguous"
  | "unavailable"
  | (string & {});

/** One reason for a pause. */
export interface WaitingFor {
  effect_id: string;
  /** releasing: decided, and not yet visible to agents. */
  reason: "interrupted" | "held" | "contradicted" | "releasing" | (string & {});
  tool?: string;
  release_at?: string;
  /** The page where a person decides it. */
  url?: string;
}

/** A refusal as the server sends it, an RFC 9457 problem document. */
export interface ProblemDocument {
  type?: string;
  title: string;
  status: number;
  detail?: string;
  code: Code;
  reason?: string;
  retryable: boolean;
  retry_action?: "retry_same" | "poll" | "wait" | "new_intent" | "human" | "abandon";
  /** Whole seconds. */
  retry_after?: number;
  poll?: string;
  final: boolean;
  effect_id?: string;
  run_id?: string;
  state?: string;
  version?: number;
  held_by?: { worker: string; epoch?: number; expires_at?: string };
  waiting_for?: WaitingFor[];
  decided?: { by: string; who?: string; when: string; verdict?: string; why?: string };
  errors?: { pointer: string; detail: string }[];
  offset?: number;
  pointer?: string;
  limit?: number;
  request_id?: string;
  log_position?: string;
}

/** The server refused, and says why: branch on `code`. */
export class Problem extends Error {
  override readonly name = "Problem";
  readonly code: Code;
  /** The HTTP status; 0 where this process knew without asking. */
  readonly status: number;
  readonly document: ProblemDocument;

  constructor(document: ProblemDocument, doing = "") {
    const first = document.errors?.[0];
    const detail = `${document.detail || document.title}${first ? ` ${first.pointer}: ${first.detail}` : ""}`;
    super(`${doing && `${doing}: `}${document.code} (${document.status}): ${detail}`);
    this.code = document.code;
    this.status = document.status;
    this.document = document;
  }
}

/** The same refusal, saying what was being done. */
export function whileDoing(doing: string, err: unknown): unknown {
  return err instanceof Problem ? new Problem(err.document, doing) : err;
}

/** True for a refusal with this code. */
export function isProblem(err: unknown, code: Code): err is Problem {
  return err instanceof Problem && err.code === code;
}

/**
 * The run may not go on until something is decided. `cause` is the server's
 * {@link Problem} or, where a call of this process is in doubt, what the tool threw.
 */
export class Paused extends Error {
  override readonly name = "Paused";
  readonly runId: string;
  readonly waitingFor: WaitingFor[];

  constructor(runId: string, waitingFor: WaitingFor[], cause?: unknown) {
    const [w] = waitingFor;
    const detail = w ? `: effect ${w.effect_id} is ${w.reason} (${waitingFor.length} in all)` : "";
    super(`run ${JSON.stringify(runId)} is paused${detail}`, { cause });
    this.runId = runId;
    this.waitingFor = waitingFor;
  }
}

/** Gives a refusal because of a pause its type and passes others on. */
export function asPaused(runId: string, err: unknown): unknown {
  return isProblem(err, "run_paused") ? new Paused(err.document.run_id ?? runId, err.document.waiting_for ?? [], err) : err;
}

/** It is not known whether the server acted: the connection failed, or what came back was not the server's. */
export class NoAnswer extends Error {
  override readonly name = "NoAnswer";

  constructor(detail: string, cause?: unknown) {
    super(`the server gave no answer: ${detail}`, { cause });
  }
}

/** A refusal that this process makes itself, because it does not hold the run any more. */
export function leaseLost(runId: string): Problem {
  return new Problem({
    title: `run ${JSON.stringify(runId)} is not held by this process any more`,
    status: 0,
    code: "lease_lost",
    retryable: false,
    final: false,
  });
}
