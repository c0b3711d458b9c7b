import assert from "node:assert/strict";
import { test } from "node:test";

import { generateText, stepCountIs, streamText, tool } from "ai";
import { MockLanguageModelV3, simulateReadableStream } from "ai/test";
import { z } from "zod";

import { currentCall, guardTools } from "../src/adapters/ai.js";
import { Paused, Refused } from "../src/index.js";
import { decide, invoice, newRun, stop, thrown } from "./world.js";

type Streamed = Awaited<ReturnType<MockLanguageModelV3["doStream"]>>["stream"];
type Part = Streamed extends ReadableStream<infer P> ? P : never;
type Called = { id: string; tool: string; input: unknown };

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** A model that says one thing after the other: tool calls, or a text. */
function scripted(...turns: (Called[] | string)[]): MockLanguageModelV3 {
  const left = [...turns];
  const next = () => {
    const turn = left.shift();
    assert.ok(turn !== undefined, "the model was asked once more than it should be");
    const content =
      typeof turn === "string"
        ? [{ type: "text" as const, text: turn }]
        : turn.map((c) => ({ type: "tool-call" as const, toolCallId: c.id, toolName: c.tool, input: JSON.stringify(c.input) }));
    const unified = typeof turn === "string" ? ("stop" as const) : ("tool-calls" as const);
    return { content, finishReason: { unified, raw: undefined }, usage, warnings: [] };
  };
  return new MockLanguageModelV3({
    doGenerate: async () => next(),
    doStream: async () => {
      const { content, finishReason } = next();
      const chunks: Part[] = [{ type: "stream-start", warnings: [] }];
      for (const part of content) {
        if (part.type === "tool-call") chunks.push(part);
        else chunks.push({ type: "text-start", id: "t" }, { type: "text-delta", id: "t", delta: part.text }, { type: "text-end", id: "t" });
      }
      chunks.push({ type: "finish", finishReason, usage });
      return { stream: simulateReadableStream({ chunks }) };
    },
  });
}

const schema = z.object({ vendor: z.string(), invoice: z.string(), amount: z.string(), currency: z.string() });

function payTool(perform: () => unknown) {
  return tool({ description: "Pays", inputSchema: schema, execute: async () => await perform() });
}

test("a tool is called once, and replayed to the run that begins again", async () => {
  const run = await newRun();
  const args = invoice();
  const seen: unknown[] = [];
  const tools = { pay: payTool(() => (seen.push([currentCall()?.vendorKey, currentCall()?.arguments]), { payment: "po_1" })) };
  for (const id of ["call_1", "call_1", "call_9"]) {
    // The second has the id of the first: a retry. The third is another call.
    const model = scripted([{ id, tool: id === "call_9" ? "read" : "pay", input: args }], "done");
    const guarded = guardTools(run, { ...tools, read: payTool(() => "balance") });
    const result = await generateText({ model, tools: guarded, prompt: "pay", stopWhen: stepCountIs(5) });
    assert.equal(result.text, "done");
    assert.deepEqual(
      result.steps[0]?.toolResults.map((r) => r.output),
      [id === "call_9" ? "balance" : { payment: "po_1" }],
    );
  }
  assert.equal(seen.length, 1);
  assert.match(String((seen[0] as unknown[])[0]), /^qt_/);
  assert.deepEqual((seen[0] as unknown[])[1], args);
});

for (const way of ["generateText", "streamText"] as const) {
  test(`a pause stops ${way}, and the model never hears of it`, async () => {
    const run = await newRun();
    const args = invoice();
    const model = scripted([{ id: "call_1", tool: "pay", input: args }], "I shall try again");
    const tools = guardTools(run, { pay: payTool(() => Promise.reject(new Error("reset"))) });
    let steps = 0;
    const call = { model, tools, prompt: "pay", stopWhen: stepCountIs(5), onStepFinish: () => void steps++ };
    const err = await thrown(way === "generateText" ? generateText(call) : drained(streamText({ ...call, onError: () => {} })));
    assert.ok(err instanceof Paused, String(err));
    assert.equal(way === "generateText" ? model.doGenerateCalls.length : model.doStreamCalls.length, 1);
    assert.equal(steps, 0, "a step that did not end can be saved");
    // Also when it is the last step that is asked for.
    const one = guardTools(run, { pay: payTool(() => assert.fail("performed")) });
    const last = await thrown(generateText({ model: scripted([{ id: "call_2", tool: "pay", input: args }]), tools: one, prompt: "pay" }));
    assert.ok(last instanceof Paused, String(last));

    await decide(err.waitingFor[0]?.effect_id ?? "", "taken", { reference: `po_${args.invoice}`, result: { payment: "po_2" } });
    await run.wait();
    const again = scripted([{ id: "call_7", tool: "pay", input: args }], "paid");
    const result = await generateText({ model: again, tools: one, prompt: "pay", stopWhen: stepCountIs(5) });
    assert.deepEqual(
      result.steps[0]?.toolResults.map((r) => r.output),
      [{ payment: "po_2" }],
    );
  });
}

test("a definite no is told to the model as an answer", async () => {
  const run = await newRun();
  const args = invoice();
  const model = scripted([{ id: "c", tool: "pay", input: args }], "ok");
  const tools = guardTools(run, { pay: payTool(() => Promise.reject(new Refused({ code: "card_declined" }))) });
  const result = await generateText({ model, tools, prompt: "pay", stopWhen: stepCountIs(5) });
  assert.deepEqual(
    result.steps[0]?.toolResults.map((r) => r.output),
    [{ refused: { code: "card_declined" } }],
  );
});

test("what a person stopped is told to the model as something not to be done", async () => {
  const run = await newRun();
  const args = invoice();
  const tools = guardTools(run, { pay_quick: payTool(() => Promise.reject(new Error("reset"))) });
  const call = (model: MockLanguageModelV3) => generateText({ model, tools, prompt: "pay", stopWhen: stepCountIs(5) });
  const err = await thrown(call(scripted([{ id: "c", tool: "pay_quick", input: args }])));
  assert.ok(err instanceof Paused);
  await stop(err.waitingFor[0]?.effect_id ?? "");
  await run.wait();
  const result = await call(scripted([{ id: "d", tool: "pay_quick", input: args }], "ok"));
  assert.match(JSON.stringify(result.steps[0]?.toolResults[0]?.output), /cancelled.*must not be done/);
});

test("two identical calls of one answer are two", async () => {
  const run = await newRun();
  let sent = 0;
  const input = { to: run.id };
  const tools = { send: tool({ inputSchema: z.object({ to: z.string() }), execute: async () => ++sent }) };
  const model = scripted([{ id: "a", tool: "send", input }, { id: "b", tool: "send", input }], "done");
  const result = await generateText({ model, tools: guardTools(run, tools), prompt: "send twice", stopWhen: stepCountIs(5) });
  assert.equal(result.text, "done");
  assert.equal(sent, 2);
});

test("the last of several results counts", async () => {
  const run = await newRun();
  const tools = {
    send: tool({
      inputSchema: z.object({ to: z.string() }),
      async *execute() {
        yield "sending";
        yield "sent";
      },
    }),
  };
  const model = scripted([{ id: "a", tool: "send", input: { to: run.id } }], "done");
  const result = await generateText({ model, tools: guardTools(run, tools), prompt: "send", stopWhen: stepCountIs(5) });
  assert.deepEqual(
    result.steps[0]?.toolResults.map((r) => r.output),
    ["sent"],
  );
});

test("what a tool tells the model in its own way stays so, and a tool without execute is left alone", async () => {
  const run = await newRun();
  const sent = tool({
    inputSchema: z.object({ to: z.string() }),
    execute: async () => ({ id: 7 }),
    toModelOutput: ({ output }) => ({ type: "text", value: `sent as ${output.id}` }),
  });
  const asked = tool({ inputSchema: z.object({ question: z.string() }), outputSchema: z.string() });
  const tools = guardTools(run, { send: sent, ask: asked });
  assert.equal(tools.ask, asked);
  const model = scripted([{ id: "a", tool: "send", input: { to: run.id } }], "done");
  await generateText({ model, tools, prompt: "send", stopWhen: stepCountIs(5) });
  assert.match(JSON.stringify(model.doGenerateCalls[1]?.prompt), /"type":"text","value":"sent as 7"/);
});

async function drained(result: { fullStream: AsyncIterable<{ type: string; error?: unknown }> }): Promise<void> {
  for await (const part of result.fullStream) if (part.type === "error") throw part.error;
}
