/** A worker in its own process. It kills itself with SIGKILL in the commit that charges for traffic, or right after it. */
import { Database } from '../../../entities/database/database.ts';
import { openMeteredShop } from './meter-shop.ts';

const { DATABASE_URL, FOLDER, MOMENT } = process.env;
const die = () => process.kill(process.pid, 'SIGKILL');
const db = await Database.open(DATABASE_URL!);
const transaction = db.transaction.bind(db);
db.transaction = async (work) => {
  let charged = false;
  const result = await transaction(async (tx) => {
    const done = await work(tx);
    charged = (await tx.query(`select 1 from event where type = 'server.traffic_charged' limit 1`)).length > 0;
    if (charged && MOMENT === 'committing') die();
    return done;
  });
  if (charged) die();
  return result;
};
const { provisioning } = await openMeteredShop(() => {}, { db, folder: FOLDER! });
await provisioning.newWorker().drain('periodic');
