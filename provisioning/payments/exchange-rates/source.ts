/**
 * A source of rates: a URL that answers JSON, and where in it the rate of each coin stands. So any exchange is a source
 * without a line of code, and none is built in.
 */
export interface ExchangeRateSource {
  /** By what its rates are known; sources of one name are one. */
  name: string;
  url: string;
  /** Where the rate of a coin stands, by its code: a JSON Pointer (RFC 6901). */
  coins: Record<string, string>;
  /** Whether it says how many coins a dollar is, and not how many dollars a coin. */
  inverse: boolean;
}

/** JSON Schema of a source in the operator's file. */
export const EXCHANGE_RATE_SOURCE_SCHEMA = {
  type: 'object',
  required: ['name', 'url', 'coins'],
  additionalProperties: false,
  properties: {
    name: { type: 'string', pattern: '^[a-z0-9][a-z0-9.-]{0,39}$' },
    url: { type: 'string', pattern: '^https?://' },
    coins: {
      type: 'object',
      minProperties: 1,
      additionalProperties: { type: 'string', pattern: '^(/([^~/]|~[01])*)*$' },
    },
    inverse: { type: 'boolean', default: false },
  },
} as const;

const ANSWER_BYTES_MAX = 4 * 1024 * 1024;
/** A coin is worth more than nothing, and less than a thousand million dollars. */
const RATE_MICROS_MAX = 10n ** 15n;

/**
 * Asks a source. A coin of which it says nothing sensible is left out.
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
    if (bytes > ANSWER_BYTES_MAX) throw new Error('The answer is too long.');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** What a JSON Pointer (RFC 6901) points to; undefined: nothing is there. */
export function valueAt(document: unknown, pointer: string): unknown {
  const names = pointer.split('/').slice(1);
  return names.reduce<unknown>((at, name) => {
    if (typeof at !== 'object' || at === null) return undefined;
    return Object.entries(at).find(([key]) => key === name.replaceAll('~1', '/').replaceAll('~0', '~'))?.[1];
  }, document);
}

/** Reads a decimal number, as text or as JSON's number, without rounding it to a float on the way. */
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
