// What the guard adds to the server's own time per call: begin and finish of one guarded
// call against the same two requests, written once and sent over one open socket by
// nothing but net. Both are measured in turns, so that a busy machine slows both.
//
//   make bench-typescript
import { randomUUID } from "node:crypto";
import net from "node:net";

import { Client, stringify } from "../src/index.js";

const rounds = Number(process.argv[2] ?? 2000);
const url = new URL(process.env.QUITTANCE_URL ?? "http://127.0.0.1:8080");
const token = process.env.QUITTANCE_TOKEN ?? "";

const socket = net.connect({ host: url.hostname, port: Number(url.port), noDelay: true });

/** Sends one request that is written already and gives the answer's body. */
function bare(text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let got = "";
    const more = (chunk: Buffer) => {
      got += chunk.toString();
      const head = got.indexOf("\r\n\r\n");
      if (head < 0) return;
      const length = Number(/content-length: (\d+)/i.exec(got.slice(0, head))?.[1]);
      if (Buffer.byteLength(got) < Buffer.byteLength(got.slice(0, head)) + 4 + length) return;
      socket.off("data", more);
      resolve(got.slice(head + 4));
    };
    socket.once("error", reject);
    socket.on("data", more);
    socket.write(text);
  });
}

function post(path: string, body: unknown): string {
  const text = stringify(body);
  return `POST ${path} HTTP/1.1\r\nHost: ${url.host}\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
}

const client = new Client({ url: url.href, token });
const guarded = await client.open(`bench-${randomUUID()}`, { agent: "bench" });
const plain = `bench-${randomUUID()}`;
const { lease } = (await client.call("PUT", `/v1/runs/${plain}`, { agent: "bench", worker: "bench", attempt_id: "a" })) as { lease: { token: string } };

const withGuard: number[] = [];
const without: number[] = [];
for (let i = 0; i < rounds; i++) {
  const args = () => ({ vendor: "ACME Tools", invoice: randomUUID(), amount: "4200.00", currency: "USD" });
  const one = args();
  let from = performance.now();
  await guarded.do("bench", one, () => ({ payment_id: "po_1" }));
  withGuard.push(performance.now() - from);

  const begin = post("/v1/effects", { run_id: plain, lease: lease.token, attempt_id: `a${i}`, tool: "bench", arguments: args(), occurrence: 1 });
  from = performance.now();
  const begun = JSON.parse(await bare(begin)) as { effect_id: string; fence: number };
  let took = performance.now() - from;
  const finish = post(`/v1/effects/${begun.effect_id}/finish`, { fence: begun.fence, outcome: "taken", result: { payment_id: "po_1" } });
  from = performance.now();
  await bare(finish);
  took += performance.now() - from;
  without.push(took);
}
socket.destroy();
client.close();

const at = (list: number[], q: number) => list.sort((a, b) => a - b)[Math.floor(list.length * q)] ?? NaN;
const ms = (n: number) => n.toFixed(3).padStart(8);
console.log(`${rounds} calls, each a begin and a finish, in milliseconds`);
console.log(`                  median      p90      p99`);
for (const [name, list] of [["guarded", withGuard], ["bare requests", without]] as const) {
  console.log(`${name.padEnd(15)} ${ms(at(list, 0.5))} ${ms(at(list, 0.9))} ${ms(at(list, 0.99))}`);
}
console.log(`added           ${ms(at(withGuard, 0.5) - at(without, 0.5))}   (at the median; the aim is at most 1)`);
