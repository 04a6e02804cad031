/** The TypeScript SDK of Freehold, for Node 20 or newer and browsers. */
export { type FieldFault, FreeholdError } from './errors.ts';
export { Freehold } from './freehold.ts';
export type * from './api.ts';
export { List } from './pages.ts';
export type { Order, WaitOptions } from './servers.ts';
export type { ConfirmationOptions } from './top-ups.ts';
export type { Answer, CallOptions, Input, OperationName, Options, PaymentDemand } from './transport.ts';
export { verifyWebhook, type WebhookEvent } from './webhooks.ts';
