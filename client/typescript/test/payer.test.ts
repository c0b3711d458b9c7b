import assert from "node:assert/strict";
import { readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { FileIntents } from "../src/payments/files.js";
import { AskedAgain, NotStored, OtherPurchase, Payer, PaymentOpen, paymentOf, PaymentRefused, type PaymentPayload, type Required } from "../src/payments/index.js";
import { decode, encode, identifierOf } from "../src/payments/x402.js";
import { folder, thrown } from "./world.js";

const price = { scheme: "exact", network: "eip155:31337" as const, asset: "0xa", amount: "12500000", payTo: "shop-4", maxTimeoutSeconds: 60, extra: {} };

/** A gateway that answers what a test says, and notes what it was sent. */
class Till {
  answers: ((till: Till) => Response | Error)[];
  unpaid = 0;
  paid: Headers[] = [];
  quote = "q-88";

  constructor(...answers: ((till: Till) => Response | Error)[]) {
    this.answers = answers;
  }

  ask(code = "payment_required"): Response {
    const offer: Required = { x402Version: 2, resource: { url: "" }, accepts: [price], extensions: { "payment-identifier": { info: { required: false }, schema: {} } } };
    const r = refusing(402, code)();
    r.headers.set("PAYMENT-REQUIRED", encode(offer));
    r.headers.set("Quittance-Quote", this.quote);
    return r;
  }

  fetch = async (_: unknown, init?: RequestInit): Promise<Response> => {
    const headers = new Headers(init?.headers);
    if (!headers.has("PAYMENT-SIGNATURE")) {
      this.unpaid++;
      return this.ask();
    }
    this.paid.push(headers);
    const answer = (this.answers.length > 1 ? this.answers.shift() : this.answers[0])?.(this);
    if (answer instanceof Error || !answer) throw answer ?? new Error("no answer");
    return answer;
  };
}

const refusing = (status: number, code: string) => () =>
  new Response(JSON.stringify({ code, title: "t", status, retryable: true, final: false }), { status, headers: { "content-type": "application/problem+json" } });
const settled = () => new Response("the page", { status: 201, headers: { "Quittance-Outcome": "settled", "Quittance-Receipt": "https://q.example/r/t" } });
const breaking = () => new TypeError("the connection broke");

class Signer {
  signed = 0;
  until = Date.now() / 1000 + 3600;

  sign = async (offered: Required): Promise<PaymentPayload> => {
    this.signed++;
    const [accepted] = offered.accepts;
    assert.ok(accepted);
    const nonce = `0x${String(this.signed).padStart(64, "0")}`;
    const authorization = { from: "w-1", to: accepted.payTo, value: accepted.amount, validAfter: "0", validBefore: String(Math.floor(this.until)), nonce };
    return { x402Version: 2, accepted, payload: { signature: "0x", authorization } };
  };
}

const buy = (p: Payer, key: string, body = '{"sku":2}') => p.fetch(key, "http://shop.example/buy", { method: "POST", body });

test("what is sent again after lost answers and a restart is the same", async () => {
  const till = new Till(breaking, refusing(503, "unavailable"), refusing(409, "payment_in_flight"), breaking);
  const dir = folder();
  const s = new Signer();
  const payer = (patienceMs: number) => new Payer({ store: new FileIntents(dir), sign: s.sign, fetch: till.fetch, patienceMs });
  assert.ok((await thrown(buy(payer(300), "order-8"))) instanceof PaymentOpen);
  till.answers = [settled, () => new Error("asked again")];
  for (const replayed of [false, true]) {
    const got = await buy(payer(5000), "order-8");
    assert.equal(got.status, 201);
    assert.equal(await got.text(), "the page");
    assert.equal(paymentOf(got).replayed, replayed);
    assert.equal(paymentOf(got).outcome, "settled");
  }
  assert.equal(s.signed, 1);
  assert.equal(till.unpaid, 1);
  assert.ok(till.paid.length >= 4);
  for (const name of ["Quittance-Payment-Id", "PAYMENT-SIGNATURE", "Quittance-Quote"]) {
    assert.equal(new Set(till.paid.map((h) => h.get(name))).size, 1, name);
  }
  const sent = decode<PaymentPayload>(till.paid[0]?.get("PAYMENT-SIGNATURE") ?? null);
  assert.equal(sent && identifierOf(sent), till.paid[0]?.get("Quittance-Payment-Id"));
  assert.ok(readdirSync(dir).length > 1);
});

test("what cannot be stored is not sent", async () => {
  const till = new Till(settled);
  const dir = folder();
  writeFileSync(path.join(dir, "file"), "");
  const p = new Payer({ store: new FileIntents(path.join(dir, "file", "x")), sign: new Signer().sign, fetch: till.fetch });
  const err = await thrown(buy(p, "k"));
  assert.ok(err instanceof NotStored || (err as NodeJS.ErrnoException).code === "ENOTDIR", String(err));
  const full = { get: async () => undefined, put: async (name: string, value: string) => (name.includes("authorization") ? Promise.reject(new Error("full")) : value) };
  assert.ok((await thrown(buy(new Payer({ store: full, sign: new Signer().sign, fetch: till.fetch }), "k"))) instanceof NotStored);
  assert.equal(till.paid.length, 0);
});

test("a quote is signed for once, and a key is for one request", async () => {
  const till = new Till(settled);
  const s = new Signer();
  const p = new Payer({ store: new FileIntents(folder()), sign: s.sign, fetch: till.fetch });
  await buy(p, "order-8");
  assert.ok((await thrown(buy(p, "order-9"))) instanceof OtherPurchase);
  assert.ok((await thrown(buy(p, "order-8", "another"))) instanceof OtherPurchase);
  assert.equal(s.signed, 1);
});

test("signing again waits until the old one is dead, and has an end", async () => {
  const again = (till: Till) => till.ask("sign_again");
  const s = new Signer();
  s.until = Date.now() / 1000 + 2;
  const till = new Till(again, again, settled);
  const p = new Payer({ store: new FileIntents(folder()), sign: s.sign, fetch: till.fetch });
  assert.equal((await buy(p, "k")).status, 201);
  assert.equal(s.signed, 2);
  assert.ok(Date.now() / 1000 >= Math.floor(s.until));
  assert.equal(new Set(till.paid.map((h) => h.get("Quittance-Payment-Id"))).size, 1);

  s.until = 1;
  const greedy = new Payer({ store: new FileIntents(folder()), sign: s.sign, fetch: new Till(again).fetch });
  assert.ok((await thrown(buy(greedy, "k"))) instanceof AskedAgain);
  const bare = new Payer({ store: new FileIntents(folder()), sign: s.sign, fetch: new Till((t) => t.ask()).fetch });
  assert.ok((await thrown(buy(bare, "k"))) instanceof AskedAgain);
});

test("final refusals are given, and pages of something between are not answers", async () => {
  for (const [status, code] of [[409, "payment_conflict"], [410, "payment_id_spent"], [422, "invalid"]] as const) {
    const till = new Till(refusing(status, code));
    const err = await thrown(buy(new Payer({ store: new FileIntents(folder()), sign: new Signer().sign, fetch: till.fetch }), "k"));
    assert.ok(err instanceof PaymentRefused && err.document.code === code && err.status === status, String(err));
    assert.equal(till.paid.length, 1);
  }
  const till = new Till(() => new Response("log in to the network"), settled);
  assert.equal(await (await buy(new Payer({ store: new FileIntents(folder()), sign: new Signer().sign, fetch: till.fetch }), "k")).text(), "the page");
});

test("of many at once all send what one of them signed", async () => {
  const till = new Till(settled);
  const dir = folder();
  const s = new Signer();
  await Promise.all(Array.from({ length: 16 }, () => buy(new Payer({ store: new FileIntents(dir), sign: s.sign, fetch: till.fetch }), "k")));
  assert.equal(new Set(till.paid.map((h) => h.get("PAYMENT-SIGNATURE"))).size, 1);
});
