/** Webhooks of BTCPay Server: events of invoices, signed with the secret of the webhook. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { ProcessorWebhook, WebhookSubject } from '../driver.ts';

/** Reads the top-up that a webhook names. @returns undefined without a valid signature */
export function readWebhook(secret: string, { headers, body }: ProcessorWebhook): WebhookSubject | undefined {
  const [, signature = ''] = /^sha256=([0-9a-f]{64})$/i.exec(headers['btcpay-sig'] ?? '') ?? [];
  const given = Buffer.from(signature, 'hex');
  const wanted = createHmac('sha256', secret).update(body).digest();
  if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) return undefined;
  return namedIn(body);
}

/** Tests and events without an invoice name no top-up. */
function namedIn(body: Buffer): WebhookSubject {
  try {
    const { invoiceId, metadata } = JSON.parse(body.toString()) as Record<string, unknown>;
    const { orderId } = (metadata ?? {}) as Record<string, unknown>;
    if (typeof invoiceId === 'string' && typeof orderId === 'string')
      return { orderNumber: orderId, reference: invoiceId };
  } catch {
    // A signed body that is no JSON names no top-up.
  }
  return {};
}
