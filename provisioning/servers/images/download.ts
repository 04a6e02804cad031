/** Downloads an image in pieces, and checks it. The checksum protects the image, so http and any redirect will do. */
import { createHash } from 'node:crypto';
import { textOf } from '../../tasks/lease.ts';
import { DriverError } from '../drivers/driver.ts';

/** The limits of a download. A step of a task has 900 seconds. */
const LIMITS = { bytesMax: 8 * 2 ** 30, totalMs: 840_000, silentMs: 30_000 };

/**
 * Throws before its end, unless the whole image has the checksum.
 * @throws DriverError failed; rejected for another checksum and for an image that is too large
 */
export async function* download(
  { url, sha256 }: { url: string; sha256: string },
  signal: AbortSignal,
  { bytesMax, totalMs, silentMs }: typeof LIMITS = LIMITS,
): AsyncGenerator<Uint8Array> {
  const patience = new AbortController();
  const total = AbortSignal.timeout(totalMs);
  const any = AbortSignal.any([signal, patience.signal, total]);
  /** Only the server has to hurry here, and not the engine that takes the bytes. */
  const soon = async <T>(answer: Promise<T>): Promise<T> => {
    const timer = setTimeout(() => patience.abort(), silentMs);
    return answer.finally(() => clearTimeout(timer));
  };
  const failed = (error: unknown) => {
    if (signal.aborted) return signal.reason;
    if (total.aborted) return new DriverError('failed', `${url}: not complete after ${totalMs / 1000} seconds.`);
    if (patience.signal.aborted) return new DriverError('failed', `${url}: silent for ${silentMs / 1000} seconds.`);
    const { cause } = error as { cause?: unknown };
    return new DriverError('failed', `${url}: ${textOf(error)}${cause ? ` (${textOf(cause)})` : ''}`);
  };
  const asked = fetch(url, { signal: any, headers: { 'accept-encoding': 'identity' } });
  const answer = await soon(asked).catch((error) => {
    throw failed(error);
  });
  const body = answer.body?.getReader();
  try {
    if (!answer.ok || !body) throw new DriverError('failed', `${url}: HTTP ${answer.status}`);
    const hash = createHash('sha256');
    for (let bytes = 0; ; ) {
      const { done, value } = await soon(body.read()).catch((error) => {
        throw failed(error);
      });
      if (done) break;
      bytes += value.length;
      if (bytes > bytesMax) throw new DriverError('rejected', `${url}: larger than ${bytesMax} bytes.`);
      hash.update(value);
      yield value;
    }
    const found = hash.digest('hex');
    if (found !== sha256) throw new DriverError('rejected', `${url}: its SHA-256 is ${found}, and not ${sha256}.`);
  } finally {
    await body?.cancel().catch(() => {});
  }
}
