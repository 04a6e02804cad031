/**
 * A random walk through a hosting company, over the real database. It has payments, cancellations, orders, failures, renewals,
 * refunds, payouts, decisions of the operator, nodes that disagree, reorganisations and crashes.
 */
import { ApiError } from '../../../entities/errors.ts';
import { ACCOUNTS } from './accounts.ts';
import { Crash } from './crashes.ts';
import { CUSTOMERS } from './customers.ts';
import { OPERATOR } from './operator.ts';
import { type CoinCode, PRICES, type Step } from './step.ts';
import { type Doing, setRate, type Town } from './town.ts';
import { WORKER, work } from './worker.ts';
import { WORLD } from './world.ts';

const DOING: Doing<Step['kind']> = { ...CUSTOMERS, ...WORLD, ...OPERATOR, ...ACCOUNTS, ...WORKER };

/** Takes one step. The step ends with its refusal or its crash. @returns whether it was done */
export async function take(town: Town, step: Step): Promise<boolean> {
  let isDone = false;
  try {
    await (DOING[step.kind] as (town: Town, step: Step) => unknown)(town, step);
    isDone = true;
  } catch (error) {
    if (!(error instanceof ApiError || error instanceof Crash)) throw error;
  }
  await town.crashes.quiet();
  return isDone;
}

/** Lets everything come to its end: the nodes agree, blocks become final, and nothing fails any more. */
export async function comeToRest(town: Town): Promise<void> {
  const { shop, networks, coins, driver, crashes } = town;
  crashes.calm();
  driver.refused = [];
  for (const code of Object.keys(PRICES) as CoinCode[]) setRate(town, code, 100);
  await shop.db.query(
    `update top_up set expires_at = now() - interval '1 minute' where status in ('PENDING', 'CONFIRMING')`,
  );
  for (const network of networks) {
    network.agree();
    // Above each fork that the service may have believed.
    network.mine(12);
  }
  await shop.db.query('update account set suspended_at = null, suspended_for = null, servers_off = false');
  coins.isAway = false;
  coins.secure();
  coins.lapse();
  for (let i = 0; i < 6; i++) await work(shop);
}
