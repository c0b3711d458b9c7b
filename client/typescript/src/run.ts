import type { Client } from "./client.js";
import { callDigest } from "./digest.js";
import { guarded } from "./do.js";
import { parse, rawMembers, RawJSON, stringify } from "./json.js";
import { Lease } from "./lease.js";
import { newId, Occurrences } from "./occurrences.js";
import type { DoOptions, Outcome } from "./outcome.js";
import type { Perform } from "./perform.js";
import { asPaused, isProblem, Problem, whileDoing, type WaitingFor } from "./problem.js";
import { escape, retry, sleep, tryTimeout, type Answer, type ApiRequest } from "./request.js";

/** Who opens a run, and for how long it is held at a time. */
export interface RunOptions {
  /** What kind of agent this is; a pool claims by it. */
  agent: string;
  /** This process; the client's own name for it when absent. */
  worker?: string;
  /** 2 to 600; 60 when absent. */
  leaseSeconds?: number;
  /**
   * Milliseconds to wait for a run that another process holds, such as the lease of this
   * agent's own process that was killed. 0 by default.
   */
  waitHeldMs?: number;
  /** Given by whoever holds the run for this process already; see {@link handed}. */
  attemptId?: string;
  signal?: AbortSignal;
}

/** How a run ends for good. */
export type Ending = "finished" | "failed" | "cancelled";

/** A run as anybody of its account may read it. */
export interface RunView {
  run_id: string;
  agent?: string;
  state: "running" | "paused" | "ready" | Ending;
  held_by?: { worker: string; epoch?: number; expires_at?: string };
  opened_at: string;
  closed_at?: string;
  refused?: number;
  waiting_for?: WaitingFor[];
  open_effects?: { effect_id: string; tool: string; key: string; state: string; since: string; url?: string }[];
  log_position?: string;
}

/** How often, in milliseconds, a held run is asked for again: its holder may release it early. */
const holdPause = 1000;

/**
 * A run that this process holds. Its lease is renewed in the background until
 * {@link release} or {@link close}; a process that has nothing else to do may end all the
 * same. Code that blocks the event loop for as long as a lease loses it.
 */
export class Run {
  readonly id: string;
  /** @internal */
  readonly client: Client;
  /** @internal */
  readonly lease: Lease;
  /** @internal */
  calls = new Occurrences();
  /** Per tool the argument paths left out of the key. @internal */
  volatile: Record<string, string[]> = {};
  #options: RunOptions;
  #attemptId: string | undefined;
  #turn = 0;
  #state: string | undefined;

  /** @internal */
  constructor(client: Client, id: string, options: RunOptions) {
    this.client = client;
    this.id = id;
    this.#options = options;
    this.#attemptId = options.attemptId;
    this.lease = new Lease({
      transport: client.transport,
      log: client.log,
      runId: id,
      path: this.#path(""),
      seconds: options.leaseSeconds ?? 60,
      ends: client.ends,
    });
  }

  #path(rest: string): string {
    return `/v1/runs/${escape(this.id)}${rest}`;
  }

  /** Rises with each holder of the run. */
  get epoch(): number {
    return this.lease.epoch;
  }

  /** Whether this process still holds the run, as far as it knows. */
  get held(): boolean {
    return this.lease.held;
  }

  /** The turn of the last checkpoint; 0 when nothing was saved yet. */
  get turn(): number {
    return this.#turn;
  }

  /**
   * The state of the last checkpoint, read from its text each time (see {@link parse} for
   * numbers); undefined when nothing was saved yet.
   */
  get state(): unknown {
    return this.#state === undefined ? undefined : parse(this.#state);
  }

  /** The same as JSON text. */
  get stateText(): string | undefined {
    return this.#state;
  }

  /**
   * Performs a call exactly when the server clears it, and records what became of it.
   *
   * args is an object that is JSON. An integer beyond 2^53 is given as a bigint, a decimal
   * of more than 15 digits as a {@link JSONNumber} or a string; a number that must have
   * been damaged already is refused with a TypeError, as is everything that is not JSON.
   *
   * It returns the outcome, replayed or new, when the call took effect or is of a tool that
   * the policy does not guard. It throws
   * - {@link Refused} when the downstream refused it definitely, now or when it was made;
   * - {@link Paused} when a person or a look-up must find out first; where the call was
   *   performed just now, its cause is what the tool threw;
   * - {@link Problem} for every other refusal: lease_lost, run_closed, log_behind, conflict,
   *   effect_cancelled, effect_in_flight;
   * - {@link NoAnswer} when the server could not be reached;
   * - {@link Unrecorded} when the call was made and its outcome could not be kept anywhere.
   *
   * Where it throws neither a Paused whose cause is the tool's own error, nor a Refused that
   * is not replayed, nor an Unrecorded, nothing was performed.
   */
  async do<A, R>(tool: string, args: A, perform: Perform<A, R>, options: DoOptions = {}): Promise<Outcome<R>> {
    return await guarded(this, tool, args, perform, options);
  }

  /**
   * Wraps a tool's function: each call of what comes back goes through {@link do} and
   * gives the result.
   */
  tool<A, R>(name: string, perform: (args: A, call: Parameters<Perform<A, R>>[0]) => ReturnType<Perform<A, R>>): (args: A, options?: DoOptions) => Promise<R> {
    return async (args, options) => (await this.do<A, R>(name, args, (call) => perform(call.arguments, call), options)).result;
  }

  /**
   * Names "the same call" in this run, for those who count occurrences by themselves:
   * {@link callDigest} without the arguments that the policy calls volatile.
   */
  digest(tool: string, args: unknown): string {
    return callDigest(tool, stringify(args, "exact"), this.volatile[tool]);
  }

  /**
   * Saves state as the run's state after the given turn, with the count of the calls that
   * came back, so that a resumed run neither repeats nor skips one. Save after a turn is
   * complete, not while its calls are under way.
   */
  async checkpoint(turn: number, state: unknown): Promise<void> {
    const text = stringify(state === undefined ? null : state);
    const body = stringify({
      lease: this.lease.token(),
      state: new RawJSON(text),
      occurrences: this.calls.counts(),
      log_position: this.lease.position || undefined,
    });
    const doing = `couldn't save turn ${turn} of run ${JSON.stringify(this.id)}`;
    const answer = await this.#ask(doing, { method: "PUT", path: this.#path(`/checkpoints/${turn}`), body });
    this.lease.moved(answer.position);
    this.#turn = turn;
    this.#state = text;
  }

  /** Ends the run for good. It is refused while an effect is open. */
  async close(outcome: Ending = "finished", options: { signal?: AbortSignal } = {}): Promise<void> {
    const lease = await this.lease.leave(options.signal);
    const body = stringify({ lease, outcome, log_position: this.lease.position || undefined });
    try {
      await this.#ask(`couldn't close run ${JSON.stringify(this.id)}`, { method: "POST", path: this.#path("/close"), body });
    } catch (err) {
      this.lease.stay();
      throw err;
    }
    this.lease.letGo();
  }

  /**
   * Gives the lease back, so that another process need not wait for its end. It first
   * waits, until signal aborts, for calls that are being performed: giving the lease back
   * under them would leave their outcome in doubt. From its start no new call is begun. A
   * run that is not held is released already.
   */
  async release(options: { signal?: AbortSignal } = {}): Promise<void> {
    if (!this.lease.held) return;
    const lease = await this.lease.leave(options.signal);
    this.lease.letGo();
    const body = stringify({ lease, log_position: this.lease.position || undefined });
    try {
      await retry(tryTimeout, undefined, () => this.client.transport.once({ method: "POST", path: this.#path("/release"), body }));
    } catch (err) {
      if (isProblem(err, "lease_lost") || isProblem(err, "run_closed")) return;
      throw whileDoing(`couldn't release run ${JSON.stringify(this.id)}`, err);
    }
  }

  /** Releases the run at the end of an `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /**
   * Releases the run when one of the signals arrives, giving calls under way the grace to
   * end, and then lets the signal do what it does without a handler. Call what comes back
   * when the run is over.
   */
  releaseOnSignal(graceMs = 20_000, ...signals: NodeJS.Signals[]): () => void {
    const names: NodeJS.Signals[] = signals.length > 0 ? signals : ["SIGTERM"];
    const stop = () => names.forEach((name) => process.off(name, leave));
    const leave = async (name: NodeJS.Signals) => {
      await this.release({ signal: AbortSignal.timeout(graceMs) }).catch((err: unknown) => {
        this.client.log("warn", "couldn't release at a signal", { run: this.id, error: String(err) });
      });
      stop();
      if (process.listenerCount(name) === 0) process.kill(process.pid, name);
    };
    names.forEach((name) => process.once(name, leave));
    return stop;
  }

  /**
   * Returns when the run may go on: at once when it is not paused, else when everything was
   * decided and released. Where the lease ended meanwhile it is taken again. It waits
   * through outages of the server, until signal aborts. Throws run_closed when the run was
   * closed and run_held when another process was quicker.
   */
  async wait(options: { signal?: AbortSignal } = {}): Promise<void> {
    for (;;) {
      const view = await this.client.run(this.id, { waitMs: 30_000, patienceMs: Infinity, ...options });
      this.lease.moved(view.log_position);
      switch (view.state) {
        case "paused":
          options.signal?.throwIfAborted();
          continue;
        case "finished":
        case "failed":
        case "cancelled":
          this.lease.letGo();
          throw new Problem({ title: `the run is ${view.state}`, status: 0, code: "run_closed", retryable: false, final: true, run_id: this.id });
        case "running":
          if (this.lease.held) return;
      }
      await this.acquire(0, options.signal);
      return;
    }
  }

  /**
   * Takes the lease. Every try carries one attempt id, so a lost answer is given again
   * instead of locking this process out by its own lease. @internal
   */
  async acquire(waitHeldMs: number, signal: AbortSignal | undefined): Promise<Answer> {
    for (const end = performance.now() + waitHeldMs; ; ) {
      const attempt_id = this.#attemptId ?? newId();
      this.#attemptId = undefined; // handed over once: a lease after it is this process's own
      let sent = 0;
      try {
        const answer = await retry(this.client.patience, signal, async () => {
          sent = performance.now();
          return await this.client.transport.once({
            method: "PUT",
            path: this.#path(""),
            signal,
            body: stringify({
              agent: this.#options.agent,
              worker: this.#options.worker ?? this.client.worker,
              attempt_id,
              lease_seconds: this.#options.leaseSeconds ?? 60,
              log_position: this.lease.position || undefined,
            }),
          });
        });
        this.took(answer, sent);
        return answer;
      } catch (err) {
        const left = end - performance.now();
        if (!isProblem(err, "run_held") || left <= 0 || signal?.aborted) {
          throw whileDoing(`couldn't open run ${JSON.stringify(this.id)}`, asPaused(this.id, err));
        }
        await sleep(Math.min(holdPause, left), signal);
      }
    }
  }

  /** Stores a lease whose request was sent at the given time. @internal */
  took(answer: Answer, sent: number): void {
    const { lease, volatile, log_position } = answer.body as { lease?: { token: string; epoch: number }; volatile?: Record<string, string[]>; log_position?: string };
    if (!lease) throw new Error("the server's answer holds no lease");
    this.volatile = volatile ?? {};
    this.lease.moved(log_position);
    this.lease.took(lease.token, lease.epoch, sent);
  }

  /**
   * Reads the checkpoint that a lease announced. Without it the run cannot go on where it
   * stood, so the lease is given back. @internal
   */
  async resume(answer: Answer): Promise<void> {
    if (!answer.body.checkpoint) return;
    try {
      const saved = await this.#ask(`couldn't read the checkpoint of run ${JSON.stringify(this.id)}`, {
        method: "GET",
        path: this.#path("/checkpoint"),
      });
      this.#turn = Number(saved.body.turn);
      this.#state = rawMembers(saved.text).get("state") ?? "null";
      this.calls = new Occurrences((saved.body.occurrences ?? {}) as Record<string, number>);
    } catch (err) {
      await this.release().catch(() => {});
      throw err;
    }
  }

  async #ask(doing: string, call: ApiRequest): Promise<Answer> {
    try {
      return await retry(this.client.patience, call.signal, () => this.client.transport.once(call));
    } catch (err) {
      throw whileDoing(doing, this.lease.refused(err));
    }
  }
}
