/**
 * A source of exchange rates: a URL that answers JSON, and the place of each coin's rate in it. So the operator configures
 * any exchange as a source, and none is built in.
 */
import { closedObject } from '../drivers/driver.ts';
export interface ExchangeRateSource {
  /** Identifies the source: sources of one name are one. */
  name: string;
  url: string;
  /** JSON Pointers (RFC 6901) to the rates, by the code of the coin. */
  coins: Record<string, string>;
  /** Whether its rates are coins for one dollar, and not dollars for one coin. */
  inverse: boolean;
}

/** JSON Schema of a source in the operator's file. */
export const EXCHANGE_RATE_SOURCE_SCHEMA = closedObject(['name', 'url', 'coins'], {
  name: { type: 'string', pattern: '^[a-z0-9][a-z0-9.-]{0,39}$' },
  url: { type: 'string', pattern: '^https?://' },
  coins: {
    type: 'object',
    minProperties: 1,
    additionalProperties: { type: 'string', pattern: '^(/([^~/]|~[01])*)*$' },
  },
  inverse: { type: 'boolean', default: false },
});

const ANSWER_BYTES_MAX = 4 * 1024 * 1024;
/** Rates from this on are wrong: 10⁹ dollars for one coin. */
const RATE_MICROS_MAX = 10n ** 15n;

/**
 * Asks a source, and leaves out coins without a plausible rate.
 * @returns micro-USD for one coin, by its code
 * @throws if it does not answer JSON with 200
 */
export async function fetchExchangeRates(
  source: ExchangeRateSource,
  signal: AbortSignal,
): Promise<Map<string, bigint>> {
  const response = await fetch(source.url, { signal, redirect: 'error', headers: { accept: 'application/json' } });
  if (!response.ok) throw new Error(`${source.name} answers ${response.status}.`);
  const answer: unknown = JSON.parse(await textOf(response));
  return new Map(
    Object.entries(source.coins).flatMap(([coin, pointer]) => {
      const rate = rateOf(valueAt(answer, pointer), source.inverse);
      return rate === undefined ? [] : [[coin, rate] as const];
    }),
  );
}

async function textOf(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > ANSWER_BYTES_MAX) throw new Error('The answer of the source is too long.');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** The value that a JSON Pointer (RFC 6901) points to; undefined: none. */
export function valueAt(document: unknown, pointer: string): unknown {
  const names = pointer.split('/').slice(1);
  return names.reduce<unknown>((at, name) => {
    if (typeof at !== 'object' || at === null) return undefined;
    return Object.entries(at).find(([key]) => key === name.replaceAll('~1', '/').replaceAll('~0', '~'))?.[1];
  }, document);
}

/** Reads a decimal number, as text or as a JSON number, without rounding it to a float. */
function rateOf(value: unknown, inverse: boolean): bigint | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') return undefined;
  const [, whole, fraction = '', exponent = '0'] =
    /^(\d{1,20})(?:\.(\d{1,30}))?(?:[eE]([+-]?\d{1,2}))?$/.exec(`${value}`) ?? [];
  if (whole === undefined) return undefined;
  const digits = BigInt(whole + fraction);
  const scale = fraction.length - Number(exponent);
  if (digits === 0n) return undefined;
  const [over, under] = [10n ** BigInt(Math.max(0, scale)), 10n ** BigInt(Math.max(0, -scale))];
  const micros = inverse ? (1_000_000n * over) / (digits * under) : (1_000_000n * digits * under) / over;
  return micros > 0n && micros < RATE_MICROS_MAX ? micros : undefined;
}
