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
  /**
   * JSON Pointers to the times of the rates, by the code of the coin. A time is in seconds or milliseconds since the epoch, or
   * in RFC 3339. Without a pointer, the time is that of the answer, by its headers Date and Age.
   */
  times?: Record<string, string>;
  /** Whether its rates are coins for one dollar, and not dollars for one coin. */
  inverse: boolean;
}

export interface FetchedRate {
  /** Micro-USD for one coin. */
  micros: bigint;
  /** When the source had the rate, by its own clock. Undefined: it does not tell. */
  at: Date | undefined;
}

const POINTER = { type: 'string', pattern: '^(/([^~/]|~[01])*)*$' };

/** JSON Schema of a source in the operator's file. */
export const EXCHANGE_RATE_SOURCE_SCHEMA = closedObject(['name', 'url', 'coins'], {
  name: { type: 'string', pattern: '^[a-z0-9][a-z0-9.-]{0,39}$' },
  url: { type: 'string', pattern: '^https?://' },
  coins: {
    type: 'object',
    minProperties: 1,
    additionalProperties: POINTER,
  },
  times: { type: 'object', additionalProperties: POINTER },
  inverse: { type: 'boolean', default: false },
});

const ANSWER_BYTES_MAX = 4 * 1024 * 1024;
/** Rates below 0.001 dollars for one coin are refused, because whole micro-dollars would cut more than 0.1 % of them. */
const RATE_MICROS_MIN = 1_000n;
/** Rates from this on are wrong: 10⁹ dollars for one coin. */
const RATE_MICROS_MAX = 10n ** 15n;

/**
 * Asks a source, and leaves out coins without a plausible rate or time, and coins that are too cheap.
 * @param onError gets an error that names a coin that is too cheap
 * @returns the rates by the code of the coin
 * @throws if it does not answer JSON with 200
 */
export async function fetchExchangeRates(
  source: ExchangeRateSource,
  signal: AbortSignal,
  onError: (fault: unknown) => void,
): Promise<Map<string, FetchedRate>> {
  const response = await fetch(source.url, { signal, redirect: 'error', headers: { accept: 'application/json' } });
  if (!response.ok) throw new Error(`${source.name} answers ${response.status}.`);
  const answer: unknown = JSON.parse(await textOf(response));
  const answeredAt = timeOf(response.headers);
  return new Map(
    Object.entries(source.coins).flatMap(([coin, pointer]) => {
      const micros = rateOf(valueAt(answer, pointer), source.inverse);
      const timePointer = source.times?.[coin];
      const at = timePointer === undefined ? answeredAt : dateOf(valueAt(answer, timePointer));
      if (micros !== undefined && micros < RATE_MICROS_MIN) {
        const text = `The source ${source.name} reports less than 0.001 USD for ${coin}, which the service cannot count exactly.`;
        onError(new Error(text));
        return [];
      }
      if (micros === undefined || (timePointer !== undefined && !at)) return [];
      return [[coin, { micros, at }] as const];
    }),
  );
}

/** When the source made the answer. A cache on the way tells how long it has kept the answer. */
function timeOf(headers: Headers): Date | undefined {
  const at = Date.parse(headers.get('date') ?? '');
  return Number.isNaN(at) ? undefined : new Date(at - 1000 * (Number(headers.get('age')) || 0));
}

/** Greater numbers are milliseconds: as seconds they would be after the year 5000. */
const SECONDS_MAX = 1e11;

/** Reads a time from JSON. */
function dateOf(value: unknown): Date | undefined {
  const number = typeof value === 'number' || /^\d+(\.\d+)?$/.test(`${value}`) ? Number(value) : Number.NaN;
  const at = new Date(Number.isNaN(number) ? String(value) : number > SECONDS_MAX ? number : number * 1000);
  return Number.isNaN(at.getTime()) ? undefined : at;
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

/** Reads a decimal number, as text or as a JSON number, without rounding it to a float. @returns whole micro-dollars */
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
  return micros < RATE_MICROS_MAX ? micros : undefined;
}
