/**
 * Guards what a graph of `@langchain/langgraph` does:
 *
 *     const tools = new ToolNode([guardTool(run, tool(payInvoice, { name: "send_payment", schema }))]);
 *     const State = Annotation.Root({ ...MessagesAnnotation.spec, quittance: counts() });
 *     graph.addNode("settle", guardNode(run, async (state, config, guard) => {
 *       const out = await guard.do("close_books", { month: state.month }, close);
 *       return { closed: out.result };
 *     }));
 *
 * A graph goes on in the middle, from its own checkpoint. So which of several identical
 * calls one is follows from the graph's state and not from what this process has seen: for
 * a tool from the messages before it, in a node from the channel `quittance`. A node that is
 * run again, in this process or in the next, makes the same calls.
 *
 * Where the agent has to stop, the graph is interrupted; the interrupt's value says why.
 * Resumed with a Command it makes the call again: what was decided is replayed. Without a
 * checkpointer the result holds the interrupt all the same, and the graph is started again
 * from its beginning, with the same run.
 */
import { Annotation, GraphInterrupt, interrupt } from "@langchain/langgraph";

import { Occurrences } from "../occurrences.js";
import type { DoOptions, Outcome } from "../outcome.js";
import { Refused, type Perform } from "../perform.js";
import { Paused, type WaitingFor } from "../problem.js";
import type { Run } from "../run.js";
import { callTool, cancelled, runOf, stops, type RunSource } from "./common.js";
import { wrap } from "./langchain.js";

export { currentCall } from "./common.js";

/** The value of an interrupt. */
export interface Stopped {
  quittance: "paused" | "stopped";
  run_id: string;
  message: string;
  waiting_for: WaitingFor[];
}

/** The channel of the state that counts identical calls. Name it `quittance`. */
export function counts() {
  return Annotation<Record<string, number>>({
    default: () => ({}),
    reducer: (have, more) => {
      const sum = { ...have };
      for (const [digest, n] of Object.entries(more)) sum[digest] = (sum[digest] ?? 0) + n;
      return sum;
    },
  });
}

/** A guarded tool for a ToolNode. */
export function guardTool<T extends Parameters<typeof wrap>[0]>(source: RunSource, tool: T): T {
  return wrap(tool, (input, config, perform) =>
    interrupting(source, (run) => {
      const callId = config?.toolCall?.id;
      const messages = (config as { state?: { messages?: unknown } } | undefined)?.state?.messages;
      const occurrence = callId && Array.isArray(messages) ? position(run, tool.name, callId, messages as Message[]) : undefined;
      return callTool(run, tool.name, input, perform, { callId, occurrence, signal: config?.signal });
    }),
  );
}

/** As far as a message concerns us. */
interface Message {
  tool_calls?: { name: string; id?: string; args: unknown }[];
  tool_call_id?: string;
  status?: string;
  content?: unknown;
}

/**
 * Which of the identical calls of these messages one is, from 1; undefined when it is not
 * among them. One that had no outcome, because a person stopped it or its arguments were
 * not JSON, has used up nothing: made again it is the same call.
 */
function position(run: Run, name: string, callId: string, messages: Message[]): number | undefined {
  const all = messages.flatMap((m) => m.tool_calls ?? []).filter((c) => c.name === name);
  const at = all.findLastIndex((c) => c.id === callId);
  const call = all[at];
  if (!call) return undefined;
  const unused = messages.filter((m) => m.tool_call_id && (m.status === "error" || m.content === JSON.stringify(cancelled))).map((m) => m.tool_call_id);
  const digest = run.digest(name, call.args);
  return 1 + all.slice(0, at).filter((c) => !unused.includes(c.id) && run.digest(name, c.args) === digest).length;
}

/** What a guarded node makes its calls with. */
export interface NodeGuard {
  /** As {@link Run.do}; the n-th identical call of the node is the same one each time the node is run. */
  do<A, R>(tool: string, args: A, perform: Perform<A, R>, options?: Omit<DoOptions, "callId" | "key" | "occurrence">): Promise<Outcome<R>>;
}

/**
 * A node whose calls keep their places. The state needs the channel `quittance`, made by
 * {@link counts}. Two nodes of one step that make the identical call at once make one call
 * of it: let something in the arguments tell them apart.
 */
export function guardNode<S extends object, C, U extends object | void>(
  source: RunSource,
  node: (state: S, config: C, guard: NodeGuard) => U | Promise<U>,
): (state: S, config: C) => Promise<U & { quittance: Record<string, number> }> {
  return async (state, config) => {
    const before = (state as { quittance?: Record<string, number> }).quittance;
    if (!before) throw new TypeError("the graph's state has no channel quittance: add `quittance: counts()` to it");
    const places = new Occurrences(before);
    const more: Record<string, number> = {};
    const guard: NodeGuard = {
      do: async (tool, args, perform, options) => {
        const digest = runOf(source).digest(tool, args);
        const turn = places.take(digest, undefined, undefined);
        let cameBack = false;
        try {
          const call = (run: Run) => run.do(tool, args, perform, { ...options, occurrence: turn.occurrence });
          const out = await interrupting(source, call);
          cameBack = true;
          return out;
        } catch (err) {
          cameBack = err instanceof Refused;
          throw err;
        } finally {
          turn.end(cameBack);
          if (cameBack) more[digest] = (more[digest] ?? 0) + 1;
        }
      },
    };
    const update = await node(state, config, guard);
    return { ...(update as U), quittance: more };
  };
}

/** Makes a call, again whenever the graph was resumed after an interrupt, and interrupts the graph where it has to stop. */
async function interrupting<T>(source: RunSource, call: (run: Run) => Promise<T>): Promise<T> {
  for (;;) {
    const run = runOf(source);
    try {
      return await call(run);
    } catch (err) {
      if (!stops(err)) throw err;
      stop(run, err as Error);
    }
  }
}

function stop(run: Run, err: Error): void {
  const paused = err instanceof Paused;
  const value: Stopped = {
    quittance: paused ? "paused" : "stopped",
    run_id: run.id,
    message: err.message,
    waiting_for: paused ? err.waitingFor : [],
  };
  try {
    interrupt(value); // returns where the graph was resumed
  } catch (thrown) {
    if (thrown instanceof GraphInterrupt) throw thrown;
    const code = (thrown as { lc_error_code?: string }).lc_error_code;
    if (code === "MISSING_CHECKPOINTER") throw new GraphInterrupt([{ value }]);
    throw err; // outside of a graph
  }
}
