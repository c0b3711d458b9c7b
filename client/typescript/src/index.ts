/**
 * The guard that an agent puts around its side-effecting calls.
 *
 *     const client = new Client({ url, token });
 *     const run = await client.open("invoice-INV-9", { agent: "payer" });
 *     const out = await run.do("send_payment", args, (call) => bank.pay(call.arguments, call.vendorKey));
 *
 * The intent is durable before the call is performed, and what became of it is recorded
 * afterwards. After a crash the same code runs again: what is known is replayed, and what
 * is not known pauses the run (Paused) until somebody has found out.
 */
export { Client, type ClientOptions } from "./client.js";
export type { Log } from "./deliver.js";
export { handed, type Handed } from "./handed.js";
export { callDigest } from "./digest.js";
export { Outcome, Unrecorded, type Context, type DoOptions } from "./outcome.js";
export { JSONNumber, parse, RawJSON, stringify } from "./json.js";
export { Call, reference, Referenced, Refused, TooLate, type Perform } from "./perform.js";
export { isProblem, NoAnswer, Paused, Problem, type Code, type ProblemDocument, type WaitingFor } from "./problem.js";
export type { Run, RunOptions, RunView, Ending } from "./run.js";
export { answerLookups, type Hit, type Look, type Question, type Seen } from "./lookups.js";
