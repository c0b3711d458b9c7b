import type { ProblemDocument } from "../problem.js";
import {
  authorizationOf, chargedHeader, decode, encode, fromBase64, identify, orderHeader, outcomeHeader, paymentIdHeader, quoteHeader,
  receiptHeader, replayedHeader, requiredHeader, sameMoney, sha256, signatureHeader, toBase64,
  type PaymentPayload, type Required,
} from "./x402.js";

/**
 * Where intents are kept. What put resolves must survive the process and the machine, and
 * never be another afterwards: where something stands under the name, put leaves it and
 * gives that, so that of several payers at once one wins and the others follow it.
 */
export interface IntentStore {
  get(name: string): Promise<string | undefined>;
  put(name: string, value: string): Promise<string>;
}

/**
 * Chooses one of the ways to pay that are offered and signs it, such as
 * `(offered) => x402Client.createPaymentPayload(offered)` of @x402/core, whose schemes,
 * spend controls, policies and hooks then all apply. It is called once for a purchase, and
 * again only when nothing signed before can move money any more.
 */
export type Sign = (offered: Required) => Promise<PaymentPayload>;

export interface PayerOptions {
  store: IntentStore;
  sign: Sign;
  /** globalThis.fetch by default. */
  fetch?: typeof fetch;
  /** Milliseconds for which a payment is asked about before {@link PaymentOpen}; 10 minutes by default. */
  patienceMs?: number;
}

/** Nothing was sent: the intent could not be stored. */
export class NotStored extends Error {
  override readonly name = "NotStored";
}
/** The key was used for another request, or the quote for another purchase: nothing was signed. */
export class OtherPurchase extends Error {
  override readonly name = "OtherPurchase";
}
/** Nobody knows yet what became of it: pay with the same key again, later, and never with another. */
export class PaymentOpen extends Error {
  override readonly name = "PaymentOpen";
}
/** The gateway asks for another payment while the first may still be taken: nothing was signed. */
export class AskedAgain extends Error {
  override readonly name = "AskedAgain";
}
/** The gateway refuses, for good. */
export class PaymentRefused extends Error {
  override readonly name = "PaymentRefused";
  readonly status: number;
  readonly document: Partial<ProblemDocument>;

  constructor(status: number, document: Partial<ProblemDocument>) {
    super(`${document.code ?? "http"} (${status}): ${document.detail ?? document.title ?? "not an answer that was expected"}`);
    this.status = status;
    this.document = document;
  }
}

interface Intent {
  key: string;
  payment_id: string;
  method: string;
  url: string;
  body_sha256: string;
}
interface Authorized {
  n: number;
  quote: string;
  accepted: PaymentPayload["accepted"];
  validBefore: number; // Unix seconds; 0 where the scheme has none
  sent: string;
}
interface Answer {
  status: number;
  headers: [string, string][];
  body: string; // base64
}
interface Purchase {
  id: string;
  key: string;
  name: string;
  request: Request;
  body: Uint8Array<ArrayBuffer>;
}

/** Bounds what a gateway can make a payer sign for one purchase. */
const mostSigned = 3;

/** Pays for calls, each purchase once, whatever crashes: what is sent is stored before. */
export class Payer {
  #store: IntentStore;
  #sign: Sign;
  #fetch: typeof fetch;
  #patience: number;

  constructor(options: PayerOptions) {
    this.#store = options.store;
    this.#sign = options.sign;
    this.#fetch = options.fetch ?? ((...args) => globalThis.fetch(...args));
    this.#patience = options.patienceMs ?? 600_000;
  }

  /**
   * fetch for a call that may have to be paid for, once for each key: the caller's own name
   * for the purchase. The same key with the same request gives the same answer for ever,
   * also after a crash. Only what is final is returned, refusals among it; where nobody
   * knows, it waits and asks.
   */
  async fetch(key: string, input: string | URL | Request, init?: RequestInit): Promise<Response> {
    const request = new Request(input, init);
    const body = new Uint8Array(await request.clone().arrayBuffer());
    const name = await sha256(new TextEncoder().encode(key));
    const mine: Intent = {
      key, payment_id: `pay_${crypto.randomUUID().replaceAll("-", "")}`, method: request.method, url: request.url, body_sha256: await sha256(body),
    };
    const intent = await this.#put<Intent>(`${name}/intent`, mine);
    if (intent.method !== mine.method || intent.url !== mine.url || intent.body_sha256 !== mine.body_sha256) {
      throw new OtherPurchase(`the key belongs to ${intent.method} ${intent.url}`);
    }
    const p: Purchase = { id: intent.payment_id, key, name, request, body };
    const known = await this.#get<Answer>(`${name}/answer`);
    if (known) return response(known, true);
    let a: Authorized | undefined;
    for (let n = 1; ; n++) {
      const next = await this.#get<Authorized>(`${name}/authorization-${n}`);
      if (!next) break;
      a = next;
    }
    if (!a) {
      const first = await this.#offer(p);
      if (first instanceof Response) return first;
      a = first;
    }
    return await this.#send(p, a);
  }

  /** Asks without paying, and signs what is asked for; the answer where nothing is. */
  async #offer(p: Purchase): Promise<Authorized | Response> {
    return await this.#until(p, async () => {
      const got = await this.#once(p);
      if (got.status === 402) return await this.#authorize(p, got, undefined);
      if (got.ok) return got;
      if (later(got.status)) throw new Again(after(got), new PaymentOpen(`the gateway answered ${got.status}`));
      throw new PaymentRefused(got.status, await document(got));
    });
  }

  async #authorize(p: Purchase, got: Response, before: Authorized | undefined): Promise<Authorized> {
    const offer = decode<Required>(got.headers.get(requiredHeader));
    if (offer?.x402Version !== 2 || !Array.isArray(offer.accepts)) throw new PaymentRefused(402, { title: "the 402 does not speak version 2 of x402" });
    let quote = got.headers.get(quoteHeader) ?? "";
    let accepts = offer.accepts;
    if (before) {
      if (before.n >= mostSigned) throw new AskedAgain(`${before.n} were signed already`);
      // The fingerprint of the purchase covers recipient, amount and quote: they stay.
      quote = before.quote;
      accepts = accepts.filter((way) => sameMoney(way, before.accepted));
      if (accepts.length === 0) throw new AskedAgain("it asks for another amount or recipient than was signed before");
    } else if (quote !== "") {
      const host = new URL(p.request.url).host;
      const owner = await this.#put<{ key: string }>(`quotes/${await sha256(new TextEncoder().encode(`${host} ${quote}`))}`, { key: p.key });
      if (owner.key !== p.key) throw new OtherPurchase(`another purchase was signed for this quote: ${owner.key}`);
    }
    const signed = await this.#sign({ ...offer, accepts });
    if (!accepts.some((way) => sameMoney(way, signed.accepted))) throw new Error("what was signed is none of the ways to pay that were offered");
    const n = (before?.n ?? 0) + 1;
    return await this.#put<Authorized>(`${p.name}/authorization-${n}`, {
      n, quote, accepted: signed.accepted, validBefore: Number(authorizationOf(signed)?.validBefore ?? 0), sent: encode(identify(signed, offer.extensions, p.id)),
    });
  }

  /** Sends what was signed until it is known what became of it. */
  async #send(p: Purchase, first: Authorized): Promise<Response> {
    let a = first;
    return await this.#until(p, async () => {
      const got = await this.#once(p, a);
      const outcome = got.headers.get(outcomeHeader);
      // A gateway that gave a quote says itself what is final: what comes without its word
      // is from something between us.
      if (outcome === "settled" || outcome === "refused" || got.headers.get(chargedHeader) === "false" || (a.quote === "" && got.ok)) {
        return await this.#finish(p, got);
      }
      const said = await document(got);
      if (got.status === 402 && said.code === "sign_again") {
        const left = a.validBefore * 1000 - Date.now();
        if (left > 0) throw new Again(left, new PaymentOpen("what was signed can still be used"));
        a = await this.#authorize(p, got, a);
        throw new Again(0, new PaymentOpen("it was signed again"));
      }
      if (got.status === 402) throw new AskedAgain(`the gateway asks for another payment: ${said.detail ?? ""}`);
      const here = !said.payment_id || said.payment_id === p.id; // else the quote is being paid under another id
      if (got.ok || later(got.status) || (said.code === "payment_in_flight" && here)) {
        throw new Again(after(got, said), new PaymentOpen(`${said.code ?? got.status}: ${said.detail ?? "no answer yet"}`));
      }
      throw new PaymentRefused(got.status, said);
    });
  }

  async #finish(p: Purchase, got: Response): Promise<Response> {
    const answer: Answer = { status: got.status, headers: [], body: toBase64(new Uint8Array(await got.arrayBuffer())) };
    got.headers.forEach((value, name) => {
      if (!["set-cookie", "content-encoding", "content-length", "transfer-encoding"].includes(name)) answer.headers.push([name, value]);
    });
    try {
      return response(await this.#put<Answer>(`${p.name}/answer`, answer), false);
    } catch {
      return response(answer, false); // the same request gets it again
    }
  }

  async #once(p: Purchase, a?: Authorized): Promise<Response> {
    const headers = new Headers(p.request.headers);
    headers.set(paymentIdHeader, p.id);
    if (a) {
      headers.set(signatureHeader, a.sent);
      if (a.quote !== "") headers.set(quoteHeader, a.quote);
    }
    const sent = this.#fetch(p.request.url, {
      method: p.request.method, headers, redirect: "manual", signal: AbortSignal.any([p.request.signal, AbortSignal.timeout(180_000)]),
      ...(p.body.length > 0 && { body: p.body }),
    });
    const got = await sent.catch((err: unknown) => {
      throw new Again(0, new PaymentOpen("no answer", { cause: err }));
    });
    // Read whole: half an answer is none.
    const bytes = await got.arrayBuffer().catch((err: unknown) => {
      throw new Again(0, new PaymentOpen("half an answer", { cause: err }));
    });
    if (got.status < 200 || got.type === "opaqueredirect") throw new PaymentRefused(got.status, { title: "a redirect could carry the payment elsewhere" });
    return new Response([204, 205, 304].includes(got.status) ? null : bytes, { status: got.status, headers: got.headers });
  }

  async #until<T>(p: Purchase, f: () => Promise<T>): Promise<T> {
    const start = Date.now();
    for (let n = 0; ; n++) {
      try {
        return await f();
      } catch (err) {
        if (!(err instanceof Again)) throw err;
        const most = Math.min(5000, 50 * 2 ** Math.min(n, 10));
        const pause = err.after > 0 ? err.after + Math.random() * 50 : most / 4 + Math.random() * most;
        if (p.request.signal.aborted || Date.now() - start + pause > this.#patience) throw err.why;
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    }
  }

  async #get<T>(name: string): Promise<T | undefined> {
    const text = await this.#store.get(name);
    return text === undefined ? undefined : (JSON.parse(text) as T);
  }

  async #put<T>(name: string, value: T): Promise<T> {
    try {
      return JSON.parse(await this.#store.put(name, JSON.stringify(value))) as T;
    } catch (err) {
      throw new NotStored("the payment could not be stored, so it was not sent", { cause: err });
    }
  }
}

/** Carries through #until that the same is to be tried again. */
class Again extends Error {
  readonly after: number;
  readonly why: Error;

  constructor(after: number, why: Error) {
    super("again");
    this.after = after;
    this.why = why;
  }
}

function later(status: number): boolean {
  return status >= 500 || status === 429 || status === 408 || status === 425;
}

/** Milliseconds that the gateway asks to wait. */
function after(got: Response, said: Partial<ProblemDocument> = {}): number {
  const seconds = said.retry_after ?? Number(got.headers.get("retry-after") ?? 0);
  return Number.isFinite(seconds) ? Math.max(0, Math.min(300, seconds)) * 1000 : 0;
}

/** The problem document of a refusal; empty where it is none. */
async function document(got: Response): Promise<Partial<ProblemDocument> & { payment_id?: string }> {
  if (got.ok || !got.headers.get("content-type")?.includes("json")) return {};
  const v: unknown = await got.clone().json().catch(() => ({}));
  return typeof v === "object" && v !== null ? v : {};
}

function response(a: Answer, replayed: boolean): Response {
  const headers = new Headers(a.headers);
  if (replayed) headers.set(replayedHeader, "true");
  return new Response([204, 205, 304].includes(a.status) ? null : fromBase64(a.body), { status: a.status, headers });
}

/** What an answer of {@link Payer.fetch} says of its payment. */
export function paymentOf(got: Response): { paymentId: string; orderId: string; receipt: string; outcome: string; charged: boolean; replayed: boolean } {
  const h = (name: string) => got.headers.get(name) ?? "";
  return {
    paymentId: h(paymentIdHeader), orderId: h(orderHeader), receipt: h(receiptHeader), outcome: h(outcomeHeader),
    charged: h(chargedHeader) !== "false" && h(outcomeHeader) !== "refused", replayed: h(replayedHeader) === "true",
  };
}
