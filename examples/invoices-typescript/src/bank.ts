// The downstream: POST /v1/payments with an Idempotency-Key makes a payment.
import { RawJSON, reference, Refused, type Call } from "quittance";

export interface Invoice {
  vendor: string;
  invoice: string;
  amount: number;
  currency: string;
}

/**
 * Tells the three things apart that matter: it was paid, it was refused for sure, or
 * nobody knows. Only an answer of the bank itself that says so is a refusal; a time-out,
 * a broken connection, a 5xx and a page that is not the bank's are not.
 */
export async function pay(url: string, invoice: Invoice, call: Call) {
  const body = JSON.stringify({ reference: invoice.invoice, payee: invoice.vendor, amount: invoice.amount, currency: invoice.currency });
  call.checkDeadline(); // immediately before it is sent
  const answer = await fetch(`${url}/v1/payments`, {
    method: "POST",
    headers: { "content-type": "application/json", "idempotency-key": call.vendorKey },
    body,
    redirect: "error",
    signal: call.signal,
  });
  const text = await answer.text();
  const said = read(text);
  if (answer.ok && typeof said?.id === "string") return reference(said.id, { payment_id: said.id });
  if (answer.status >= 400 && answer.status < 500 && answer.status !== 408 && typeof said?.code === "string") {
    throw new Refused(new RawJSON(text));
  }
  throw new Error(`the bank answered ${answer.status}`);
}

function read(text: string): { id?: unknown; code?: unknown } | undefined {
  try {
    const v: unknown = JSON.parse(text);
    return typeof v === "object" && v !== null ? v : undefined;
  } catch {
    return undefined;
  }
}
