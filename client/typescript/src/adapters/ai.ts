/**
 * Guards the tools of Vercel's `ai` package, version 6:
 *
 *     const result = await generateText({ model, tools: guardTools(run, tools), messages });
 *
 * Every tool that has an execute goes through the run; those that the policy calls
 * `effect: none` pass. A retry with the same tool-call id is the same call. Where the agent
 * has to stop, generateText rejects with Paused or another error of the guard, before the
 * step becomes messages: there is nothing that the model, or a checkpoint, could be told. The
 * stream of streamText fails in the same place.
 *
 * The package ignores what its callbacks throw: save checkpoints after generateText, of one
 * step at a time, and not in onStepFinish.
 */
import { callTool, runOf, stops, type RunSource } from "./common.js";

export { currentCall } from "./common.js";

/** As far as a tool of the package concerns us. */
interface Tool {
  execute?: ((input: never, options: never) => unknown) | undefined;
  toModelOutput?: ((options: never) => unknown) | undefined;
}

interface ExecuteOptions {
  toolCallId: string;
  abortSignal?: AbortSignal;
}

/** What a tool gives in place of a result when the agent has to stop. It never becomes a message. */
class Stopped {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }

  toJSON(): unknown {
    return { stopped: this.error instanceof Error ? this.error.message : String(this.error) };
  }
}

/** The same tools, guarded. */
export function guardTools<T extends Record<string, Tool>>(source: RunSource, tools: T): T {
  return Object.fromEntries(Object.entries(tools).map(([name, tool]) => [name, tool.execute ? guarded(source, name, tool) : tool])) as T;
}

function guarded(source: RunSource, name: string, tool: Tool): Tool {
  return {
    ...tool,
    // What it throws would be told to the model; what it gives goes through toModelOutput.
    execute: async (input: never, options: ExecuteOptions) => {
      try {
        const perform = () => last(tool.execute?.(input, options as never));
        return await callTool(runOf(source), name, input, perform, { callId: options.toolCallId, signal: options.abortSignal });
      } catch (err) {
        if (stops(err)) return new Stopped(err);
        throw err;
      }
    },
    toModelOutput: async (given: { output: unknown }) => {
      const { output } = given;
      if (output instanceof Stopped) throw output.error;
      if (tool.toModelOutput) return await tool.toModelOutput(given as never);
      return typeof output === "string" ? { type: "text", value: output } : { type: "json", value: output };
    },
  };
}

/** A tool may give several results, each better than the one before: the last one counts. */
async function last(result: unknown): Promise<unknown> {
  const settled = await result;
  if (typeof settled !== "object" || settled === null || !(Symbol.asyncIterator in settled)) return settled;
  let latest: unknown;
  for await (latest of settled as AsyncIterable<unknown>);
  return latest;
}
