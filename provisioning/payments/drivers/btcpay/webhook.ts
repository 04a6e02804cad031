/** What BTCPay Server calls us with: an event of an invoice, signed by the secret of the webhook. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { ProcessorWebhook, WebhookSubject } from '../driver.ts';

/** Undefined if it was not signed with that secret. */
export function readWebhook(secret: string, { headers, body }: ProcessorWebhook): WebhookSubject | undefined {
  const [, signature = ''] = /^sha256=([0-9a-f]{64})$/i.exec(headers['btcpay-sig'] ?? '') ?? [];
  const given = Buffer.from(signature, 'hex');
  const wanted = createHmac('sha256', secret).update(body).digest();
  if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) return undefined;
  return namedIn(body);
}

/** Events of other things than invoices name none, and neither does a test. */
function namedIn(body: Buffer): WebhookSubject {
  try {
    const { invoiceId, metadata } = JSON.parse(body.toString()) as Record<string, unknown>;
    const { orderId } = (metadata ?? {}) as Record<string, unknown>;
    if (typeof invoiceId === 'string' && typeof orderId === 'string')
      return { orderNumber: orderId, reference: invoiceId };
  } catch {
    // It was signed, and says nothing that could be understood: so there is nothing to do.
  }
  return {};
}
