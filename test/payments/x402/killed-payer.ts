/** A process that accepts a payment for an order, and kills itself with SIGKILL at a given moment. */
import { join } from 'node:path';
import { expandScopes } from '../../../entities/accounts/credential.ts';
import { Database } from '../../../entities/database/database.ts';
import { Vault } from '../../../entities/secrets.ts';
import { Provisioning } from '../../../provisioning/index.ts';
import { SimulatedPayments } from '../../../provisioning/payments/drivers/simulated.ts';
import { SimulatedDriver } from '../../../provisioning/servers/drivers/simulated.ts';
import { LoginThrottle } from '../../../resolvers/accounts/auth/throttle.ts';
import { orderServer } from '../../../resolvers/servers/order.ts';
import { LIMITS } from '../../flows/shop.ts';
import { MoodyX402, ORDER } from './shop.ts';

const { DATABASE_URL, FOLDER, ACCOUNT, PAYMENT, KILL_MOMENT } = process.env;

const die = () => process.kill(process.pid, 'SIGKILL');
const db = await Database.open(DATABASE_URL!);
const chain = new MoodyX402({ folder: join(FOLDER!, 'x402') });
chain.mood = KILL_MOMENT === 'reserved' ? 'silent' : 'settles';
chain.afterSettle = () => {
  if (KILL_MOMENT === 'reserved' || KILL_MOMENT === 'settled') die();
};
const machines = new SimulatedDriver({ folder: FOLDER!, bootSeconds: 0 });
const vault = new Vault(Buffer.alloc(32));
const provisioning = new Provisioning({
  db,
  vault,
  drivers: { VPS: machines, DEDICATED: machines },
  payments: [new SimulatedPayments({ confirmSeconds: 0 })],
  x402: chain,
  pollSeconds: 0.02,
});
const own = await Database.open(DATABASE_URL!);
const transaction = own.transaction.bind(own);
own.transaction = (work) =>
  transaction(async (tx) => {
    const result = await work(tx);
    if (KILL_MOMENT === 'committing') die();
    return result;
  });
await orderServer(
  {
    ...{ db: own, vault, provisioning, limits: LIMITS, requestId: 'req_killed', userAgent: null, address: null },
    viewer: {
      ...{ accountId: ACCOUNT!, kind: 'api_key', credentialId: 'key_test', name: 'test', expiresAt: null },
      scopes: expandScopes('full'),
    },
    ...{ signal: new AbortController().signal, stopping: new AbortController().signal },
    ...{ publicUrl: 'http://localhost:3000', logins: new LoginThrottle(10) },
  },
  ORDER,
  { signature: PAYMENT! },
);
die();
