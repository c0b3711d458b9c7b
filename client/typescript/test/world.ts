// The server that the tests talk to, and what stands between. script/test starts it by
// way of `go test ./client/conformance`, which says where it is.
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { after } from "node:test";

import { Client, type ClientOptions, type Run } from "../src/index.js";

function need(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run these tests by go test ./client/conformance -run TypeScript`);
  return value;
}

export const url = need("QUITTANCE_URL");
export const token = need("QUITTANCE_TOKEN");
const person = new Client({ url, token: need("QUITTANCE_PERSON_TOKEN") });

/** A folder that is gone after the tests. */
export function folder(): string {
  const dir = mkdtempSync(path.join(tmpdir(), "quittance-ts-"));
  after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** A client with a spool of its own. */
export function newClient(options: Partial<ClientOptions> = {}): Client {
  const client = new Client({ url, token, spool: folder(), patienceMs: 10_000, ...options });
  after(() => client.close());
  return client;
}

/** A run that nobody else has. */
export async function newRun(client = newClient(), leaseSeconds = 60): Promise<Run> {
  return await client.open(`run-${randomUUID()}`, { agent: "bot", leaseSeconds });
}

export function invoice() {
  return { vendor: "ACME Tools", invoice: `INV-${randomUUID()}`, amount: "4200.00", currency: "USD" };
}

/** Arguments of a call without a business key: two equal ones that are open overlap, in any run. */
export function letter() {
  return { to: randomUUID() };
}

/** An effect as people read it. */
export async function effect(id: string): Promise<Record<string, unknown>> {
  return await person.call("GET", `/v1/effects/${id}`);
}

/** What a person says about an effect, whatever its version is by now. */
export async function decide(id: string, verdict: string, more: Record<string, unknown> = {}): Promise<void> {
  const { version } = await effect(id);
  await person.call("POST", `/v1/effects/${id}/decision`, {
    decision_id: randomUUID(),
    version,
    verdict,
    note: "looked at the bank",
    ...more,
  });
}

/** Has a person stop an effect for good, once it can no longer land. */
export async function stop(id: string): Promise<void> {
  const { moment } = await effect(id);
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, Date.parse(String(moment)) - Date.now() + 50)));
  await decide(id, "stop");
}

/** What a promise is rejected with. */
export async function thrown(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (err) {
    return err;
  }
  throw new Error("nothing was thrown");
}

/**
 * What a fault does to a request of a route: it never arrives, or it is acted upon and the
 * connection breaks, or nothing more is ever heard.
 */
export type Fault = "drop_request" | "drop_answer" | "silent";

/** Stands between a client and the server, and fails in the ways that a network does. */
export class Gate {
  url = "";
  /** The requests that arrived: METHOD /path. */
  readonly seen: string[] = [];
  #faults: { route: RegExp; fault: Fault; left: number }[] = [];
  #server = http.createServer((q, a) => void this.#serve(q, a));

  static async open(): Promise<Gate> {
    const gate = new Gate();
    await new Promise<void>((resolve) => gate.#server.listen(0, "127.0.0.1", resolve));
    gate.url = `http://127.0.0.1:${(gate.#server.address() as AddressInfo).port}`;
    after(() => gate.#server.close().closeAllConnections());
    return gate;
  }

  /** Lets the next requests of a route fail. */
  fail(route: RegExp, fault: Fault, times = 1): void {
    this.#faults.push({ route, fault, left: times });
  }

  heal(): void {
    this.#faults = [];
  }

  async #serve(q: http.IncomingMessage, a: http.ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of q) chunks.push(chunk as Buffer);
    const line = `${q.method} ${q.url}`;
    this.seen.push(line);
    const met = this.#faults.find((f) => f.left > 0 && f.route.test(line));
    if (met) met.left--;
    if (met?.fault === "drop_request") return void q.socket.destroy();
    const answer = await fetch(url + q.url, {
      method: q.method ?? "GET",
      headers: { authorization: String(q.headers.authorization), "content-type": "application/json" },
      ...(chunks.length > 0 && { body: Buffer.concat(chunks) }),
    });
    const body = Buffer.from(await answer.arrayBuffer());
    if (met?.fault === "silent") return;
    if (met?.fault === "drop_answer") return void q.socket.destroy();
    a.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
    a.end(body);
  }
}
