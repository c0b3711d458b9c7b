/**
 * Guards the tools of Vercel's `ai` package, versions 5 and 6:
 *
 *     const guarded = guard(run, { model, tools });
 *     const result = await generateText({ ...guarded, prompt, stopWhen: stepCountIs(20) });
 *
 * Every tool that has an execute goes through the run; those that the policy calls
 * `effect: none` pass. When the run is paused, the model is not asked again: generateText
 * rejects with Paused. Make a new guard for each generateText or streamText.
 */
import { callTool, runOf, stops, type RunSource } from "./common.js";

export { currentCall } from "./common.js";

/** As far as a tool of the package concerns us. */
interface Tool {
  execute?: ((input: never, options: never) => unknown) | undefined;
}

interface ExecuteOptions {
  toolCallId: string;
  abortSignal?: AbortSignal;
}

/** As far as a language model of the package concerns us. */
interface Model {
  doGenerate: (...args: never[]) => unknown;
  doStream: (...args: never[]) => unknown;
}

/**
 * Gives back the model and the tools, guarded. The model is an object; its name alone, a
 * string, would be looked up past the guard.
 */
export function guard<M extends Model, T extends Record<string, Tool>>(source: RunSource, agent: { model: M; tools: T }): { model: M; tools: T } {
  if (typeof agent.model !== "object" || agent.model === null) throw new TypeError("guard needs the model itself, not its name");
  let stopped: unknown;
  const tools = Object.entries(agent.tools).map(([name, tool]) => {
    if (!tool.execute) return [name, tool];
    const execute = async (input: never, options: ExecuteOptions) => {
      try {
        const perform = () => last(tool.execute?.(input, options as never));
        return await callTool(runOf(source), name, input, perform, { callId: options.toolCallId, signal: options.abortSignal });
      } catch (err) {
        if (stops(err)) stopped ??= err;
        throw err;
      }
    };
    return [name, { ...tool, execute }];
  });
  const model = new Proxy(agent.model, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property, target);
      if (typeof value !== "function") return value;
      if (property !== "doGenerate" && property !== "doStream") return value.bind(target);
      return async (...args: unknown[]) => {
        if (stopped) throw stopped;
        return (await value.apply(target, args)) as unknown;
      };
    },
  });
  return { model, tools: Object.fromEntries(tools) as T };
}

/** A tool may give several results, each better than the one before: the last one counts. */
async function last(result: unknown): Promise<unknown> {
  const settled = await result;
  if (typeof settled !== "object" || settled === null || !(Symbol.asyncIterator in settled)) return settled;
  let latest: unknown;
  for await (latest of settled as AsyncIterable<unknown>);
  return latest;
}
