/** Signatures of deliveries, as Standard Webhooks says (standardwebhooks.com, v1, symmetric). */
import { createHmac, randomBytes } from 'node:crypto';

const PREFIX = 'whsec_';

/** A new secret: 32 bytes, base64. */
export const newWebhookSecret = (): string => PREFIX + randomBytes(32).toString('base64');

/** The headers of a message; one signature for each secret, so that a receiver can change from one to the next. */
export function signedHeaders(
  secrets: readonly string[],
  { id, body, at = new Date() }: { id: string; body: string; at?: Date },
): Record<string, string> {
  const timestamp = Math.floor(at.getTime() / 1000);
  const signature = (secret: string) =>
    createHmac('sha256', Buffer.from(secret.slice(PREFIX.length), 'base64'))
      .update(`${id}.${timestamp}.${body}`)
      .digest('base64');
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': secrets.map((secret) => `v1,${signature(secret)}`).join(' '),
  };
}
