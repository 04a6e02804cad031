/** The work of an order for the database, after the order itself. */
import { expect, it, onTestFinished } from 'vitest';
import { SERVER_LANE } from '../../../provisioning/servers/task.ts';
import { orderServer } from '../../../resolvers/servers/order.ts';
import { openCustomerShop } from '../../setup/customer-shop.ts';
import { eventually } from '../../setup/freehold.ts';
import { type Query, queriesOf } from '../../setup/queries.ts';

const ORDER = { serviceCode: 'vps-1', region: 'ams', os: 'debian-13', labels: {}, autoRenew: true };
/** The process links its audit entries, and tells the others of changes, by itself. The tests look at its locks. */
const OWN_WORK =
  /audit_link|audit_unlinked|pg_notify|pg_advisory|^with own as materialized|^(START TRANSACTION|COMMIT)$|^listen /;

it('A worker makes, watches and delivers a machine with few queries', async () => {
  const shop = await openCustomerShop(onTestFinished, { proofSeconds: { VPS: 60, DEDICATED: 60 } });
  const { orderNumber } = (await orderServer(shop.context, ORDER)).server;
  const worker = shop.provisioning.newWorker();
  const isOfWorker = ({ text }: Query) => !OWN_WORK.test(text);
  /** Runs the next step, once it is due. @returns the number of its queries, without the lease and the ends of transactions */
  const step = async () => {
    const lease = await eventually(async () => (await worker.lease(SERVER_LANE))[0]);
    return (await queriesOf(shop.db, () => worker.run(lease))).filter(isOfWorker).length;
  };
  shop.driver.refused = ['mute'];
  const [making, watching] = [await step(), await step()];
  shop.driver.refused = [];
  expect([making, watching, await step()]).toEqual([4, 3, 6]);
  expect((await shop.read(orderNumber)).status).toBe('RUNNING');
});
