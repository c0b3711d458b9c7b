import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import { AIMessage, HumanMessage, ToolMessage, type BaseMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { Annotation, Command, INTERRUPT, MemorySaver, MessagesAnnotation, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { z } from "zod";

import * as langchain from "../src/adapters/langchain.js";
import { counts, guardNode, guardTool, type Stopped } from "../src/adapters/langgraph.js";
import { Paused, Refused } from "../src/index.js";
import { decide, invoice, letter, newClient, newRun, stop, thrown } from "./world.js";

const schema = z.object({ vendor: z.string(), invoice: z.string(), amount: z.string(), currency: z.string() });

function pay(perform: () => unknown) {
  return tool(async () => await perform(), { name: "pay", description: "Pays", schema });
}

function send(perform: () => unknown) {
  return tool(async () => await perform(), { name: "send", description: "Sends", schema: z.object({ to: z.string() }) });
}

const toolCall = (id: string, name: string, args: Record<string, unknown>) => ({ type: "tool_call" as const, id, name, args });

test("a guarded tool of @langchain/core is a tool, and a retry is the same call", async () => {
  const run = await newRun();
  let paid = 0;
  const guarded = langchain.guardTool(run, pay(() => ({ payment: ++paid, key: langchain.currentCall()?.vendorKey.slice(0, 3) })));
  const args = invoice();
  for (const id of ["call_1", "call_1"]) {
    const message = (await guarded.invoke(toolCall(id, "pay", args))) as unknown as ToolMessage;
    assert.ok(message instanceof ToolMessage);
    assert.equal(message.content, '{"payment":1,"key":"qt_"}');
    assert.equal(message.tool_call_id, id);
  }
  assert.equal(paid, 1);
});

test("its pause is an error, its refusal an answer", async () => {
  const run = await newRun();
  const no = langchain.guardTool(run, send(() => Promise.reject(new Refused("no such address"))));
  assert.deepEqual(await no.invoke(letter()), { refused: "no such address" });
  const failing = langchain.guardTool(run, pay(() => Promise.reject(new Error("reset"))));
  const err = await thrown(failing.invoke(toolCall("c", "pay", invoice())));
  assert.ok(err instanceof Paused && langchain.isStop(err));
});

test("content with an artifact stays both", async () => {
  const run = await newRun();
  const both = tool(async () => ["sent", { id: 7 }], { name: "send", schema: z.object({ to: z.string() }), responseFormat: "content_and_artifact" });
  const args = letter();
  for (let i = 0; i < 2; i++) {
    const message = (await langchain.guardTool(run, both).invoke(toolCall("c", "send", args))) as unknown as ToolMessage;
    assert.deepEqual([message.content, message.artifact], ["sent", { id: 7 }]);
  }
});

/** A graph in which a scripted model calls tools until it says something else. */
function agentGraph(model: (messages: BaseMessage[]) => AIMessage, tools: ToolNode) {
  return new StateGraph(MessagesAnnotation)
    .addNode("model", ({ messages }) => ({ messages: [model(messages)] }))
    .addNode("tools", tools)
    .addEdge("__start__", "model")
    .addConditionalEdges("model", ({ messages }) => ((messages.at(-1) as AIMessage).tool_calls?.length ? "tools" : "__end__"))
    .addEdge("tools", "model");
}

function interrupts(result: unknown): Stopped[] {
  return ((result as { [INTERRUPT]?: { value: Stopped }[] })[INTERRUPT] ?? []).map((i) => i.value);
}

for (const checkpointed of [true, false]) {
  test(`a pause interrupts the graph, ${checkpointed ? "with" : "without"} a checkpointer, and the model never hears of it`, async () => {
    const run = await newRun();
    const args = invoice();
    let asked = 0;
    const model = (messages: BaseMessage[]) => {
      asked++;
      const last = messages.at(-1);
      if (!(last instanceof ToolMessage)) return new AIMessage({ content: "", tool_calls: [toolCall("call_1", "pay", args)] });
      return new AIMessage(`the tool said ${String(last.content)}`);
    };
    let performed = 0;
    const tools = new ToolNode([guardTool(run, pay(() => (performed++, Promise.reject(new Error("reset")))))]);
    const graph = agentGraph(model, tools).compile(checkpointed ? { checkpointer: new MemorySaver() } : {});
    const config = { configurable: { thread_id: run.id } };
    const first = await graph.invoke({ messages: [new HumanMessage("pay")] }, config);
    const [stopped] = interrupts(first);
    assert.deepEqual([stopped?.quittance, stopped?.run_id, asked, performed], ["paused", run.id, 1, 1]);
    if (checkpointed) {
      // Resumed too early it is interrupted again.
      const early = await graph.invoke(new Command({ resume: true }), config);
      assert.equal(interrupts(early)[0]?.quittance, "paused");
    }
    await decide(stopped?.waiting_for[0]?.effect_id ?? "", "taken", { reference: `po_${args.invoice}`, result: { payment: "po_1" } });
    await run.wait();
    const done = checkpointed ? await graph.invoke(new Command({ resume: true }), config) : await graph.invoke({ messages: [new HumanMessage("pay")] }, config);
    assert.equal(done.messages.at(-1)?.content, 'the tool said {"payment":"po_1"}');
    assert.equal(performed, 1);
  });
}

test("an error after which the agent must stop interrupts the graph too", async () => {
  const run = await newRun();
  await run.release();
  const args = letter();
  const model = () => new AIMessage({ content: "", tool_calls: [toolCall("c", "send", args)] });
  const graph = agentGraph(model, new ToolNode([guardTool(run, send(() => assert.fail("performed")))])).compile();
  const [stopped] = interrupts(await graph.invoke({ messages: [new HumanMessage("send")] }));
  assert.equal(stopped?.quittance, "stopped");
  assert.match(stopped?.message ?? "", /lease_lost/);
});

test("a graph that goes on in another process makes the second of two identical calls", async () => {
  const first = await newRun();
  const args = letter();
  let sent = 0;
  const checkpointer = new MemorySaver();
  const config = { configurable: { thread_id: first.id } };
  const model = (messages: BaseMessage[]) => {
    const n = messages.filter((m) => m instanceof ToolMessage).length;
    return n < 2 ? new AIMessage({ content: "", tool_calls: [toolCall(`call_${n}`, "send", args)] }) : new AIMessage("done");
  };
  // Dies with the first call behind it: the graph's checkpoint is all that is left.
  const tools = new ToolNode([guardTool(first, send(() => ++sent))]);
  await agentGraph(model, tools).compile({ checkpointer, interruptAfter: ["tools"] }).invoke({ messages: [new HumanMessage("send twice")] }, config);
  await first.release();

  const second = await newClient().open(first.id, { agent: "bot" });
  const done = await agentGraph(model, new ToolNode([guardTool(second, send(() => ++sent))])).compile({ checkpointer }).invoke(null, config);
  const told = done.messages.filter((m) => m instanceof ToolMessage).map((m) => Number(m.content));
  assert.deepEqual([told, sent], [[1, 2], 2]);
});

test("what a person stopped stays stopped when the model asks for it again", async () => {
  const run = await newRun();
  const args = { ...letter() };
  const model = (messages: BaseMessage[]) => {
    const n = messages.filter((m) => m instanceof ToolMessage).length;
    return n < 2 ? new AIMessage({ content: "", tool_calls: [toolCall(`call_${n}`, "quick", args)] }) : new AIMessage("done");
  };
  let performed = 0;
  const quick = tool(async () => (performed++, Promise.reject(new Error("reset"))), { name: "quick", schema: z.object({ to: z.string() }) });
  const graph = agentGraph(model, new ToolNode([guardTool(run, quick)])).compile({ checkpointer: new MemorySaver() });
  const config = { configurable: { thread_id: run.id } };
  const [stopped] = interrupts(await graph.invoke({ messages: [new HumanMessage("send")] }, config));
  await stop(stopped?.waiting_for[0]?.effect_id ?? "");
  await run.wait();
  const done = await graph.invoke(new Command({ resume: true }), config);
  const told = done.messages.filter((m) => m instanceof ToolMessage).map((m) => String(m.content));
  assert.equal(told.length, 2);
  for (const text of told) assert.match(text, /cancelled.*must not be done/);
  assert.equal(performed, 1);
});

test("a node that is run again makes the same calls", async () => {
  const run = await newRun();
  const to = randomUUID();
  let sent = 0;
  let failures = 2;
  const State = Annotation.Root({ results: Annotation<unknown[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }), quittance: counts() });
  const node = (fails: boolean) =>
    guardNode(run, async (_: typeof State.State, __: unknown, guard) => {
      const results: unknown[] = [];
      for (let n = 0; n < 2; n++) results.push((await guard.do("send", { to }, () => ++sent)).result);
      if (fails && failures-- > 0) throw new Error("the node fails after its calls");
      return { results };
    });
  const retryPolicy = { maxAttempts: 5, initialInterval: 1, jitter: false, logWarning: false };
  const graph = new StateGraph(State)
    .addNode("twice", node(true), { retryPolicy })
    .addNode("again", node(false))
    .addEdge("__start__", "twice")
    .addEdge("twice", "again")
    .compile();
  const done = await graph.invoke({});
  assert.deepEqual([done.results, sent], [[1, 2, 3, 4], 4]);
});

test("a node is interrupted by a pause, and goes on with what was decided", async () => {
  const run = await newRun();
  const args = invoice();
  const State = Annotation.Root({ paid: Annotation<unknown>, quittance: counts() });
  const graph = new StateGraph(State)
    .addNode(
      "pay",
      guardNode(run, async (_: typeof State.State, __: unknown, guard) => ({
        paid: (await guard.do("pay", args, () => Promise.reject(new Error("reset")))).result,
      })),
    )
    .addEdge("__start__", "pay")
    .compile({ checkpointer: new MemorySaver() });
  const config = { configurable: { thread_id: run.id } };
  const [stopped] = interrupts(await graph.invoke({}, config));
  await decide(stopped?.waiting_for[0]?.effect_id ?? "", "taken", { reference: `po_${args.invoice}`, result: "po_1" });
  await run.wait();
  assert.equal((await graph.invoke(new Command({ resume: true }), config)).paid, "po_1");
});

test("a state without the channel is said to lack it", async () => {
  const run = await newRun();
  const State = Annotation.Root({ paid: Annotation<unknown> });
  const graph = new StateGraph(State)
    .addNode("pay", guardNode(run, () => ({ paid: 1 })))
    .addEdge("__start__", "pay")
    .compile();
  await assert.rejects(graph.invoke({}), /no channel quittance/);
});
