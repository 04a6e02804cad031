/** Compares the requests that a block of an EVM chain takes with 72,000 watched deposit addresses to those with 10. */
import assert from 'node:assert/strict';
import { Database } from '../entities/database/database.ts';
import { look } from '../provisioning/payments/chains/look.ts';
import { EVM } from '../provisioning/payments/drivers/evm/evm.ts';
import { NO_ANVIL, startAnvil, USDC } from '../test/payments/drivers/evm/anvil.ts';
import { openGate } from '../test/payments/drivers/evm/gate.ts';
import type { Figure } from './figure.ts';

const BLOCKS = 20;
const [FEW, MANY] = [10, 72_000];
const NETWORK = 'benchnet';
/** BIP 32, test vector 1. */
const XPUB =
  'xpub661MyMwAqRbcFtXgS5sYJABqqG9YLmC4Q1Rdap9gSE8NqtwybGhePY2gZ29ESFjqJoCu1Rupje8YtGqsefD265TMg7usUDFdp6W1EGMcet8';

/** Returns no figure if anvil is not installed. @param owner may delete rows */
export async function addresses(databaseUrl: string, owner: Database): Promise<Figure[]> {
  if (NO_ANVIL) return [];
  const anvil = await startAnvil();
  const gate = await openGate(anvil.url);
  const db = await Database.open(databaseUrl);
  try {
    const driver = EVM.open({
      ...{ network: NETWORK, chainId: 8453, urls: [gate.url], xpub: XPUB, confirmations: 1 },
      ...{
        pollSeconds: 1,
        staleSeconds: 300,
        batchMax: 10,
        rangeMax: 100,
        native: { code: 'ETH', name: 'Ether', decimals: 18, pegged: false },
      },
      tokens: [{ code: 'USDC', name: 'USD Coin', contract: USDC, decimals: 6, pegged: true }],
    });
    const { signal } = new AbortController();
    const next = () => look(db, driver.chains![0]!, { signal });
    await next();
    const requests: number[] = [];
    for (const count of [FEW, MANY]) {
      await watch(owner, count);
      const before = gate.passed;
      for (let block = 0; block < BLOCKS; block++) {
        await anvil.mint(addressAt(block % FEW), 1n);
        assert.equal((await next()).state, 'reached');
      }
      requests.push((gate.passed - before) / BLOCKS);
    }
    const found = await db.query('select id from payment where network = $1', [NETWORK]);
    assert.equal(found.length, 2 * BLOCKS, 'Not every payment was found.');
    const [few, many] = requests;
    const name = `${many} requests a block with ${MANY} watched addresses to ${few} with ${FEW}`;
    return [{ name, ratio: many! / few!, bar: 1 }];
  } finally {
    for (const table of ['payment', 'top_up']) await owner.query(`delete from ${table} where network = $1`, [NETWORK]);
    await db.close();
    await gate.stop();
    await anvil.stop();
  }
}

const addressAt = (number: number): `0x${string}` => `0x${(0xbe0000 + number).toString(16).padStart(40, '0')}`;

/** Writes top-ups until so many addresses are watched. */
async function watch(owner: Database, count: number): Promise<void> {
  await owner.query(
    `insert into top_up (id, account_id, order_number, status, mode, amount_micros, bonus_micros, crypto, network, amount_crypto,
        received_crypto, rate_micros, wallet_address, confirmations, confirmations_required, credited_micros, expires_at)
      select 'top_bench' || n, 'acct_bench', 'TOP-BENCH' || n, 'CANCELLED', 'CRYPTO', 50000000, 0, 'USDC', $1, '50',
        '0', 1000000, '0x' || lpad(to_hex(12451840 + n), 40, '0'), 0, 1, 0, now()
      from generate_series(0, $2 - 1) as n on conflict do nothing`,
    [NETWORK, count],
  );
  await owner.query('analyze top_up');
}
