/** The steps of the world around the service: networks, exchange rates, machines, and time. */
import { topUpOf } from './customers.ts';
import { type Doing, setRate } from './town.ts';

export const WORLD: Doing<
  'mine' | 'reorganise' | 'disagree' | 'agree' | 'rate' | 'lapse' | 'blind' | 'expire' | 'renew' | 'refuse'
> = {
  mine: ({ networks }, { network, count }) => networks[network]!.mine(count),
  reorganise: ({ networks, coins }, { network, depth, fate }) => {
    coins.reorganise(depth);
    networks[network]!.reorganise(depth, fate);
  },
  disagree: ({ networks }, { network, node, mood, depth, extra }) =>
    networks[network]!.disagree(node, mood, depth, extra),
  agree: ({ networks }) => {
    for (const network of networks) network.agree();
  },
  rate: (town, { crypto, percent }) => setRate(town, crypto, percent),
  lapse: ({ coins }) => coins.lapse(),
  blind: ({ coins }, { isAway }) => {
    coins.isAway = isAway;
  },
  expire: async (town, step) => {
    const one = await topUpOf(town, step);
    return one && town.shop.db.query(`update top_up set expires_at = now() where order_number = $1`, [one.orderNumber]);
  },
  renew: ({ shop, contexts }, { who }) =>
    shop.db.query(
      `update server set paid_until = now() - interval '1 second' where account_id = $1 and status in ('RUNNING', 'STOPPED')`,
      [contexts[who]!.viewer!.accountId],
    ),
  refuse: ({ driver }, { calls }) => {
    driver.refused = calls;
  },
};
