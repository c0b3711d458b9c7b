import { RawJSON, stringify } from "../json.js";
import { NoAnswer, Problem, type ProblemDocument } from "../problem.js";

/** An answer of a gateway, byte by byte. */
export interface Frozen {
  status: number;
  headers: Record<string, string>;
  body: string; // base64
  cut?: boolean;
}

/** What a claim is answered. */
export interface Claimed {
  do: "proceed" | "replay";
  order_id: string;
  receipt?: string;
  fence?: number;
  paid?: boolean;
  work?: "none" | "taken" | "not_taken";
  work_result?: Frozen;
  outcome?: "settled" | "refused";
  response?: Frozen;
  order?: { transfers?: { tx: string }[] };
}

/** Calls Quittance over fetch, the same again where an answer was lost. */
export class Api {
  #base: string;
  #token: string;
  #fetch: typeof fetch;
  #patience: number;

  constructor(options: { url: string; token: string; fetch?: typeof fetch; patienceMs?: number }) {
    this.#base = options.url.replace(/\/+$/, "");
    this.#token = options.token;
    this.#fetch = options.fetch ?? ((...args) => globalThis.fetch(...args));
    this.#patience = options.patienceMs ?? 3000;
  }

  /** Throws a {@link Problem} where it refuses, and a {@link NoAnswer} where nobody knows what it did. */
  async call<T>(method: "GET" | "POST", path: string, body?: object): Promise<T> {
    const text = body && stringify(body);
    const start = Date.now();
    for (let n = 0; ; n++) {
      try {
        return await this.#once<T>(method, path, text);
      } catch (err) {
        const pause = 50 * 2 ** Math.min(n, 5) * (0.5 + Math.random());
        if (!unreachable(err) || Date.now() - start + pause > this.#patience) throw err;
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    }
  }

  async #once<T>(method: string, path: string, body: string | undefined): Promise<T> {
    let status = 0;
    let text = "";
    try {
      const got = await this.#fetch(this.#base + path, {
        method, redirect: "manual", signal: AbortSignal.timeout(15_000),
        headers: { authorization: `Bearer ${this.#token}`, ...(body !== undefined && { "content-type": "application/json" }) },
        ...(body !== undefined && { body }),
      });
      status = got.status;
      text = await got.text();
    } catch (err) {
      throw new NoAnswer(err instanceof Error ? err.message : String(err), err);
    }
    if (status === 204) return {} as T;
    let v: unknown;
    try {
      v = JSON.parse(text);
    } catch {
      v = undefined;
    }
    if (status >= 200 && status <= 299 && typeof v === "object" && v !== null) return v as T;
    const p = v as Partial<ProblemDocument> | undefined;
    if (status >= 300 && typeof p?.code === "string") throw new Problem({ title: "", retryable: false, final: false, ...p, code: p.code, status });
    throw new NoAnswer(`status ${status} without the JSON it should hold`);
  }
}

/** Whether an error is no answer of Quittance about the payment. */
export function unreachable(err: unknown): boolean {
  return !(err instanceof Problem) || err.status >= 500 || err.status === 429 || err.status === 408;
}

/** JSON text that is sent as it is; undefined where it is no object. */
export function rawObject(text: string): RawJSON | undefined {
  if (!/^[ \t\r\n]*\{/.test(text)) return undefined;
  try {
    return new RawJSON(text);
  } catch {
    return undefined;
  }
}
