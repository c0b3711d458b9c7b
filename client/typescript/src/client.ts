import type http from "node:http";
import { hostname } from "node:os";

import { Deliverer, type Log } from "./deliver.js";
import { stringify } from "./json.js";
import { newId } from "./occurrences.js";
import { asPaused, Problem, whileDoing } from "./problem.js";
import { escape, retry, Transport, tryTimeout, type Answer } from "./request.js";
import { Run, type RunOptions, type RunView } from "./run.js";
import { defaultSpool, Spool } from "./spool.js";

/** How long the server holds one claim while no run is ready, in milliseconds. */
const readyPoll = 30_000;

export interface ClientOptions {
  /** The server, such as http://127.0.0.1:8080. */
  url: string;
  /** An agent's token, or a person's for the routes of people. */
  token: string;
  /** Names this process to people; the host name and process id otherwise. */
  worker?: string;
  /**
   * The folder that keeps outcomes which could not be delivered. It should survive the
   * process and, in a container, be on a volume. One folder serves one account of one
   * server: everything in it is delivered there. The default is a folder for this server
   * and token below quittance/spool in the user's cache folder. The files hold results as
   * the tools returned them; only their owner can read them.
   */
  spool?: string;
  /**
   * Milliseconds for which a request is repeated when the server cannot be reached, before
   * an error is thrown; 30,000 by default. Outcomes are repeated for ever.
   */
  patienceMs?: number;
  /** The bytes above which a result is sent as size and digest only; 8 MiB by default. */
  maxResult?: number;
  /** Receives what nobody waits for. Nothing is logged by default, and never a body. */
  log?: Log;
  /**
   * Decides about TLS, proxies and connections. By default one that keeps connections open
   * and goes straight to the server, whatever HTTP_PROXY says.
   */
  agent?: http.Agent;
}

/** Talks to one server as the owner of one token. It sends nothing before it is asked. */
export class Client {
  /** @internal */
  readonly transport: Transport;
  /** @internal */
  readonly deliverer: Deliverer;
  /** @internal */
  readonly log: Log;
  /** @internal */
  readonly worker: string;
  /** @internal */
  readonly patience: number;
  #ends = new AbortController();

  constructor(options: ClientOptions) {
    const base = options.url.replace(/\/+$/, "");
    this.log = options.log ?? (() => {});
    this.worker = options.worker ?? `${hostname()}/${process.pid}`;
    this.patience = options.patienceMs ?? 30_000;
    this.transport = new Transport(base, options.token, options.agent);
    const spool = new Spool(options.spool ?? defaultSpool(base, options.token));
    this.deliverer = new Deliverer(this.transport, spool, options.maxResult ?? 8 << 20, this.log);
  }

  /** Aborts when the client is closed. @internal */
  get ends(): AbortSignal {
    return this.#ends.signal;
  }

  /**
   * Takes the lease of a run, which is new or was left by another process, and reads its
   * last checkpoint. Outcomes that an earlier process could not deliver are delivered
   * first. Throws {@link Paused}, or a {@link Problem} such as run_held, run_closed and
   * log_behind.
   */
  async open(runId: string, options: RunOptions): Promise<Run> {
    await this.deliverer.flush();
    const run = new Run(this, runId, options);
    await run.resume(await run.acquire(options.waitHeldMs ?? 0, options.signal));
    return run;
  }

  /**
   * Takes the lease of any run of one of the kinds of agent that is ready to go on;
   * undefined when there is none. waitReadyMs is how long to wait for one to become ready;
   * where signal aborts meanwhile, a run that was given is free again when its lease has run
   * out.
   */
  async claim(agents: string[], options: Omit<RunOptions, "agent" | "waitHeldMs" | "attemptId"> & { waitReadyMs?: number } = {}): Promise<Run | undefined> {
    await this.deliverer.flush();
    let sent = 0;
    const body = stringify({
      agents,
      worker: options.worker ?? this.worker,
      attempt_id: newId(),
      lease_seconds: options.leaseSeconds ?? 60,
    });
    const end = performance.now() + (options.waitReadyMs ?? 0);
    let answer: Answer;
    do {
      const wait = Math.floor(Math.min(readyPoll, Math.max(0, end - performance.now())));
      const path = `/v1/runs/claim${wait > 0 ? `?wait=${wait}ms` : ""}`;
      answer = await retry(this.patience, options.signal, async () => {
        sent = performance.now();
        return await this.transport.once({ method: "POST", path, body, signal: options.signal, timeout: tryTimeout + wait });
      }).catch((err: unknown) => {
        throw whileDoing("couldn't claim a run", asPaused("", err));
      });
    } while (answer.status === 204 && performance.now() < end);
    if (answer.status === 204) return undefined;
    const run = new Run(this, String(answer.body.run_id), { ...options, agent: String(answer.body.agent ?? "") });
    run.took(answer, sent);
    await run.resume(answer);
    return run;
  }

  /**
   * Reads a run and its open effects. With a wait, in milliseconds, and a paused run it
   * answers when the run may go on, or after the wait.
   */
  async run(runId: string, options: { waitMs?: number; patienceMs?: number; signal?: AbortSignal } = {}): Promise<RunView> {
    const wait = options.waitMs ?? 0;
    const path = `/v1/runs/${escape(runId)}${wait > 0 ? `?wait=${wait}ms` : ""}`;
    return (await this.call("GET", path, undefined, { ...options, timeoutMs: tryTimeout + wait })) as unknown as RunView;
  }

  /**
   * Sends one request of the API (see /openapi.json), repeated only where an answer was lost
   * or the server asked for it, and gives the answer's body; {} with 204. For what has no
   * method of its own: tools for people, gateways, tests. body is written by
   * {@link stringify}; numbers of the answer are JSON.parse's.
   */
  async call(
    method: "GET" | "PUT" | "POST",
    path: string,
    body?: unknown,
    options: { patienceMs?: number; timeoutMs?: number; signal?: AbortSignal } = {},
  ): Promise<Record<string, unknown>> {
    const text = body === undefined ? undefined : stringify(body);
    const answer = await retry(options.patienceMs ?? this.patience, options.signal, () =>
      this.transport.once({
        method,
        path,
        ...(text !== undefined && { body: text }),
        timeout: options.timeoutMs ?? tryTimeout,
        signal: options.signal,
      }),
    );
    return answer.body;
  }

  /**
   * Stops what runs in the background: heartbeats, so that leases run out, and the delivery
   * of outcomes. Those that are still in the spool are delivered by the next process that
   * opens a run.
   */
  close(): void {
    this.#ends.abort();
    this.deliverer.stop();
    this.transport.close();
  }
}
