/**
 * The operator's file of payment gateways (PAYMENTS_FILE). It is JSON, because there may be several gateways of a kind. It
 * contains credentials, so other users of the machine must not be able to read it.
 */
import { readFileSync, statSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { microsFromUsd } from '../../entities/money.ts';
import { RATE_SOURCES_MIN } from '../../entities/payments/coin.ts';
import { btcpay } from './drivers/btcpay/btcpay.ts';
import { closedObject, type GatewayKind, type PaymentDriver } from './drivers/driver.ts';
import { EVM } from './drivers/evm/evm.ts';
import { monero } from './drivers/monero/monero.ts';
import { UTXO } from './drivers/utxo/utxo.ts';
import type { X402Driver } from './drivers/x402/driver.ts';
import { EVM_X402_SCHEMA, EvmX402, type EvmX402Settings } from './drivers/x402/evm.ts';
import { EXCHANGE_RATE_SOURCE_SCHEMA, type ExchangeRateSource } from './exchange-rates/source.ts';

/** By the name in the file. */
// biome-ignore lint/suspicious/noExplicitAny: each kind checks its own settings by its schema
const KINDS: Record<string, GatewayKind<any>> = { btcpay, evm: EVM, monero, utxo: UTXO };

const SCHEMA = closedObject(['gateways'], {
  rates: { type: 'array', items: EXCHANGE_RATE_SOURCE_SCHEMA, default: [] },
  gateways: {
    type: 'array',
    items: {
      type: 'object',
      required: ['driver'],
      properties: {
        driver: { type: 'string' },
        holdAboveUsd: { type: 'number', exclusiveMinimum: 0, maximum: 1e9, default: 10_000 },
      },
    },
  },
  x402: { type: 'object' },
});

export interface Gateways {
  payments: PaymentDriver[];
  rates: ExchangeRateSource[];
  /** Undefined: the service accepts no payment by x402. */
  x402?: X402Driver | undefined;
}

/** Reads the JSON of a file with credentials. @throws Error that names the file and the fault */
function readSecretJson(file: string): unknown {
  const mode = statSync(file, { throwIfNoEntry: false })?.mode;
  if (mode === undefined) throw new Error(`PAYMENTS_FILE names ${file}, which does not exist.`);
  if (mode & 0o077) throw new Error(`The mode of ${file} lets other users read it. Run: chmod 600 ${file}`);
  const text = readFileSync(file, 'utf8');
  try {
    return JSON.parse(text);
  } catch (error) {
    // The rest of the message quotes the credentials in the file.
    const place = /at position.*/.exec((error as Error).message)?.[0] ?? '';
    throw new Error(`${file} is not valid JSON ${place}`.trimEnd());
  }
}

/** @throws Error that names the fault in the file, and its place */
export function readGateways(file: string): Gateways {
  const given = check(file, '', SCHEMA, readSecretJson(file)) as {
    gateways: { driver: string; holdAboveUsd: number }[];
    rates: ExchangeRateSource[];
    x402?: object;
  };
  const payments = given.gateways.map(({ driver, holdAboveUsd, ...settings }, index) => {
    const kind = KINDS[driver];
    const place = `/gateways/${index}`;
    if (!kind)
      throw new Error(
        `${file}${place}: the driver ${driver} does not exist. Drivers are ${Object.keys(KINDS).join(', ')}.`,
      );
    const opened = open(`${file}${place}`, kind, check(file, place, kind.schema, settings));
    return holding(opened, microsFromUsd(holdAboveUsd));
  });
  const codes = payments.flatMap((driver) => driver.coins().map(({ code }) => code));
  const twice = codes.find((code, index) => codes.indexOf(code) !== index);
  if (twice) throw new Error(`${file}: two gateways have the coin ${twice}.`);
  requireOwnChains(file, payments);
  requireSources(file, payments, given.rates);
  const x402 =
    given.x402 && new EvmX402(check<EvmX402Settings>(file, '/x402', EVM_X402_SCHEMA, given.x402 as EvmX402Settings));
  return { payments, rates: given.rates, x402 };
}

/** Refuses coins of another gateway on a chain that one reads. The reader watches all addresses, so it would book them again. */
function requireOwnChains(file: string, payments: PaymentDriver[]): void {
  for (const reader of payments)
    for (const { network } of reader.chains ?? [])
      if (payments.some((other) => other !== reader && other.coins().some((coin) => coin.network === network)))
        throw new Error(
          `${file}: two gateways have coins of ${network}, and one of them reads its chain. Give one of them all coins.`,
        );
}

/** Requires several sources, because a wrong rate of a single source would go unnoticed. */
function requireSources(file: string, payments: PaymentDriver[], rates: ExchangeRateSource[]): void {
  for (const { code, fixedRateMicros } of payments.flatMap((driver) => driver.coins())) {
    const sources = new Set(rates.filter(({ coins }) => code in coins).map(({ name }) => name));
    if (fixedRateMicros === undefined && sources.size < RATE_SOURCES_MIN)
      throw new Error(
        `${file}/rates: ${code} needs ${RATE_SOURCES_MIN} sources of exchange rates, and has ${sources.size}.`,
      );
  }
}

/** The driver, whose coins say from which amount a payment waits for the operator. */
function holding(driver: PaymentDriver, holdAboveMicros: bigint): PaymentDriver {
  const coins = driver.coins().map((coin) => ({ ...coin, holdAboveMicros }));
  return Object.assign(driver, { coins: () => coins });
}

function open<T>(place: string, kind: GatewayKind<T>, settings: T): PaymentDriver {
  try {
    return kind.open(settings);
  } catch (fault) {
    throw new Error(`${place}: ${(fault as Error).message}.`);
  }
}

function check<T>(file: string, place: string, schema: object, value: T): T {
  const ajv = new Ajv2020({ useDefaults: true, strict: true });
  if (ajv.validate(schema, value)) return value;
  const { instancePath = '', message } = ajv.errors?.[0] ?? {};
  throw new Error(`${file}${place}${instancePath} ${message}.`);
}
