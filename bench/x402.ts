/**
 * Compares an order paid by x402 with verification and settlement alone, by the published facilitator. It compares their times,
 * and their processor times. Payments follow each other on a chain that mines at once. A node on the same machine answers
 * unusually fast, so the database weighs more here than in production. A second run uses a node ten milliseconds away.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { x402Facilitator } from '@x402/core/facilitator';
import { encodePaymentSignatureHeader } from '@x402/core/http';
import type { PaymentPayload, PaymentRequirements } from '@x402/core/types';
import { toFacilitatorEvmSigner } from '@x402/evm';
import { ExactEvmScheme as Payer } from '@x402/evm/exact/client';
import { ExactEvmScheme } from '@x402/evm/exact/facilitator';
import { createWalletClient, http, publicActions } from 'viem';
import type { Database } from '../entities/database/database.ts';
import { type Anvil, NO_ANVIL, startAnvil, USDC } from '../test/payments/drivers/evm/anvil.ts';
import { startRpcProxy } from '../test/payments/drivers/evm/rpc-proxy.ts';
import { PAY_TO, paymentsFileIn } from '../test/payments/payments-file.ts';
import { newPayer } from '../test/payments/x402/clients.ts';
import { newFolder, removeFolder, restClient, spawnService } from '../test/setup/spawn.ts';
import { compareCosts, type Figure } from './figure.ts';
import { cpuSeconds } from './report.ts';

const ROUNDS = 60;
/** Payments that warm up compilers and pools; not counted. */
const ROUNDS_BEFORE = 15;
const BAR = 1.4;
const ORDER = JSON.stringify({ service_code: 'vps-1', hostname: 'web' });
const ACCEPTED: PaymentRequirements = {
  ...{ scheme: 'exact', network: 'eip155:8453', asset: USDC, amount: '6000000', payTo: PAY_TO },
  ...{ maxTimeoutSeconds: 300, extra: { name: 'USD Coin', version: '2' } },
};

/** Returns no figures, and prints a reason, if anvil is not installed. */
export async function x402(databaseUrl: string, db: Database): Promise<Figure[]> {
  if (NO_ANVIL) return [];
  await db.query(`insert into coin_rate (coin, source, rate_micros, observed_at)
    select 'USDC-BASE', source, 1000000, now() + interval '1 day' from unnest(array['one', 'two']) as source`);
  const figures: Figure[] = [];
  for (const away of [0, 10]) {
    const node = away ? `a node ${away} ms away` : 'a node on this machine';
    figures.push(
      ...(await compare(databaseUrl, away, `an order by x402 to verification and settlement alone, ${node}`)),
    );
  }
  return figures;
}

async function compare(databaseUrl: string, awayMs: number, name: string): Promise<Figure[]> {
  const folder = newFolder();
  const anvil = await startAnvil();
  const rpc = await startRpcProxy(anvil.url);
  if (awayMs) rpc.before = () => sleep(awayMs);
  const url = awayMs ? rpc.url : anvil.url;
  const service = await spawnService({
    ...{ DATABASE_URL: databaseUrl, DATA_DIR: folder, PAYMENTS_FILE: paymentsFileIn(folder, url) },
    ...{ ALLOW_SIMULATED: 'true', LIMIT_SERVERS: '1000000', ROLES: 'api', RATE_LIMIT_STORE: 'memory' },
  });
  try {
    const payer = newPayer();
    await anvil.mint(payer.address, 10_000_000_000n);
    const sign = async (): Promise<PaymentPayload> => {
      const { payload } = await new Payer(payer).createPaymentPayload(2, ACCEPTED);
      return { x402Version: 2, accepted: ACCEPTED, payload };
    };
    const ways = [await orderer(service.url, awayMs), settler(anvil, url)] as const;
    const cpuMs = [() => cpuSeconds(service.process.pid!) * 1000, ownCpuMs] as const;
    const costs = { ms: [[], []] as [number[], number[]], cpuMs: [[], []] as [number[], number[]] };
    for (let round = 1 - ROUNDS_BEFORE; round <= ROUNDS; round++) {
      for (const way of round % 2 ? ([0, 1] as const) : ([1, 0] as const)) {
        const payment = await sign();
        const before = cpuMs[way]();
        const start = performance.now();
        await ways[way](payment);
        if (round <= 0) continue;
        costs.ms[way].push(performance.now() - start);
        costs.cpuMs[way].push(cpuMs[way]() - before);
      }
    }
    // A single payment takes few of the hundredths of a second in which Linux counts.
    const [ours, theirs] = costs.cpuMs.map((all) => [all.reduce((sum, one) => sum + one, 0) / ROUNDS]);
    return [
      compareCosts(`${name}, time`, BAR, 'ms', ...costs.ms),
      compareCosts(`${name}, CPU`, BAR, 'ms', ours!, theirs!),
    ];
  } finally {
    await service.stop();
    await rpc.stop();
    await anvil.stop();
    removeFolder(folder);
  }
}

const ownCpuMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

type Pay = (payment: PaymentPayload) => Promise<void>;

/** Orders a server with each payment. */
async function orderer(url: string, name: number): Promise<Pay> {
  const registration = { email: `x402-${name}@example.org`, password: 'a password of a bench' };
  const { body: account } = await restClient(url)('POST', '/v1/auth/register', registration);
  return async (payment) => {
    const headers = {
      ...{ authorization: `Bearer ${account.tokens.access_token}`, 'content-type': 'application/json' },
      'payment-signature': encodePaymentSignatureHeader(payment),
    };
    const answer = await fetch(`${url}/v1/servers`, { method: 'POST', headers, body: ORDER });
    const body = await answer.text();
    assert.ok(answer.status === 200 && answer.headers.has('payment-response'), body);
  };
}

/** Verifies and settles each payment; makes no order. */
function settler({ account, chain }: Anvil, url: string): Pay {
  const transport = http(url);
  const client = createWalletClient({ account: account(3), chain, transport, pollingInterval: 20 });
  const wallet = client.extend(publicActions);
  const signer = toFacilitatorEvmSigner({ address: wallet.account.address, ...wallet } as never);
  const facilitator = new x402Facilitator().register('eip155:8453', new ExactEvmScheme(signer));
  return async (payment) => {
    assert.ok((await facilitator.verify(payment, ACCEPTED)).isValid);
    assert.ok((await facilitator.settle(payment, ACCEPTED)).success);
  };
}
