import http from "node:http";
import https from "node:https";
import { setTimeout as timer } from "node:timers/promises";

import { NoAnswer, Problem, type ProblemDocument } from "./problem.js";

/** Bounds what is read of one answer: arguments and results at their stored limits stay far below. */
const answerLimit = 64 << 20;

/** The header that carries the log position of an answer without a body. */
const positionHeader = "quittance-log-position";

/** How long one try of one request may take, in milliseconds. */
export const tryTimeout = 15_000;

/** One call of the API. */
export interface ApiRequest {
  method: "GET" | "PUT" | "POST";
  path: string; // escaped
  body?: string; // JSON
  /** Ends the waiting for an answer. */
  signal?: AbortSignal | undefined;
  /** Milliseconds; tryTimeout when absent. */
  timeout?: number;
  /** Holds the process open no longer than its other work does. */
  background?: boolean;
}

/** A 2xx answer. */
export interface Answer {
  status: number;
  /** The body as it came; "" with 204. */
  text: string;
  /** The body, JSON.parsed: for members whose numbers are small. */
  body: Record<string, unknown>;
  position: string;
}

/** Sends requests to one server, as the owner of one token. */
export class Transport {
  #send: typeof http.request;
  #agent: http.Agent;
  #own: http.Agent | undefined; // ours to close
  #to: { protocol: string; hostname: string; port: string };
  #prefix: string; // of every path
  #headers: Record<string, string>;

  constructor(base: string, token: string, agent: http.Agent | undefined) {
    const { protocol, hostname, port, pathname } = new URL(base); // reading them is slow
    this.#to = { protocol, hostname: hostname.replace(/^\[(.*)\]$/, "$1"), port };
    this.#prefix = pathname.replace(/\/+$/, "");
    const secure = protocol === "https:";
    if (!secure && protocol !== "http:") throw new TypeError("the server's url must begin with http:// or https://");
    this.#send = secure ? https.request : http.request;
    this.#own = agent ? undefined : new (secure ? https : http).Agent({ keepAlive: true });
    this.#agent = agent ?? (this.#own as http.Agent);
    this.#headers = { authorization: `Bearer ${token}` };
  }

  /** Closes the connections, unless they are of an agent that was given. */
  close(): void {
    this.#own?.destroy();
  }

  /**
   * Sends a single time. Throws a {@link Problem} when the server refused, and a
   * {@link NoAnswer} when nobody knows what it did. A redirect is a refusal: following
   * it could carry the token elsewhere.
   */
  async once(call: ApiRequest): Promise<Answer> {
    call.signal?.throwIfAborted();
    const { status, headers, text } = await this.#exchange(call);
    if (status < 200 || status > 299) throw problemFrom(status, headers, text);
    const position = String(headers[positionHeader] ?? "");
    if (status === 204) return { status, text: "", body: {}, position };
    const body = object(text);
    if (!body) throw new NoAnswer(`status ${status} without the JSON it should hold`);
    return { status, text, body, position };
  }

  #exchange(call: ApiRequest): Promise<{ status: number; headers: http.IncomingHttpHeaders; text: string }> {
    const headers: Record<string, string | number> = { ...this.#headers };
    if (call.body !== undefined) {
      headers["content-type"] = "application/json";
      headers["content-length"] = Buffer.byteLength(call.body);
    }
    return new Promise((resolve, reject) => {
      const ms = call.timeout ?? tryTimeout;
      const over = setTimeout(() => request.destroy(new Error(`nothing came within ${ms} ms`)), ms);
      if (call.background) over.unref();
      const stop = () => request.destroy(new Error("cancelled"));
      const end = (settle: () => void) => {
        clearTimeout(over);
        call.signal?.removeEventListener("abort", stop);
        settle();
      };
      const fail = (err: Error) => end(() => reject(call.signal?.aborted ? call.signal.reason : new NoAnswer(err.message, err)));
      const request = this.#send(
        {
          agent: this.#agent,
          ...this.#to,
          path: this.#prefix + call.path,
          method: call.method,
          headers,
        },
        (response) => {
          const chunks: Buffer[] = [];
          let size = 0;
          response.on("data", (chunk: Buffer) => {
            chunks.push(chunk);
            size += chunk.length;
            if (size > answerLimit) request.destroy(new Error(`the answer is longer than ${answerLimit} bytes`));
          });
          response.on("error", fail);
          response.on("end", () => {
            const text = Buffer.concat(chunks).toString();
            end(() => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
          });
          // It comes after every answer; an error for nothing would cost as much as reading one.
          response.on("close", () => response.readableEnded || fail(new Error("the answer broke off")));
        },
      );
      if (call.background) request.on("socket", (socket) => socket.unref());
      request.on("error", fail);
      call.signal?.addEventListener("abort", stop, { once: true });
      request.end(call.body);
    });
  }
}

function object(text: string): Record<string, unknown> | undefined {
  try {
    const v: unknown = JSON.parse(text);
    return typeof v === "object" && v !== null && !Array.isArray(v) ? (v as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** The longest in seconds that a server is believed to want us to wait. */
const longestWait = 24 * 60 * 60;

/**
 * Reads a refusal. One that is not a problem document comes from something between us
 * and the server: only its status says anything.
 */
export function problemFrom(status: number, headers: http.IncomingHttpHeaders, text: string): Problem {
  let p = object(text) as Partial<ProblemDocument> | undefined;
  if (typeof p?.code !== "string" || p.code === "") {
    p = {
      code: status === 413 ? "too_large" : `http_${status}`,
      title: "not an answer of Quittance",
      retryable: status >= 500 || status === 429 || status === 408,
    };
  }
  const after = p.retry_after || Number(headers["retry-after"]);
  // Whoever stands between us and the server may say anything: a timer takes a wait below
  // zero, or past its own range, for none.
  delete p.retry_after;
  if (Number.isInteger(after) && after > 0) p.retry_after = Math.min(after, longestWait);
  return new Problem({ title: "", retryable: false, final: false, ...p, code: p.code as string, status });
}

/**
 * Calls f until it gets an answer that another try would not change, patience (in
 * milliseconds) is over or signal aborts. The last error is thrown as it was.
 */
export async function retry<T>(patience: number, signal: AbortSignal | undefined, f: () => Promise<T>): Promise<T> {
  const start = performance.now();
  for (let attempt = 0; ; attempt++) {
    try {
      return await f();
    } catch (err) {
      const after = mayRepeat(err);
      if (after === undefined || signal?.aborted) throw err;
      const pause = backoff(attempt, after);
      if (performance.now() - start + pause > patience) throw err;
      await sleep(pause, signal);
    }
  }
}

/**
 * Milliseconds that the server asked to wait before the same request is sent again, or
 * undefined where a program may not repeat it: a refusal that waits for a person, a poll
 * or another holder.
 */
export function mayRepeat(err: unknown): number | undefined {
  if (err instanceof NoAnswer) return 0;
  if (!(err instanceof Problem)) return undefined;
  const { retryable, retry_action, retry_after } = err.document;
  return retryable && (!retry_action || retry_action === "retry_same") ? (retry_after ?? 0) * 1000 : undefined;
}

/**
 * Grows from 50 ms to 5 s with full jitter, so that agents that lost the server together
 * do not come back together.
 */
export function backoff(attempt: number, after: number): number {
  const most = Math.min(5000, 50 * 2 ** Math.min(attempt, 10));
  return after + most / 4 + Math.random() * most;
}

/** Returns early when signal aborts. */
export async function sleep(ms: number, signal: AbortSignal | undefined, background = false): Promise<void> {
  await timer(ms, undefined, { ref: !background, ...(signal && { signal }) }).catch(() => {});
}

/**
 * Writes a name as one segment of a path. A dot segment would be cleaned away by servers
 * and proxies on the way.
 */
export function escape(name: string): string {
  const text = encodeURIComponent(name.toWellFormed());
  return /^\.+$/.test(text) ? text.replaceAll(".", "%2E") : text;
}
