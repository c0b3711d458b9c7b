import { Problem } from "../problem.js";
import { unreachable, type Claimed, type Frozen } from "./api.js";
import { refusal, type Gateway, type Sold } from "./gateway.js";
import type { Settlement, Transport } from "./hooks.js";
import {
  chargedHeader, encode, fromBase64, orderHeader, outcomeHeader, paymentIdHeader, receiptHeader, replayedHeader, requiredHeader, responseHeader, sameMoney, toBase64,
  type Requirements,
} from "./x402.js";

/**
 * Reasons of a verification that say something about what was signed, or about a balance,
 * and nothing about whether it was used: such a payment is refused. Every other reason,
 * known or not, is unknown; an authorization whose time is over too, since only the chain
 * tells whether it was used in time.
 */
const definite = new Set([
  ...["scheme", "network_mismatch", "recipient_mismatch", "signature", "failed_to_parse_signature", "missing_eip712_domain", "token_name_mismatch",
    "token_version_mismatch", "eip3009_not_supported", "authorization_value", "payload_authorization_value_mismatch", "insufficient_balance"]
    .map((reason) => `invalid_exact_evm_${reason}`),
  "insufficient_funds", "invalid_payload", "invalid_payment_requirements", "invalid_scheme", "unsupported_scheme", "invalid_network", "invalid_x402_version",
]);

/** Refusals of a step that mean that another try has the payment, or a person. */
const elsewhere = new Set(["stale_fence", "order_final", "run_paused", "run_held", "run_closed", "lease_lost", "effect_in_flight"]);

/** One paid request at work: what x402's hooks saw of it, and what becomes of it. */
export class Attempt {
  readonly id: string;
  #gateway: Gateway;
  #sold: Sold;
  #claim: object;
  #way: Requirements;

  #claimed: Claimed | undefined;
  #answer: Response | undefined; // decided before what is sold was asked
  #order = "";
  #receipt = "";
  #read = ""; // id of a cacheable read that is charged
  #known = false; // the id, before this request
  #invalid: string | undefined;
  #work: { effect_id: string; fence: number } | undefined;
  #worked = false;
  #frozen: Frozen | undefined; // what the work answered
  #sent = false;
  #settled: Settlement | undefined;
  #why = "";
  #tx = "";

  constructor(gateway: Gateway, sold: Sold, id: string, claim: object, way: Requirements) {
    this.#gateway = gateway;
    this.#sold = sold;
    this.id = id;
    this.#claim = claim;
    this.#way = way;
  }

  /** Asks, for a read, whether the id is known. True where there is an answer already. */
  async begin(): Promise<boolean> {
    if (!this.#sold.cacheable) return false;
    try {
      this.#known = await this.#isKnown();
    } catch (err) {
      this.stop(err);
    }
    return this.#answer !== undefined;
  }

  // The hooks, in the order in which x402 calls them.

  async beforeVerify(requirements: Requirements) {
    if (!sameMoney(requirements, this.#way)) throw new Error("x402 matched another way to pay");
    if (this.#sold.cacheable && !this.#known) return; // who pays is verified before anything is shown
    return await this.#take();
  }

  async afterVerify(result: { readonly isValid: boolean; readonly invalidReason?: string }) {
    if (this.#answer) return { abort: true as const, reason: "quittance" };
    if (!result.isValid) {
      this.#invalid = result.invalidReason ?? "";
      if (this.#claimed) return;
      return stopped(await this.#take()); // the claim says what becomes of it
    }
    if (!this.#claimed) {
      const over = (await this.#readAgain()) ?? stopped(await this.#take());
      if (over) return over;
    }
    const c = this.#claimed as Claimed;
    if (!c.order) {
      const order = await this.#post<{ receipt?: string }>("order", { description: this.#sold.description ?? "" });
      this.#receipt = order.receipt ?? "";
    }
    if (c.work === "taken") {
      this.#worked = true;
      this.#frozen = c.work_result ?? { status: 200, headers: {}, body: "" };
      return { skipHandler: true as const, response: {} };
    }
    if (this.#sold.cacheable) return;
    const begun = await this.#post<{ do: string; effect_id: string; fence: number; outcome?: string; result?: Frozen; error?: Frozen }>("work", {});
    if (begun.do === "proceed") this.#work = begun;
    if (begun.do !== "replay") return;
    this.#frozen = begun.result ?? begun.error ?? { status: 200, headers: {}, body: "" };
    if (begun.outcome === "failed") {
      this.#answer = await this.#refuse(this.#frozen, "the work was refused");
      return { abort: true as const, reason: "quittance" };
    }
    this.#worked = true;
    return { skipHandler: true as const, response: {} };
  }

  async beforeSettle(phase: string, transport: Transport) {
    if (phase !== "after-handler") throw new Error("this gateway settles after the work: let the route's payment flow be authorization");
    if (!this.#claimed || this.#answer) return { abort: true as const, reason: "quittance" };
    this.#frozen ??= { status: 200, headers: kept(transport.responseHeaders ?? {}), body: toBase64(transport.responseBody ?? new Uint8Array()) };
    if (!this.#worked) await this.#finishWork("taken", this.#frozen);
    this.#worked = true;
    if (this.#claimed.paid) {
      return { skip: true as const, result: { success: true, transaction: this.#claimed.order?.transfers?.[0]?.tx ?? "", network: this.#way.network } };
    }
    await this.#post("broadcast", { nonce: (this.#claim as { authorization: { nonce: string } }).authorization.nonce });
    this.#sent = true;
    return;
  }

  afterSettle(result: Settlement): void {
    if (this.#claimed?.paid || (result.success && result.transaction)) this.#settled = result;
    else this.#why = "success without a transaction";
  }

  settleFailed(error: Error & { transaction?: string; errorReason?: string }): void {
    this.#tx = error.transaction ?? "";
    this.#why = `settlement: ${error.errorReason ?? "no answer"}`;
  }

  /** What the payer is told, after x402 and what is sold have answered. */
  async end(got: Response): Promise<Response> {
    try {
      return this.#named(this.#answer ?? (await this.#over(got)));
    } catch (err) {
      this.#answer = undefined;
      this.stop(err);
      return this.#named(this.#answer ?? this.#down());
    }
  }

  async #over(got: Response): Promise<Response> {
    if (!this.#claimed) {
      if (got.status !== 402) return got.status >= 500 ? this.#down() : got; // not a paid route, or x402's own fault
      if (!(await this.#isKnown())) return got; // nothing was ever begun for it
      await this.#take();
      return this.#answer ?? this.inFlight(5);
    }
    if (this.#settled) return await this.#finish(got);
    if (this.#sent) return await this.#unknown(this.#why || "the settlement gave no answer", this.#tx);
    if (this.#invalid !== undefined) {
      if (!definite.has(this.#invalid)) return await this.#unknown(`verification: ${this.#invalid}`);
      return await this.#refuse(await freeze(got), `verification: ${this.#invalid}`);
    }
    if (this.#worked) return this.#down();
    if (this.#work || this.#sold.cacheable) {
      const frozen = await freeze(got);
      const refused = got.status >= 400 && got.status < 500 && got.status !== 402;
      await this.#finishWork(refused ? "failed" : "unknown", frozen);
      return refused ? await this.#refuse(frozen, `the work answered ${got.status}`) : await this.#unknown(`the work answered ${got.status}`);
    }
    return this.#down(); // it was not verified; nothing was begun, and the same again goes on
  }

  /** Ends what goes on because of an error of a step. */
  stop(err: unknown): void {
    if (this.#answer) return;
    if (unreachable(err) || !(err instanceof Problem)) {
      this.#gateway.log("warn", "Quittance gave no answer; nothing goes on", { payment_id: this.id, error: String(err) });
      this.#answer = this.#down();
      return;
    }
    const d = err.document as typeof err.document & { payment_id?: string; order_id?: string };
    this.#order = d.order_id ?? this.#order;
    if (elsewhere.has(d.code)) {
      this.#answer = this.inFlight(5);
    } else if (["payment_in_flight", "payment_conflict", "payment_id_spent", "sign_again", "invalid"].includes(d.code)) {
      const { log_position: _, request_id: __, ...shown } = d;
      this.#answer = refusal(err.status, d.code, d.title, d.detail ?? "", shown);
      // The same recipient, asset and amount: they are the payment id's.
      if (d.code === "sign_again") this.#answer.headers.set(requiredHeader, encode({ x402Version: 2, error: "sign_again", resource: { url: "" }, accepts: [this.#way] }));
    } else {
      this.#gateway.log("error", "Quittance refused a step", { payment_id: this.id, error: String(err) });
      this.#answer = this.#down();
    }
  }

  inFlight(seconds: number): Response {
    return refusal(409, "payment_in_flight", "The payment is under way", "The payment is under way, or nobody knows yet what became of it. Send the same again; do not sign again.", {
      retryable: true, retry_action: "poll", retry_after: seconds, payment_id: this.id, ...(this.#order && { order_id: this.#order }),
    });
  }

  #down(): Response {
    return refusal(503, "unavailable", "Not now", "The payment could not be verified or recorded now, so nothing was settled.", { retryable: true, retry_action: "retry_same", retry_after: 5 });
  }

  async #isKnown(): Promise<boolean> {
    try {
      await this.#gateway.api.call("GET", `/v1/payments/${this.id}?gateway=${encodeURIComponent(this.#gateway.name)}`);
      return true;
    } catch (err) {
      if (err instanceof Problem && err.code === "not_found") return false;
      throw err;
    }
  }

  /** Claims the id; what x402 does next. */
  async #take(): Promise<Over | { skip: true; result: { isValid: boolean } } | undefined> {
    try {
      const c = await this.#gateway.api.call<Claimed>("POST", "/v1/payments", this.#claim);
      this.#order = c.order_id;
      this.#receipt = c.receipt ?? "";
      if (c.do === "replay") {
        this.#answer = this.#replay(c);
      } else {
        this.#claimed = c;
        if (c.paid) return { skip: true as const, result: { isValid: true } };
        return undefined;
      }
    } catch (err) {
      this.stop(err);
    }
    return { abort: true as const, reason: "quittance" };
  }

  async #readAgain() {
    const { payer, request } = this.#claim as { payer: string; request: object };
    const r = await this.#gateway.api.call<{ charged: boolean; read_id?: string; receipt?: string; response?: Frozen }>("POST", "/v1/reads", { gateway: this.#gateway.name, payer, request });
    if (r.charged || !r.response) {
      this.#read = r.read_id ?? "";
      return undefined;
    }
    this.#receipt = r.receipt ?? "";
    this.#answer = thaw(r.response);
    this.#answer.headers.delete(responseHeader); // it tells of the first payment
    this.#answer.headers.set(chargedHeader, "false");
    return { abort: true as const, reason: "quittance" };
  }

  #post<T>(step: string, body: object): Promise<T> {
    return this.#gateway.api.call<T>("POST", `/v1/payments/${this.id}/${step}`, { gateway: this.#gateway.name, fence: this.#claimed?.fence, ...body });
  }

  async #finishWork(outcome: "taken" | "failed" | "unknown", answer: Frozen): Promise<void> {
    const w = this.#work;
    if (!w) return;
    const send = () => this.#gateway.api.call("POST", `/v1/effects/${w.effect_id}/finish`, { fence: w.fence, outcome, ...(outcome === "taken" ? { result: answer } : { error: answer }) });
    await send().catch((err: unknown) => {
      if (unreachable(err)) this.#gateway.later("what was done for a payment", this.id, send);
    });
  }

  async #refuse(answer: Frozen, why: string): Promise<Response> {
    const p = await this.#post<{ state: string }>("finish", { outcome: "refused", why, response: answer });
    return p.state === "refused" ? this.#final(answer, "refused", false) : this.inFlight(5);
  }

  async #unknown(why: string, tx = ""): Promise<Response> {
    this.#gateway.log("warn", "it is not known what became of a payment", { payment_id: this.id, why });
    const send = () => this.#post("finish", { outcome: "unknown", why: why.slice(0, 1000), ...(tx && { tx }) });
    await send().catch((err: unknown) => {
      if (unreachable(err)) this.#gateway.later("what is not known of a payment", this.id, send);
    });
    return this.inFlight(5);
  }

  /** Freezes the answer of what is paid and done. */
  async #finish(got: Response): Promise<Response> {
    const skipped = this.#claimed?.work === "taken" || !got.ok; // then the work's own answer is the right one
    const answer = skipped && this.#frozen ? this.#frozen : await freeze(got);
    const paid = got.headers.get(responseHeader);
    if (paid) answer.headers[responseHeader.toLowerCase()] = paid;
    const tx = this.#settled?.transaction;
    const send = () => this.#post("finish", { outcome: "settled", ...(tx && { tx }), response: answer });
    await send().catch((err: unknown) => {
      if (unreachable(err)) this.#gateway.later("a settled payment", this.id, send);
      else this.#gateway.log("error", "a settled payment was refused, and is kept as evidence", { payment_id: this.id, error: String(err) });
    });
    if (this.#read) {
      await this.#gateway.api.call("POST", `/v1/reads/${this.#read}/finish`, { outcome: "taken", payment_id: this.id, response: answer }).catch((err: unknown) => {
        this.#gateway.log("warn", "a read will be charged again", { payment_id: this.id, error: String(err) });
      });
    }
    return this.#final(answer, "settled", false);
  }

  #replay(c: Claimed): Response {
    const answer = c.response ?? c.work_result;
    if (answer && !answer.cut) return this.#final(answer, c.outcome ?? "", true);
    if (c.outcome === "refused") {
      const r = refusal(409, "payment_refused", "The payment was refused", "The order is over and was not paid.", { final: true, retry_action: "abandon", payment_id: this.id, order_id: c.order_id });
      r.headers.set(outcomeHeader, "refused");
      r.headers.set(replayedHeader, "true");
      return r;
    }
    const known = { payment_id: this.id, order_id: c.order_id, outcome: c.outcome, receipt: c.receipt, order: c.order };
    return this.#final({ status: 200, headers: { "content-type": "application/json" }, body: toBase64(new TextEncoder().encode(JSON.stringify(known))) }, c.outcome ?? "", true);
  }

  #final(answer: Frozen, outcome: string, replayed: boolean): Response {
    const r = thaw(answer);
    r.headers.set(outcomeHeader, outcome);
    r.headers.set(replayedHeader, String(replayed));
    if (!r.headers.has("cache-control")) r.headers.set("cache-control", "private, no-store");
    return r;
  }

  #named(r: Response): Response {
    const out = new Response(r.body, r);
    out.headers.set(paymentIdHeader, this.id);
    if (this.#order) out.headers.set(orderHeader, this.#order);
    if (this.#receipt) out.headers.set(receiptHeader, this.#receipt);
    return out;
  }
}

type Over = { abort: true; reason: string };

function stopped(next: Over | object | undefined): Over | undefined {
  return next && "abort" in next ? (next as Over) : undefined;
}

/** Not an answer to anybody else's question. */
const dropped = new Set(["set-cookie", "content-length", "content-encoding", "transfer-encoding", "date", "connection", "keep-alive"]);

function kept(headers: Record<string, string> | Headers): Record<string, string> {
  const out: Record<string, string> = {};
  for (const [name, value] of headers instanceof Headers ? headers.entries() : Object.entries(headers)) {
    if (!dropped.has(name.toLowerCase())) out[name.toLowerCase()] = value;
  }
  return out;
}

async function freeze(got: Response): Promise<Frozen> {
  return { status: got.status, headers: kept(got.headers), body: toBase64(new Uint8Array(await got.clone().arrayBuffer())) };
}

function thaw(answer: Frozen): Response {
  const empty = [204, 205, 304].includes(answer.status);
  return new Response(empty ? null : fromBase64(answer.body ?? ""), { status: answer.status, headers: answer.headers ?? {} });
}
