// Pays the invoices of a file, each exactly once, however often it is killed and started
// again. A model chooses the next payment; here it is a scripted one.
//
//     QUITTANCE_URL=http://127.0.0.1:8080 QUITTANCE_TOKEN=... \
//       node dist/agent.js --run payday-2026-06 --bank http://127.0.0.1:9090 invoices.json
//
// The file holds a JSON list of {"vendor", "invoice", "amount", "currency"}, amounts in
// the currency's smallest unit. The agent exits with 3 when a person has to find something
// out first; started again, it goes on where it stood.
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";

import { generateText, tool, type ModelMessage } from "ai";
import { Client, isProblem, Paused, type Run } from "quittance";
import { currentCall, guardTools } from "quittance/ai";
import { z } from "zod";

import { pay } from "./bank.js";
import { scriptedModel } from "./model.js";

/** Tells a supervisor that starting again at once is of no use. */
const exitPaused = 3;

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    run: { type: "string" }, // the run's own name; the same name goes on with the same run
    bank: { type: "string", default: "http://127.0.0.1:9090" },
    tool: { type: "string", default: "send_payment" }, // what the policy calls a payment
    spool: { type: "string" }, // where outcomes wait that cannot be delivered
    lease: { type: "string", default: "60" }, // seconds that a dead agent keeps its run
    wait: { type: "boolean", default: false }, // wait for a person instead of exiting
  },
});
if (!options.run || !positionals[0]) {
  console.error("usage: agent.js --run NAME [--bank URL] [--wait] INVOICES.json");
  process.exit(2);
}

async function main(runId: string, invoices: string): Promise<number> {
  const client = new Client({
    url: process.env.QUITTANCE_URL ?? "http://127.0.0.1:8080",
    token: process.env.QUITTANCE_TOKEN ?? "",
    ...(options.spool && { spool: options.spool }),
  });
  const lease = Number(options.lease);
  try {
    const run = await client.open(runId, { agent: "invoice-agent", leaseSeconds: lease, waitHeldMs: (lease + 5) * 1000 });
    run.releaseOnSignal();
    console.log("the run is open");
    try {
      await payAll(run, invoices);
      await run.close();
    } finally {
      await run.release();
    }
  } catch (err) {
    if (err instanceof Paused) {
      console.log(err.message);
      return exitPaused;
    }
    if (!isProblem(err, "run_closed")) throw err;
    console.log("the run is finished already");
  } finally {
    client.close();
  }
  return 0;
}

/** Asks the model for one step after the other, and saves each that is complete. */
async function payAll(run: Run, invoices: string): Promise<void> {
  const started: ModelMessage[] = [{ role: "user", content: invoices }];
  let messages = (run.state as ModelMessage[] | undefined) ?? started;
  const tools = guardTools(run, { [options.tool]: payment });
  const model = scriptedModel(options.tool);
  for (;;) {
    try {
      const step = await generateText({ model, tools, messages });
      messages = [...messages, ...step.response.messages];
      await run.checkpoint(run.turn + 1, messages);
      for (const result of step.toolResults) console.log(JSON.stringify(result.output));
      if (step.finishReason !== "tool-calls") return;
    } catch (err) {
      if (!(err instanceof Paused) || !options.wait) throw err;
      console.log(err.message);
      await run.wait(); // and ask for the same step again
    }
  }
}

const payment = tool({
  description: "Pays one invoice",
  inputSchema: z.object({ vendor: z.string(), invoice: z.string(), amount: z.number().int(), currency: z.string() }),
  execute: async (invoice) => {
    const call = currentCall();
    if (!call) throw new Error("a payment is made by the guard alone");
    return await pay(options.bank, invoice, call);
  },
});

process.exitCode = await main(options.run, readFileSync(positionals[0], "utf8"));
