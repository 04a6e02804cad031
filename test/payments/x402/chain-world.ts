/** The service with x402 payments on a private chain: replicas that share a database, and payers with coins. */
import type { LocalAccount } from 'viem';
import { newDatabaseUrl } from '../../setup/database.ts';
import { atEnd } from '../../setup/end.ts';
import { type Freehold, startFreehold } from '../../setup/freehold.ts';
import { newFolder, removeFolder } from '../../setup/spawn.ts';
import { type Anvil, startAnvil, TOKEN_ABI, USDC } from '../drivers/evm/anvil.ts';
import { type RpcProxy, startRpcProxy } from '../drivers/evm/rpc-proxy.ts';
import { PAY_TO, paymentsFileIn } from '../payments-file.ts';
import { newPayer, type Signed } from './clients.ts';

export interface X402World extends Freehold {
  anvil: Anvil;
  /** The connection of the service to the chain. */
  rpc: RpcProxy;
  /** The environment for further replicas. */
  environment: Record<string, string>;
  /** Makes a payer with this many micro-USD in coins. */
  newRichPayer(micros?: bigint): Promise<LocalAccount>;
  /** Submits a signed payment to the chain, as everyone may. */
  submit(signed: Signed): Promise<void>;
  /** The income of the payee on the chain and in the books, in micro-USD. */
  totals(): Promise<{ chain: bigint; books: bigint }>;
}

/** Writes a payments file that is deleted after the test file. */
export function paymentsFile(rpcUrl: string, settings?: object): string {
  const folder = newFolder();
  atEnd(() => removeFolder(folder));
  return paymentsFileIn(folder, rpcUrl, settings);
}

/** Starts chain and service for a test file. @param settings settings of x402 that replace the defaults */
export async function openX402World(
  settings: (anvil: Anvil) => Promise<object> = async () => ({}),
): Promise<X402World> {
  const anvil = await startAnvil();
  atEnd(() => anvil.stop());
  const rpc = await startRpcProxy(anvil.url);
  atEnd(() => rpc.stop());
  const environment = {
    DATABASE_URL: await newDatabaseUrl(),
    PAYMENTS_FILE: paymentsFile(rpc.url, await settings(anvil)),
    SECRET_KEY: Buffer.alloc(32, 7).toString('base64'),
    ALLOW_SIMULATED: 'true',
  };
  const freehold = await startFreehold(environment);
  // Two sources report one dollar for the coin, for the duration of the test.
  await freehold.db.query(`insert into coin_rate (coin, source, rate_micros, observed_at)
    select 'USDC-BASE', source, 1000000, now() + interval '1 day' from unnest(array['one', 'two']) as source`);
  let minted: Promise<unknown> = Promise.resolve();
  return {
    ...freehold,
    anvil,
    rpc,
    environment,
    newRichPayer: async (micros = 1_000_000_000n) => {
      const payer = newPayer();
      // The mints follow each other, because the minting account numbers its transactions.
      minted = minted.then(() => anvil.mint(payer.address, micros));
      await minted;
      return payer;
    },
    submit: async ({ payload: { signature, authorization: a } }) => {
      const args = [a.from, a.to, a.value, a.validAfter, a.validBefore, a.nonce, signature] as never;
      const call = { address: USDC, abi: TOKEN_ABI, functionName: 'transferWithAuthorization', args } as const;
      await anvil.mined(await anvil.wallet(5).writeContract({ ...call, chain: anvil.chain }));
    },
    totals: async () => {
      const [{ micros }] = (await freehold.db.query<{ micros: bigint }>(
        `select coalesce(sum(amount_micros), 0)::bigint as micros from transfer where debit = 'gateway:x402:eip155:8453'`,
      )) as [{ micros: bigint }];
      return { chain: await anvil.balance(PAY_TO), books: micros };
    },
  };
}
