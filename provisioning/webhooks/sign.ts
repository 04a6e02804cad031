/** Signatures of messages by Standard Webhooks (standardwebhooks.com, v1, symmetric). */
import { createHmac, randomBytes } from 'node:crypto';

const PREFIX = 'whsec_';

/** Makes a secret of 32 random bytes in base64. */
export const newWebhookSecret = (): string => PREFIX + randomBytes(32).toString('base64');

/** Returns the headers of a message. Each secret gives a signature, so that a receiver can replace its secret. */
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
