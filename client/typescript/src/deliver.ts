import { createHash } from "node:crypto";

import { NoAnswer, Problem } from "./problem.js";
import { backoff, escape, retry, sleep, type Transport } from "./request.js";
import { finishBody, type Finish, type Spool, type Spooled } from "./spool.js";

/** Where the effect stands after a finish. */
export interface Finished {
  state: string;
  position: string;
}

/** What the server will never take as it is. */
class Rejected extends Error {}

/** Receives what nobody waits for: outcomes delivered late, heartbeats that fail. Never a body. */
export type Log = (level: "info" | "warn" | "error", text: string, about: Record<string, unknown>) => void;

/** Milliseconds that opening a run may spend on the outcomes of earlier processes. */
const flushTime = 5000;

/** Hands outcomes to the server: now, or by way of the spool in the background. */
export class Deliverer {
  /** Milliseconds that deliver tries by itself. */
  finishWait = 10_000;
  #transport: Transport;
  #spool: Spool;
  #maxResult: number;
  #log: Log;
  #stop = new AbortController();
  #running = false;
  #more = false; // something was spooled since the folder was last listed

  constructor(transport: Transport, spool: Spool, maxResult: number, log: Log) {
    this.#transport = transport;
    this.#spool = spool;
    this.#maxResult = maxResult;
    this.#log = log;
  }

  stop(): void {
    this.#stop.abort();
  }

  /**
   * Delivers an outcome. When the first try fails it is spooled before anything else,
   * then tried for a while, then left to the background: undefined. Throws when it could
   * neither be delivered nor be kept.
   */
  async deliver(o: Spooled): Promise<Finished | undefined> {
    const whole = { ...o, finish: fit(o.finish, this.#maxResult) };
    let left = whole; // what was refused for its size is not sent whole again
    const send = async () => (await this.#finish(left, undefined, (smaller) => (left = smaller))).finished;
    try {
      return await send();
    } catch {
      // Spooled below, also when it was refused: the background sets it aside.
    }
    // A position is for a server that answers at once; a redelivery must be kept even by
    // one that was restored meanwhile.
    delete whole.finish.log_position;
    delete left.finish.log_position;
    const name = await this.#spool.save(whole).catch((err: unknown) => new Error("couldn't spool an outcome", { cause: err }));
    try {
      const finished = await retry(this.finishWait, undefined, send);
      if (typeof name === "string") await this.#forget(name);
      return finished;
    } catch (err) {
      if (typeof name !== "string") throw new AggregateError([name, err], `${name.message}, nor deliver it`);
      this.#log("warn", "an outcome waits in the spool", { run: o.run_id, effect: o.effect_id, error: String(err) });
      this.kick();
      return undefined;
    }
  }

  // Left behind it is delivered once more, which changes nothing: no reason for the
  // caller to doubt the call.
  async #forget(name: string): Promise<void> {
    try {
      await this.#spool.remove(name);
    } catch (err) {
      this.#log("warn", "a delivered outcome stays in the spool", { file: name, error: String(err) });
    }
  }

  /**
   * Sends an outcome once and, where it is refused for its size or form, once more without
   * result and error. It returns when the server has it: also when the fence is stale it
   * is kept as evidence. cut tells that less was sent than was there.
   */
  async #finish(o: Spooled, signal?: AbortSignal, smaller?: (o: Spooled) => void): Promise<{ finished: Finished; cut: boolean }> {
    try {
      return { finished: await this.#send(o, signal), cut: false };
    } catch (err) {
      if (!(err instanceof Problem)) throw err;
      const { code, status, document } = err;
      if (code === "stale_fence" || (status === 409 && document.final)) {
        return { finished: { state: document.state ?? "", position: document.log_position ?? "" }, cut: false };
      }
      if (status === 413 || status === 400 || status === 422) {
        if (o.finish.result === undefined && o.finish.error === undefined) throw new Rejected(err.message, { cause: err });
        const less = { ...o, finish: omitResult(o.finish) };
        smaller?.(less);
        return { finished: (await this.#finish(less, signal)).finished, cut: o.finish.result !== undefined };
      }
      if (code === "not_found") throw new Rejected(err.message, { cause: err });
      throw err;
    }
  }

  /**
   * Names the effect by its id and, where the server does not know that (it was restored
   * from a backup), by its key: then the outcome is kept without an intent.
   */
  async #send(o: Spooled, signal: AbortSignal | undefined): Promise<Finished> {
    const post = async (path: string, body: string) => {
      const answer = await this.#transport.once({ method: "POST", path, body, signal });
      return { state: String(answer.body.state ?? ""), position: String(answer.body.log_position ?? "") };
    };
    try {
      return await post(`/v1/effects/${escape(o.effect_id)}/finish`, finishBody(o.finish));
    } catch (err) {
      if (!(err instanceof Problem) || err.code !== "not_found") throw err;
      return await post("/v1/effects/finish", finishBody(o.finish, { run_id: o.run_id, key: o.key }));
    }
  }

  /**
   * Delivers what earlier processes left, so that a run is opened with what is known, and
   * leaves the rest to the background.
   */
  async flush(): Promise<void> {
    const left = await this.#all(AbortSignal.any([this.#stop.signal, AbortSignal.timeout(flushTime)]));
    if (left > 0) this.kick();
  }

  /**
   * Says that there is something in the spool: it starts the background delivery, or has
   * the one that runs look once more before it ends.
   */
  kick(): void {
    this.#more = true;
    if (this.#running || this.#stop.signal.aborted) return;
    this.#running = true;
    void this.#loop();
  }

  async #loop(): Promise<void> {
    const stopped = this.#stop.signal;
    for (let attempt = 0; ; attempt++) {
      this.#more = false;
      const left = await this.#all(stopped);
      if (stopped.aborted || (left === 0 && !this.#more)) break;
      // Slower and slower, to half a minute: an outage may last for hours.
      await sleep(backoff(attempt, Math.min(attempt, 25) * 1000), stopped, true);
    }
    this.#running = false;
  }

  /** Tries everything in the spool and returns how much is left. */
  async #all(signal: AbortSignal): Promise<number> {
    let left = 0;
    let names: string[];
    try {
      names = await this.#spool.names();
    } catch (err) {
      this.#log("error", "couldn't list the spool", { error: String(err) });
      return 0;
    }
    for (const [i, name] of names.entries()) {
      try {
        await this.#one(name, signal);
      } catch (err) {
        if (err instanceof NoAnswer || signal.aborted) return names.length - i + left; // the others would not get through either
        this.#log("warn", "an outcome stays in the spool", { file: name, error: String(err) });
        left++;
      }
    }
    return left;
  }

  /** Delivers one file and removes it, or sets it aside when it is refused. */
  async #one(name: string, signal: AbortSignal): Promise<void> {
    let o: Spooled | undefined;
    try {
      o = await this.#spool.load(name);
    } catch (err) {
      this.#log("error", "a spooled outcome can't be read and is set aside", { file: name, error: String(err) });
      return await this.#spool.setAside(name);
    }
    if (!o) return;
    let less = false;
    try {
      less = (await this.#finish(o, signal)).cut;
    } catch (err) {
      if (!(err instanceof Rejected)) throw err;
      less = true;
    }
    if (less) {
      // The server has less than is here: what is missing stays for a person.
      await this.#spool.reject(name, o);
      this.#log("warn", "an outcome was refused and is set aside", { file: name, run: o.run_id, effect: o.effect_id });
    }
    await this.#spool.remove(name);
  }
}

/** Replaces a result that is too large by its size and digest. */
function fit(f: Finish, most: number): Finish {
  return f.result !== undefined && Buffer.byteLength(f.result) > most ? omitResult(f) : { ...f };
}

function omitResult(f: Finish): Finish {
  const { result, error: _, ...rest } = f;
  if (result === undefined) return rest;
  const bytes = Buffer.from(result);
  return {
    ...rest,
    result_omitted: true,
    result_size: bytes.length,
    result_digest: createHash("sha256").update(bytes).digest("hex"),
  };
}
