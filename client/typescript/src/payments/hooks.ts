// The shapes of x402's own hooks, as x402ResourceServer of @x402/core 2.27 has them, so
// that nobody needs that package who does not use it.
import type { PaymentPayload, Requirements } from "./x402.js";

type Loose = { readonly [name: string]: unknown };

export interface HookContext {
  readonly paymentPayload: Loose;
  readonly requirements: Loose;
  readonly transportContext?: unknown;
}
export interface Settlement {
  success: boolean;
  transaction: string;
  network: string;
  payer?: string;
  errorReason?: string;
}
type Abort = { abort: true; reason: string };
type Skip<T> = { skip: true; result: T };

/** An x402ResourceServer. */
export interface ResourceServer {
  onBeforeVerify(hook: (c: HookContext) => Promise<void | Abort | Skip<{ isValid: boolean; payer?: string }>>): unknown;
  onAfterVerify(
    hook: (c: HookContext & { readonly result: { readonly isValid: boolean; readonly invalidReason?: string } }) => Promise<
      void | Abort | { skipHandler: true; response?: { contentType?: string; body?: unknown } }
    >,
  ): unknown;
  onVerifyFailure(hook: (c: HookContext & { readonly error: Error }) => Promise<void>): unknown;
  onBeforeSettle(hook: (c: HookContext & { readonly phase: string }) => Promise<void | Abort | Skip<Settlement>>): unknown;
  onAfterSettle(hook: (c: HookContext & { readonly result: Settlement }) => Promise<void>): unknown;
  onSettleFailure(hook: (c: HookContext & { readonly error: Error }) => Promise<void>): unknown;
  onVerifiedPaymentCanceled(hook: (c: HookContext & { readonly reason: string; readonly responseStatus?: number }) => Promise<void>): unknown;
}

/** What x402 gives its hooks of an HTTP request. */
export interface Transport {
  request?: { paymentHeader?: string; adapter?: { getHeader(name: string): string | undefined } };
  responseBody?: Uint8Array;
  responseHeaders?: Record<string, string>;
}

export function paymentHeaderOf(c: HookContext): string {
  const r = (c.transportContext as Transport | undefined)?.request;
  return r?.paymentHeader ?? r?.adapter?.getHeader("payment-signature") ?? "";
}

export type { PaymentPayload, Requirements };
