import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";

import { x402Client } from "@x402/core/client";
import { x402ResourceServer, type FacilitatorClient } from "@x402/core/server";
import type { SettleResponse, VerifyResponse } from "@x402/core/types";
import { ExactEvmScheme as Pays } from "@x402/evm/exact/client";
import { ExactEvmScheme as Sells } from "@x402/evm/exact/server";
import { paymentMiddleware as express402 } from "@x402/express";
import { wrapFetchWithPayment } from "@x402/fetch";
import { paymentMiddleware as hono402 } from "@x402/hono";
import express from "express";
import { Hono } from "hono";
import { privateKeyToAccount } from "viem/accounts";

import { FileIntents } from "../src/payments/files.js";
import { expressGateway, honoGateway } from "../src/payments/frameworks.js";
import { Gateway, Payer, PaymentOpen, paymentOf, type PaymentPayload, type Required } from "../src/payments/index.js";
import { decode } from "../src/payments/x402.js";
import { folder, Gate, thrown, token } from "./world.js";

const network = "eip155:31337";
const price = { asset: "0x1000000000000000000000000000000000000001", amount: "4200000", extra: { name: "Dollar", version: "2" } };
const payTo = "0x2000000000000000000000000000000000000002";
const routes = { "POST /write": { accepts: { scheme: "exact", network, payTo, price } }, "GET /read": { accepts: { scheme: "exact", network, payTo, price } } } as const;

/** A facilitator that settles what it is told to. */
class Facilitator implements FacilitatorClient {
  settled = 0;
  verdict: VerifyResponse | Error = { isValid: true };
  outcome: "success" | "no success" | "pending" | "broken" = "success";

  async verify(): Promise<VerifyResponse> {
    if (this.verdict instanceof Error) throw this.verdict;
    return this.verdict;
  }
  async settle(): Promise<SettleResponse> {
    this.settled++;
    const transaction = `0x${randomBytes(32).toString("hex")}`;
    if (this.outcome === "broken") throw new Error("the connection broke");
    if (this.outcome === "success") return { success: true, transaction, network };
    return { success: false, transaction, network, errorReason: this.outcome === "pending" ? "settlement_pending" : "invalid_transaction_state" };
  }
  async getSupported() {
    return { kinds: [{ x402Version: 2, scheme: "exact", network: network as `${string}:${string}` }], extensions: [], signers: {} };
  }
}

interface Shop {
  facilitator: Facilitator;
  gate: Gate;
  done: number;
  status: number;
  url: string;
}

/** A paid page in a framework, with x402's own middleware. */
async function open(framework: "hono" | "express"): Promise<Shop> {
  const gate = await Gate.open();
  const shop: Shop = { facilitator: new Facilitator(), gate, done: 0, status: 201, url: "" };
  const server = new x402ResourceServer(shop.facilitator).register(network, new Sells());
  const gateway = new Gateway({
    url: gate.url, token, name: "shop", patienceMs: 300, route: (r) => (new URL(r.url).pathname === "/read" ? { tool: "fetch_page", cacheable: true } : {}),
  }).hook(server);
  let listening: http.Server;
  if (framework === "express") {
    const app = express();
    app.use(express.json(), expressGateway(gateway), express402(routes, server));
    const sold: express.RequestHandler = (_, res) => void res.status(shop.status).json({ page: ++shop.done });
    app.post("/write", sold).get("/read", sold).get("/free", sold);
    listening = http.createServer(app);
  } else {
    const app = new Hono();
    app.use(honoGateway(gateway), hono402(routes, server));
    app.on(["POST", "GET"], ["/write", "/read", "/free"], (c) => c.json({ page: ++shop.done }, shop.status as 201));
    listening = http.createServer(async (q, a) => {
      const chunks: Buffer[] = [];
      for await (const chunk of q) chunks.push(chunk as Buffer);
      const body = Buffer.concat(chunks);
      const got = await app.fetch(new Request(`http://${q.headers.host}${q.url}`, { method: q.method ?? "GET", headers: q.headers as Record<string, string>, ...(body.length > 0 && { body }) }));
      a.writeHead(got.status, Object.fromEntries(got.headers)).end(Buffer.from(await got.arrayBuffer()));
    });
  }
  await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
  after(() => listening.close().closeAllConnections());
  shop.url = `http://127.0.0.1:${(listening.address() as AddressInfo).port}`;
  return shop;
}

const account = () => privateKeyToAccount(`0x${randomBytes(32).toString("hex")}`);
const pays = () => x402Client.fromConfig({ schemes: [{ network, client: new Pays(account()) }], spendControls: false });

/** A payer that signs with the packages of x402. */
function payer(patienceMs = 600): { pay: (shop: Shop, key: string, path?: string) => Promise<Response>; sent: Headers[] } {
  const sent: Headers[] = [];
  const signs = pays();
  const p = new Payer({
    store: new FileIntents(folder()), patienceMs, sign: async (offered: Required) => (await signs.createPaymentPayload(offered)) as PaymentPayload,
    fetch: async (input, init) => {
      sent.push(new Headers(init?.headers));
      return await fetch(input, init);
    },
  });
  return { sent, pay: (shop, key, path = "/write") => p.fetch(key, shop.url + path, path === "/write" ? { method: "POST", body: '{"page":"a"}', headers: { "content-type": "application/json" } } : {}) };
}

/** What was sent, again as it was. */
const resend = (shop: Shop, headers: Headers | undefined) => fetch(`${shop.url}/write`, { method: "POST", body: '{"page":"a"}', headers: headers ?? {} });

for (const framework of ["hono", "express"] as const) {
  test(`${framework}: a purchase is paid, done and answered once`, async () => {
    const shop = await open(framework);
    const p = payer();
    const got = await p.pay(shop, "order-8");
    assert.equal(got.status, 201);
    assert.deepEqual(await got.json(), { page: 1 });
    const of = paymentOf(got);
    assert.ok(of.outcome === "settled" && of.receipt && of.orderId && of.charged && !of.replayed, JSON.stringify(of));
    assert.equal(decode<SettleResponse>(got.headers.get("PAYMENT-RESPONSE"))?.success, true);
    const again = await resend(shop, p.sent.at(-1));
    assert.equal(again.status, 201);
    assert.deepEqual(await again.json(), { page: 1 });
    assert.equal(again.headers.get("Quittance-Replayed"), "true");
    assert.equal(again.headers.get("PAYMENT-RESPONSE"), got.headers.get("PAYMENT-RESPONSE"));
    const other = await fetch(`${shop.url}/write`, { method: "POST", body: '{"page":"b"}', headers: p.sent.at(-1) ?? {} });
    assert.equal(((await other.json()) as { code: string }).code, "payment_conflict");
    assert.equal(other.headers.get("PAYMENT-REQUIRED"), null);
    assert.equal((await fetch(`${shop.url}/free`)).status, 201);
    assert.deepEqual([shop.facilitator.settled, shop.done], [1, 2]);
  });

  test(`${framework}: a settlement that is not a plain success is unknown, never 402`, async () => {
    for (const outcome of ["no success", "pending", "broken"] as const) {
      const shop = await open(framework);
      shop.facilitator.outcome = outcome;
      const p = payer(200);
      const err = await thrown(p.pay(shop, "k"));
      assert.ok(err instanceof PaymentOpen, `${outcome}: ${String(err)}`);
      const settled = shop.facilitator.settled; // x402 itself asks once more where it is pending
      const again = await resend(shop, p.sent.at(-1));
      assert.equal(again.status, 409);
      const doc = (await again.json()) as { code: string; final: boolean };
      assert.deepEqual([doc.code, doc.final], ["payment_in_flight", false]);
      assert.ok(again.headers.get("Retry-After"));
      assert.deepEqual([shop.facilitator.settled, shop.done], [settled, 1]);
    }
  });

  test(`${framework}: Quittance that stays away is 503, and nothing is settled`, async () => {
    for (const [step, settles] of [["\\/v1\\/payments", 0], ["\\/order", 0], ["\\/work", 0], ["\\/broadcast", 0], ["\\/payments\\/.*\\/finish", 1], ["\\/effects\\/.*\\/finish", 1]] as const) {
      for (const fault of ["drop_request", "drop_answer"] as const) {
        const shop = await open(framework);
        shop.gate.fail(new RegExp(`^POST .*${step}$`), fault, 1000);
        const p = payer(100);
        const got = await p.pay(shop, "k").catch((err: unknown) => err);
        assert.equal(shop.facilitator.settled, settles, `${step} ${fault}`);
        if (settles === 1) {
          assert.ok(got instanceof Response && got.status === 201, `${step} ${fault}: ${String(got)}`);
        } else {
          const again = await resend(shop, p.sent.at(-1));
          // A step that happened is not asked for again, and a claim that is held is waited for.
          assert.ok([503, 409].includes(again.status) || (step === "\\/order" && fault === "drop_answer"), `${step} ${fault}: ${again.status}`);
          shop.gate.heal();
          const healed = await resend(shop, p.sent.at(-1));
          assert.notEqual(healed.status, 402);
        }
        shop.gate.heal();
        assert.ok(shop.facilitator.settled <= 1 && shop.done <= 1, `${step} ${fault}: ${shop.facilitator.settled} settled, ${shop.done} done`);
      }
    }
  });

  test(`${framework}: a step that fails once changes nothing`, async () => {
    for (const step of ["\\/v1\\/payments", "\\/order", "\\/work", "\\/effects\\/.*\\/finish", "\\/broadcast", "\\/payments\\/.*\\/finish"]) {
      for (const fault of ["drop_request", "drop_answer"] as const) {
        const shop = await open(framework);
        shop.gate.fail(new RegExp(`^POST .*${step}$`), fault, 1);
        const got = await payer().pay(shop, "k");
        assert.deepEqual([got.status, shop.facilitator.settled, shop.done], [201, 1, 1], `${step} ${fault}`);
      }
    }
  });

  test(`${framework}: verifications, refusals and faults of what is sold`, async () => {
    for (const [reason, status] of [["invalid_exact_evm_signature", 402], ["invalid_exact_evm_nonce_already_used", 409], ["who knows", 409]] as const) {
      const shop = await open(framework);
      shop.facilitator.verdict = { isValid: false, invalidReason: reason };
      const p = payer(100);
      await p.pay(shop, "k").catch(() => {});
      shop.facilitator.verdict = { isValid: true };
      const again = await resend(shop, p.sent.at(-1));
      assert.equal(again.status, status, reason);
      assert.equal(again.headers.get("Quittance-Outcome"), status === 402 ? "refused" : null);
      assert.deepEqual([shop.facilitator.settled, shop.done], [0, 0]);
    }
    for (const [answer, status, outcome] of [[422, 422, "refused"], [504, 409, null]] as const) {
      const shop = await open(framework);
      shop.status = answer;
      const p = payer(100);
      await p.pay(shop, "k").catch(() => {});
      shop.status = 201;
      const again = await resend(shop, p.sent.at(-1));
      assert.deepEqual([again.status, again.headers.get("Quittance-Outcome")], [status, outcome]);
      assert.deepEqual([shop.facilitator.settled, shop.done], [0, 1]);
    }
    const shop = await open(framework);
    shop.facilitator.verdict = new Error("no answer");
    const p = payer(100);
    await p.pay(shop, "k").catch(() => {});
    assert.equal((await resend(shop, p.sent.at(-1))).status, 503);
    shop.facilitator.verdict = { isValid: true };
    assert.equal((await resend(shop, p.sent.at(-1))).status, 201); // nothing was begun: it goes on
    assert.deepEqual([shop.facilitator.settled, shop.done], [1, 1]);
  });

  test(`${framework}: a read is charged once in two minutes`, async () => {
    const shop = await open(framework);
    const p = payer();
    const path = `/read?page=${randomBytes(8).toString("hex")}`;
    assert.equal(paymentOf(await p.pay(shop, "a", path)).charged, true);
    const again = await p.pay(shop, "b", path);
    assert.equal(paymentOf(again).charged, false);
    assert.deepEqual(await again.json(), { page: 1 });
    assert.deepEqual([shop.facilitator.settled, shop.done], [1, 1]);
  });

  test(`${framework}: a payer of x402 that knows nothing of Quittance is served`, async () => {
    const shop = await open(framework);
    const sent: Headers[] = [];
    const plain = wrapFetchWithPayment(async (input, init) => {
      const r = new Request(input, init);
      sent.push(new Headers(r.headers));
      return await fetch(r);
    }, pays());
    const got = await plain(`${shop.url}/write`, { method: "POST", body: '{"page":"a"}', headers: { "content-type": "application/json" } });
    assert.equal(got.status, 201);
    assert.match(got.headers.get("Quittance-Payment-Id") ?? "", /^nonce_[0-9a-f]{64}$/);
    assert.equal((await resend(shop, sent.at(-1))).headers.get("Quittance-Replayed"), "true");
    assert.deepEqual([shop.facilitator.settled, shop.done], [1, 1]);
  });
}
