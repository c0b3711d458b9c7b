import type { Log } from "../deliver.js";
import type { ProblemDocument } from "../problem.js";
import { Api, rawObject, unreachable } from "./api.js";
import { Attempt } from "./attempt.js";
import { paymentHeaderOf, type HookContext, type ResourceServer, type Transport } from "./hooks.js";
import {
  authorizationOf, decode, identifierOf, paymentIdHeader, paymentIdPattern, quoteHeader, signatureHeader, toBase64,
  type PaymentPayload, type Requirements,
} from "./x402.js";

export interface GatewayOptions {
  /** Quittance, and the token of the gateway's account. */
  url: string;
  token: string;
  /** The gateway's name in the policy. Its `settles` must be after_work. */
  name: string;
  /** What a request buys; see {@link Sold}. */
  route?: (request: Request) => Sold;
  fetch?: typeof fetch;
  /** Milliseconds for which Quittance is tried before the payer is told to come back; 3,000 by default. */
  patienceMs?: number;
  /** Receives what nobody waits for, and never a body. */
  log?: Log;
}

export interface Sold {
  /** The policy's name for what is sold; the path of the request by default. */
  tool?: string;
  /** What is bought, an object: with the tool it tells one purchase from another. By default the body, where that is a JSON object and all there is. */
  arguments?: object;
  /** A read that the policy marks cacheable: asked again by the same payer within two minutes it costs nothing. */
  cacheable?: boolean;
  /** For the receipt. */
  description?: string;
  /** Refuses payers that bring no payment id. Otherwise the nonce of their authorization stands for one. */
  requireId?: boolean;
}

/**
 * Lets a server of x402 sell a call once, whatever crashes. It stands around x402's own
 * middleware, which alone would answer 402 where a settlement gave no answer, and in its
 * hooks:
 *
 *     const gateway = new Gateway({ url, token, name: "shop" });
 *     gateway.hook(resourceServer);              // of @x402/core
 *     app.use(honoGateway(gateway));             // then paymentMiddleware(routes, resourceServer)
 *
 * Where Quittance cannot be reached it answers 503, never 402, and settles nothing.
 */
export class Gateway {
  /** @internal */
  readonly api: Api;
  readonly name: string;
  /** @internal */
  readonly log: Log;
  #options: GatewayOptions;
  #instance = crypto.randomUUID();
  #busy = new Map<string, Attempt>(); // by payment id
  #headers = new Map<string, Attempt>(); // by the header that x402's hooks see

  constructor(options: GatewayOptions) {
    this.#options = options;
    this.api = new Api(options);
    this.name = options.name;
    this.log = options.log ?? (() => {});
  }

  /** Joins the hooks of an x402ResourceServer. A payment that did not come through {@link handle} is not taken. */
  hook(server: ResourceServer): this {
    const at = (c: HookContext) => this.#headers.get(paymentHeaderOf(c));
    // A hook that throws is only warned about, and the payment would go on.
    const safe = async <T>(a: Attempt | undefined, f: (a: Attempt) => Promise<T>): Promise<T | { abort: true; reason: string }> => {
      if (!a) return { abort: true, reason: "not_through_quittance" };
      try {
        return await f(a);
      } catch (err) {
        a.stop(err);
        return { abort: true, reason: "quittance" };
      }
    };
    server.onBeforeVerify((c) => safe(at(c), (a) => a.beforeVerify(c.requirements as unknown as Requirements)));
    server.onAfterVerify((c) => safe(at(c), (a) => a.afterVerify(c.result)));
    server.onVerifyFailure(async () => {});
    server.onBeforeSettle((c) => safe(at(c), (a) => a.beforeSettle(c.phase, (c.transportContext ?? {}) as Transport)));
    server.onAfterSettle(async (c) => at(c)?.afterSettle(c.result));
    server.onSettleFailure(async (c) => at(c)?.settleFailed(c.error));
    server.onVerifiedPaymentCanceled(async () => {});
    return this;
  }

  /** Does a gateway's order of work around next, which is x402's middleware and what is sold behind it. */
  async handle<R extends Request>(request: R, next: (request: R) => Promise<Response> | Response): Promise<Response> {
    const header = request.headers.get(signatureHeader);
    if (!header) {
      const got = await next(request);
      if (got.status !== 402) return got;
      const quoted = new Response(got.body, got);
      quoted.headers.set(quoteHeader, `q_${crypto.randomUUID().replaceAll("-", "")}`);
      return quoted;
    }
    const understood = await this.#understand(request, header);
    if (typeof understood === "string") return refusal(400, "malformed", "The payment cannot be read", understood, { retry_action: "abandon" });
    const a = understood;
    if (this.#busy.has(a.id) || this.#headers.has(header)) return a.inFlight(1);
    this.#busy.set(a.id, a);
    this.#headers.set(header, a);
    try {
      let got: Response | undefined;
      try {
        if (!(await a.begin())) got = await next(request);
      } catch (err) {
        this.log("warn", "what is sold failed", { payment_id: a.id, error: String(err) });
      }
      return await a.end(got ?? new Response(null, { status: 500 }));
    } finally {
      this.#busy.delete(a.id);
      this.#headers.delete(header);
    }
  }

  /** Reads what a payer sent; a text says what is wrong with it. */
  async #understand(request: Request, header: string): Promise<Attempt | string> {
    const payment = decode<PaymentPayload>(header);
    const auth = payment?.payload && authorizationOf(payment);
    if (payment?.x402Version !== 2 || !payment.accepted) return "the payment is not one of version 2 of x402";
    const way = payment.accepted;
    if (way.scheme !== "exact" || !auth) return "the payload holds no EIP-3009 authorization";
    if (auth.to.toLowerCase() !== way.payTo.toLowerCase()) return "the authorization is for another recipient than the payment says";
    if (auth.value !== way.amount) return "the authorization is for another amount than the payment says";
    const sold = this.#options.route?.(request) ?? {};
    const given = request.headers.get(paymentIdHeader) ?? "";
    const extension = identifierOf(payment);
    if (given && extension && given !== extension) return "header and extension name two payment ids";
    if (!given && !extension && sold.requireId) return "a payment id is required: mint one and store it before you pay";
    const id = given || extension || `nonce_${auth.nonce.toLowerCase().replace(/^0x/, "")}`;
    if (!paymentIdPattern.test(id)) return "a payment id has 16 to 128 of A-Z a-z 0-9 _ -";
    return new Attempt(this, sold, id, {
      payment_id: id, gateway: this.name, payer: auth.from, request: await asked(request, sold), amount: way.amount, asset: way.asset, network: way.network,
      pay_to: way.payTo, quote: request.headers.get(quoteHeader) ?? undefined, attempt_id: `${this.#instance}-${id}`,
      authorization: { nonce: auth.nonce, valid_after: auth.validAfter || undefined, valid_before: auth.validBefore, signature: auth.signature || undefined },
    }, way);
  }

  /**
   * Delivers what Quittance could not be told, until it can. It keeps no process alive:
   * what is lost with one, Quittance finds out by itself. @internal
   */
  later(what: string, id: string, f: () => Promise<unknown>): void {
    void (async () => {
      for (let pause = 1000, began = Date.now(); Date.now() - began < 3_600_000; pause = Math.min(2 * pause, 60_000)) {
        await new Promise((resolve) => {
          const timer: unknown = setTimeout(resolve, pause);
          if (typeof timer === "object" && timer !== null && "unref" in timer) (timer as { unref(): void }).unref(); // Node's
        });
        try {
          return await f();
        } catch (err) {
          if (!unreachable(err)) return this.log("warn", "delivered late, and refused", { what, payment_id: id, error: String(err) });
        }
      }
      this.log("error", "not delivered", { what, payment_id: id });
    })();
  }
}

/** What is bought: method, tool and arguments. */
async function asked(request: Request, sold: Sold): Promise<object> {
  const url = new URL(request.url);
  const out = { method: request.method, tool: sold.tool ?? url.pathname };
  if (sold.arguments) return { ...out, arguments: sold.arguments };
  const bytes = new Uint8Array(await request.clone().arrayBuffer());
  const body = rawObject(new TextDecoder().decode(bytes));
  const query = [...url.searchParams];
  if (body && query.length === 0 && !sold.tool) return { ...out, arguments: body };
  return {
    ...out,
    arguments: {
      ...(sold.tool && { path: url.pathname }), // one name may stand for several
      ...(query.length > 0 && { query }),
      ...(body ? { body } : bytes.length > 0 && { body: toBase64(bytes) }),
    },
  };
}

/** A problem document. */
export function refusal(status: number, code: string, title: string, detail: string, more: Partial<ProblemDocument> & { payment_id?: string; order_id?: string } = {}): Response {
  const headers = new Headers({ "content-type": "application/problem+json", "cache-control": "no-store" });
  if (more.retry_after) headers.set("retry-after", String(more.retry_after));
  return new Response(JSON.stringify({ title, status, detail, code, retryable: false, final: false, ...more }), { status, headers });
}
