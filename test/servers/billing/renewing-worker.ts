/** A worker in its own process that kills itself with SIGKILL in, or right after, the commit that renews servers. */
import { Database } from '../../../entities/database/database.ts';
import { openShop } from '../../setup/shop.ts';

const { DATABASE_URL, FOLDER, MOMENT } = process.env;
const die = () => process.kill(process.pid, 'SIGKILL');
const db = await Database.open(DATABASE_URL!);
const transaction = db.transaction.bind(db);
db.transaction = async (work) => {
  let renewed = false;
  const result = await transaction(async (tx) => {
    const done = await work(tx);
    renewed = (await tx.query(`select 1 from event where type = 'server.renewed' limit 1`)).length > 0;
    if (renewed && MOMENT === 'committing') die();
    return done;
  });
  if (renewed) die();
  return result;
};
const { provisioning } = await openShop(() => {}, { db, folder: FOLDER! });
await provisioning.newWorker().drain('periodic');
