/** The whole service in this process, with its own database. */

import { readConfig } from '../../config.ts';
import type { Database } from '../../entities/database/database.ts';
import type { Queryable } from '../../entities/database/transaction.ts';
import { type Service, startService } from '../../main.ts';
import { newDatabaseUrl } from './database.ts';
import { atEnd } from './end.ts';
import { fundAccount } from './shop.ts';
import { freePort, graphqlClient, newFolder, type RestClient, removeFolder, restClient, UNLIMITED } from './spawn.ts';
import { SECRET_KEY } from './vault.ts';

export interface Freehold extends Service {
  graphqlUrl: string;
  dataDir: string;
  /** Without a credential. */
  anonymous: RestClient;
  operator: ReturnType<typeof graphqlClient>;
  /** A new account. */
  newAccount(): Promise<TestAccount>;
  /** An account with a dollar. Those of an address that never paid have a limit of calls together. */
  newPayer(): Promise<TestAccount>;
}

export interface TestAccount {
  id: string;
  email: string;
  password: string;
  accessToken: string;
  rest: RestClient;
  graphql: ReturnType<typeof graphqlClient>;
  /** Has the money at once, without a top-up. */
  fund(usd: number): Promise<void>;
  /** Tops up and waits for the balance. */
  topUp(usd: number): Promise<void>;
  balance(): Promise<number>;
}

let counter = 0;

/** Starts the service for a test file and stops it at the end. Simulations are quick. */
export async function startFreehold(environment: Record<string, string> = {}): Promise<Freehold> {
  const dataDir = newFolder();
  atEnd(() => removeFolder(dataDir));
  const config = readConfig({
    DATABASE_URL: await newDatabaseUrl(),
    DATA_DIR: dataDir,
    SECRET_KEY,
    PORT: String(await freePort()),
    INTERNAL_PORT: String(await freePort()),
    SIMULATED_PAYMENT_SECONDS: '0.05',
    SIMULATED_PROVISION_SECONDS: '0.05',
    POLL_SECONDS: '0.02',
    ...UNLIMITED,
    ...environment,
  });
  const service = await startService({ ...config, publicUrl: `http://127.0.0.1:${config.port}` });
  atEnd(() => service.stop());
  const graphqlUrl = `${service.internalUrl}/graphql`;
  const anonymous = restClient(service.publicUrl);
  return {
    ...service,
    graphqlUrl,
    dataDir,
    anonymous,
    operator: graphqlClient(graphqlUrl, service.operatorToken),
    newAccount: () => newAccount(service.publicUrl, graphqlUrl, service.db),
    newPayer: async () => {
      const account = await newAccount(service.publicUrl, graphqlUrl, service.db);
      await account.fund(1);
      return account;
    },
  };
}

async function newAccount(url: string, graphqlUrl: string, db: Database): Promise<TestAccount> {
  const [email, password] = [`test-${process.pid}-${++counter}@example.org`, `a password of test ${counter}`];
  const { status, body } = await restClient(url)('POST', '/v1/auth/register', { email, password });
  if (status !== 200) throw new Error(`register: ${JSON.stringify(body)}`);
  const accessToken: string = body.tokens.access_token;
  const rest = restClient(url, accessToken);
  const balance = async () => (await rest('GET', '/v1/account/balance')).body.balance_usd as number;
  return {
    id: body.account.id,
    email,
    password,
    accessToken,
    rest,
    graphql: graphqlClient(graphqlUrl, accessToken),
    balance,
    fund: (usd) => fundAccount(db, body.account.id, BigInt(Math.round(usd * 1_000_000))),
    topUp: async (usd) => {
      const before = await balance();
      const opened = await rest('POST', '/v1/billing/topups', { amount_usd: usd, crypto: 'USDC-BASE' });
      if (opened.status !== 200) throw new Error(`top-up: ${JSON.stringify(opened.body)}`);
      await eventually(async () => (await balance()) >= before + usd);
    },
  };
}

/** Waits for three more attempts at the task of a subject. If the workers have done nothing by then, they never will. */
export async function leasedAgain(db: Queryable, subject: string): Promise<void> {
  const fence = async () =>
    (await db.query<{ fence: bigint }>('select fence from task where subject = $1', [subject]))[0]?.fence;
  const before = await fence();
  await eventually(async () => ((await fence()) ?? 0n) >= before! + 3n);
}

/**
 * Waits until a condition holds. The limit is long because machines are busy. Each pause is a tenth of the time until then.
 * So looks leave the processor to the work that they wait for.
 */
export async function eventually<T>(probe: () => Promise<T | undefined | false>, seconds = 240): Promise<T> {
  const begun = Date.now();
  for (;;) {
    const found = await probe();
    if (found) return found;
    const waitedMs = Date.now() - begun;
    if (waitedMs > seconds * 1000) throw new Error(`It did not become true within ${seconds} s: ${probe}`);
    await new Promise((resume) => setTimeout(resume, Math.min(500, Math.max(20, waitedMs / 10))));
  }
}
