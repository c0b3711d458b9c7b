// A model that needs no network: it calls the tool for the first invoice that it has no
// result of, and says so when there is none left. As a real one, it makes up a new id for
// each call, also for one that it makes again after a restart.
import { randomUUID } from "node:crypto";

import type { LanguageModel } from "ai";

type Model = Exclude<LanguageModel, string> & { specificationVersion: "v3" };
type Prompt = Parameters<Model["doGenerate"]>[0]["prompt"];

export function scriptedModel(tool: string): Model {
  return {
    specificationVersion: "v3",
    provider: "example",
    modelId: "scripted",
    supportedUrls: {},
    doGenerate: async ({ prompt }) => {
      const next = invoices(prompt)[prompt.filter((message) => message.role === "tool").length];
      const usage = {
        inputTokens: { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 0, text: 0, reasoning: 0 },
      };
      if (next === undefined) {
        const content = [{ type: "text" as const, text: "All invoices are paid, or refused by the bank." }];
        return { content, finishReason: { unified: "stop", raw: undefined }, usage, warnings: [] };
      }
      const call = { type: "tool-call" as const, toolCallId: `call_${randomUUID()}`, toolName: tool, input: JSON.stringify(next) };
      return { content: [call], finishReason: { unified: "tool-calls", raw: undefined }, usage, warnings: [] };
    },
    doStream: () => Promise.reject(new Error("this model does not stream")),
  };
}

/** The invoices that the user asked for. */
function invoices(prompt: Prompt): unknown[] {
  for (const message of prompt) {
    if (message.role !== "user") continue;
    for (const part of message.content) if (part.type === "text") return JSON.parse(part.text) as unknown[];
  }
  return [];
}
