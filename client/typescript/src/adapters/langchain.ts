/**
 * Guards a tool of `@langchain/core/tools`:
 *
 *     const pay = guardTool(run, tool(payInvoice, { name: "send_payment", schema }));
 *
 * It is a tool like the one that it was made of. A retry with the same tool-call id is the
 * same call. Where the agent has to stop, invoke rejects with Paused or another error of
 * the guard; a loop that hands the errors of tools to the model must let those through (see
 * isStop). In a graph use the one of `quittance/langgraph`, which interrupts it.
 */
import { callTool, runOf, stops, type RunSource } from "./common.js";

export { currentCall } from "./common.js";

/** Whether an error of a guarded tool stops the agent: it must not reach the model. */
export const isStop = stops;

/** As far as a tool of the package concerns us. */
interface Tool {
  name: string;
  invoke: (...args: never[]) => unknown;
}

interface Config {
  toolCall?: { id?: string };
  signal?: AbortSignal;
}

/** How a tool is called within the package, after its input was checked. */
interface Inner {
  _call: (input: unknown, manager: unknown, config: Config | undefined) => unknown;
  responseFormat?: string;
}

export function guardTool<T extends Tool>(source: RunSource, tool: T): T {
  return wrap(tool, (input, config, perform) =>
    callTool(runOf(source), tool.name, input, perform, { callId: config?.toolCall?.id, signal: config?.signal }),
  );
}

/** A tool whose calls go through a function. @internal */
export function wrap<T extends Tool>(tool: T, call: (input: unknown, config: Config | undefined, perform: () => unknown) => Promise<unknown>): T {
  const inner = tool as unknown as Inner;
  if (typeof inner._call !== "function") throw new TypeError(`${tool.name} is not a tool of @langchain/core`);
  const guarded = Object.create(tool) as T & Inner;
  guarded._call = async (input, manager, config) => {
    // A tool that wants one text only has it as a string.
    const args = typeof input === "string" ? { input } : input;
    const result = await call(args, config, async () => content(await inner._call.call(tool, input, manager, config)));
    const pair = inner.responseFormat === "content_and_artifact" && !Array.isArray(result);
    return pair ? [JSON.stringify(result), null] : result;
  };
  return guarded;
}

/** What is recorded of what a tool gave: of a message its content, of a generator what it returns. */
async function content(given: unknown): Promise<unknown> {
  if (typeof given !== "object" || given === null) return given;
  if (Symbol.asyncIterator in given) {
    const events = (given as AsyncGenerator<unknown, unknown>)[Symbol.asyncIterator]();
    for (;;) {
      const { done, value } = await events.next();
      if (done) return value;
    }
  }
  return "lc_direct_tool_output" in given && "content" in given ? given.content : given;
}
