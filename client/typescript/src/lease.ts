import type { Log } from "./deliver.js";
import { stringify } from "./json.js";
import { isProblem, leaseLost } from "./problem.js";
import { sleep, type Transport } from "./request.js";

/**
 * How long, in milliseconds, a renewal may take when the lease has ended by then: a
 * process that was stopped for a while may still hold it by the server's clock.
 */
const lastTry = 1000;

/** The right of this process to act for one run, renewed in the background. */
export class Lease {
  /** Rises with each holder of the run. */
  epoch = 0;
  /** The last log position an answer gave. */
  position = "";
  #transport: Transport;
  #log: Log;
  #runId: string;
  #path: string;
  #seconds: number;
  #token = "";
  #held = false;
  #leaving = false; // being released or closed: no new call is begun
  #performing = 0; // calls under way
  #idle: (() => void)[] = [];
  #beating = new AbortController();
  #clientEnds: AbortSignal;

  constructor(o: { transport: Transport; log: Log; runId: string; path: string; seconds: number; ends: AbortSignal }) {
    this.#transport = o.transport;
    this.#log = o.log;
    this.#runId = o.runId;
    this.#path = o.path;
    this.#seconds = o.seconds;
    this.#clientEnds = o.ends;
  }

  /** Stores a lease whose request was sent at the given time of performance.now(). */
  took(token: string, epoch: number, sent: number): void {
    this.#beating.abort();
    this.#beating = new AbortController();
    [this.#token, this.epoch, this.#held, this.#leaving] = [token, epoch, true, false];
    void this.#beat(token, sent, AbortSignal.any([this.#beating.signal, this.#clientEnds]));
  }

  moved(position: unknown): void {
    if (typeof position === "string" && position !== "") this.position = position;
  }

  get held(): boolean {
    return this.#held;
  }

  /** Throws lease_lost when it is not held any more. */
  token(): string {
    if (!this.#held) throw leaseLost(this.#runId);
    return this.#token;
  }

  /** Is token for a call that is about to begin; exit says that it is over. */
  enter(): string {
    if (this.#leaving) throw leaseLost(this.#runId);
    const token = this.token();
    this.#performing++;
    return token;
  }

  exit(): void {
    if (--this.#performing > 0) return;
    for (const done of this.#idle.splice(0)) done();
  }

  /** Lets no new call begin and waits, until signal aborts, for those under way. */
  async leave(signal: AbortSignal | undefined): Promise<string> {
    const token = this.token();
    this.#leaving = true;
    if (this.#performing > 0 && !signal?.aborted) {
      await new Promise<void>((resolve) => {
        this.#idle.push(resolve);
        signal?.addEventListener("abort", () => resolve(), { once: true });
      });
    }
    return token;
  }

  /** Takes leave back. */
  stay(): void {
    this.#leaving = false;
  }

  letGo(): void {
    this.#held = false;
    this.#beating.abort();
  }

  /** Notes what a refusal says about the lease and gives it back. */
  refused(err: unknown): unknown {
    if (isProblem(err, "lease_lost") || isProblem(err, "run_closed")) this.letGo();
    return err;
  }

  /**
   * Renews the lease each third of its length. It ends when the server says that the
   * lease is lost, when no renewal got through for a whole lease and lastTry by this
   * process's own clock, or when the run lets go. Calls that are being performed go on:
   * their outcome is worth more than their fence.
   */
  async #beat(token: string, sent: number, stop: AbortSignal): Promise<void> {
    const length = this.#seconds * 1000;
    let until = sent + length;
    let pause = length / 3;
    for (;;) {
      await sleep(Math.max(0, Math.min(pause, until - performance.now())), stop, true);
      if (stop.aborted) return;
      const started = performance.now();
      try {
        const answer = await this.#transport.once({
          method: "POST",
          path: `${this.#path}/heartbeat`,
          body: stringify({ lease: token, log_position: this.position || undefined }),
          timeout: Math.max(until - started, lastTry),
          signal: stop,
          background: true,
        });
        [until, pause] = [started + length, length / 3];
        this.moved(answer.body.log_position);
      } catch (err) {
        if (stop.aborted) return;
        if (isProblem(err, "lease_lost") || isProblem(err, "run_closed") || performance.now() >= until) {
          this.#log("warn", "a lease was lost", { run: this.#runId, error: String(err) });
          if (this.#token === token) this.#held = false;
          return;
        }
        // Renewals that fail are repeated quickly: what is left of the lease is all the
        // time there is.
        this.#log("info", "a heartbeat failed", { run: this.#runId, error: String(err) });
        pause = Math.min(pause, Math.max(length / 10, 100));
      }
    }
  }
}
