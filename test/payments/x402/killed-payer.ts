/** A process that accepts a payment for an order, and kills itself with SIGKILL at a given moment. */
import { join } from 'node:path';
import { Database } from '../../../entities/database/database.ts';
import { digest } from '../../../entities/secrets.ts';
import { orderServer } from '../../../resolvers/servers/order.ts';
import { contextOf, openShop } from '../../setup/shop.ts';
import { MoodyX402, ORDER } from './shop.ts';

const { DATABASE_URL, FOLDER, ACCOUNT, PAYMENT, KILL_MOMENT, KEY } = process.env;

const die = () => process.kill(process.pid, 'SIGKILL');
const db = await Database.open(DATABASE_URL!);
const chain = new MoodyX402({ folder: join(FOLDER!, 'x402') });
chain.mood = KILL_MOMENT === 'reserved' ? 'silent' : 'settles';
chain.afterSettle = () => {
  if (KILL_MOMENT === 'reserved' || KILL_MOMENT === 'settled') die();
};
const shop = await openShop(() => {}, { db, folder: FOLDER!, x402: chain });
const own = await Database.open(DATABASE_URL!);
const transaction = own.transaction.bind(own);
own.transaction = (work) =>
  transaction(async (tx) => {
    const result = await work(tx);
    if (KILL_MOMENT === 'committing') die();
    return result;
  });
const keyDigest = KEY ? digest(KEY) : undefined;
await orderServer({ ...contextOf(shop, ACCOUNT!), db: own, keyDigest }, ORDER, { signature: PAYMENT! });
die();
