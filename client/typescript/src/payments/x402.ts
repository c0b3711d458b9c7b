// What a payer and a gateway say to each other: x402 version 2 over HTTP, as the npm
// packages @x402/* 2.27 speak it, and Quittance's own headers beside it. Web APIs only.

/** x402's headers; each holds base64 of JSON. */
export const requiredHeader = "PAYMENT-REQUIRED";
export const signatureHeader = "PAYMENT-SIGNATURE";
export const responseHeader = "PAYMENT-RESPONSE";

/** Our own. */
export const paymentIdHeader = "Quittance-Payment-Id";
export const quoteHeader = "Quittance-Quote";
export const outcomeHeader = "Quittance-Outcome";
export const replayedHeader = "Quittance-Replayed";
export const orderHeader = "Quittance-Order";
export const receiptHeader = "Quittance-Receipt";
export const chargedHeader = "Quittance-Charged";

/** x402's extension that carries a payment id. */
export const paymentIdentifier = "payment-identifier";

/** The syntax of payment ids, x402's and ours. */
export const paymentIdPattern = /^[A-Za-z0-9_-]{16,128}$/;

/** One way to pay. amount is in the asset's smallest unit. */
export interface Requirements {
  scheme: string;
  network: `${string}:${string}`;
  asset: string;
  amount: string;
  payTo: string;
  maxTimeoutSeconds: number;
  extra: Record<string, unknown>;
}

/** What a 402 asks for. */
export interface Required {
  x402Version: number;
  error?: string;
  resource: { url: string; description?: string; mimeType?: string };
  accepts: Requirements[];
  extensions?: Record<string, unknown>;
}

/** A payment: the way that was chosen, and what was signed for it. */
export interface PaymentPayload {
  x402Version: number;
  resource?: { url: string; description?: string; mimeType?: string };
  accepted: Requirements;
  payload: Record<string, unknown>;
  extensions?: Record<string, unknown>;
}

/** An EIP-3009 authorization, of scheme "exact" on EVM networks. */
export interface Authorization {
  from: string;
  to: string;
  value: string;
  validAfter: string;
  validBefore: string;
  nonce: string;
}

/** The authorization of a payload; undefined where it holds none. */
export function authorizationOf(p: PaymentPayload): (Authorization & { signature: string }) | undefined {
  const { authorization, signature } = p.payload as { authorization?: Partial<Authorization>; signature?: unknown };
  if (typeof authorization !== "object" || authorization === null) return undefined;
  for (const name of ["from", "to", "value", "validBefore", "nonce"] as const) {
    if (typeof authorization[name] !== "string" || authorization[name] === "") return undefined;
  }
  return { ...(authorization as Authorization), signature: typeof signature === "string" ? signature : "" };
}

/** Whether two ways to pay move the same money to the same recipient. */
export function sameMoney(a: Requirements, b: Requirements): boolean {
  const evm = a.network.startsWith("eip155:");
  const same = (x: string, y: string) => x === y || (evm && x.toLowerCase() === y.toLowerCase());
  return a.scheme === b.scheme && a.network === b.network && a.amount === b.amount && same(a.asset, b.asset) && same(a.payTo, b.payTo);
}

export function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let i = 0; i < bytes.length; i += 0x8000) text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  return btoa(text);
}

export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}

/** Writes a header's value. */
export function encode(v: unknown): string {
  return toBase64(new TextEncoder().encode(JSON.stringify(v)));
}

/** Reads a header's value; undefined where it is no base64 of a JSON object. */
export function decode<T>(header: string | null): T | undefined {
  if (!header) return undefined;
  try {
    const v: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(fromBase64(header)));
    return typeof v === "object" && v !== null && !Array.isArray(v) ? (v as T) : undefined;
  } catch {
    return undefined;
  }
}

/** The payment id that a payload carries. */
export function identifierOf(p: PaymentPayload): string {
  const x = p.extensions?.[paymentIdentifier] as { info?: { id?: unknown } } | undefined;
  return typeof x?.info?.id === "string" ? x.info.id : "";
}

/** Writes a payment id into a payload, where the 402 offers the extension. */
export function identify(p: PaymentPayload, offered: Record<string, unknown> | undefined, id: string): PaymentPayload {
  const x = (p.extensions?.[paymentIdentifier] ?? offered?.[paymentIdentifier]) as { info?: object } | undefined;
  if (typeof x !== "object" || x === null) return p;
  return { ...p, extensions: { ...p.extensions, [paymentIdentifier]: { ...x, info: { required: false, ...x.info, id } } } };
}

export async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return [...new Uint8Array(await crypto.subtle.digest("SHA-256", bytes))].map((b) => b.toString(16).padStart(2, "0")).join("");
}
