/**
 * Paying for calls, and selling them, once: the payer's and the gateway's side of x402
 * version 2, on web APIs only.
 */
export { Gateway, type GatewayOptions, type Sold } from "./gateway.js";
export type { ResourceServer } from "./hooks.js";
export {
  AskedAgain, NotStored, OtherPurchase, Payer, PaymentOpen, paymentOf, PaymentRefused, type IntentStore, type PayerOptions, type Sign,
} from "./payer.js";
export type { PaymentPayload, Required, Requirements } from "./x402.js";
