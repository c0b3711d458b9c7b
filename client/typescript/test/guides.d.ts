// What the examples of docs/agents.md and README.md take for granted.
import type { Client as C, Run as R } from "quittance";

declare global {
  interface Invoice {
    vendor: string;
    invoice: string;
    amount: string;
    currency: string;
  }
  const url: string;
  const token: string;
  const client: C;
  const run: R;
  const invoice: Invoice;
  const stopping: AbortSignal;
  const bank: { pay(invoice: Invoice, options: { key: string; signal: AbortSignal }): Promise<{ id: string; declined: boolean; code: string }> };
  const desk: { close(ticket: number, key: string): Promise<string> };
  const portal: { search(key: string | undefined, signal: AbortSignal): Promise<{ period: string; number: string; accepted: boolean }[]> };
  const model: Exclude<import("ai").LanguageModel, string>;
  const sendPayment: import("ai").Tool;
  const search: import("ai").Tool;
  const schema: import("zod").ZodObject<{ order: import("zod").ZodString }>;
  const refund: (input: { order: string }) => Promise<string>;
}
