/** Verification of webhook messages by Standard Webhooks. */

/** A message older or newer than this is refused, because somebody may have kept it. */
const TOLERANCE_SECONDS = 300;

/** An event, as the service delivers it. */
export interface WebhookEvent {
  id: string;
  type: string;
  created_at: string;
  data: Record<string, unknown>;
}

/**
 * Verifies a message, and returns its event. A secret that was rotated signs beside the new one for a day.
 * @param body the exact text of the request
 * @param headers those of the request
 * @param secret `whsec_…`, as the service showed it once
 * @throws Error if a signature, the time or a header is wrong
 */
export async function verifyWebhook(
  body: string,
  headers: Headers | Record<string, string | string[] | undefined>,
  secret: string,
  now: Date = new Date(),
): Promise<WebhookEvent> {
  const header = (name: string) => {
    const value = headers instanceof Headers ? headers.get(name) : headers[name];
    if (typeof value !== 'string') throw new Error(`The header ${name} is missing.`);
    return value;
  };
  const [id, time, signatures] = [header('webhook-id'), header('webhook-timestamp'), header('webhook-signature')];
  if (!(Math.abs(now.getTime() / 1000 - Number(time)) <= TOLERANCE_SECONDS))
    throw new Error('The time of the message is too far from now.');
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', bytesOf(secret.replace(/^whsec_/, '')), algorithm, false, [
    'verify',
  ]);
  const content = new TextEncoder().encode(`${id}.${time}.${body}`);
  for (const signature of signatures.split(' ')) {
    const [version, value = ''] = signature.split(',');
    // `verify` compares in constant time.
    if (version === 'v1' && (await crypto.subtle.verify('HMAC', key, bytesOf(value), content))) return JSON.parse(body);
  }
  throw new Error('No signature of the message is right.');
}

const bytesOf = (base64: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
