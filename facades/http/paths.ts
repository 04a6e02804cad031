/** The endpoint that a caller means by another host's path, by one without /v1, or by a near spelling. */
import { nearest, suggestion } from '../../schema/index.ts';
import type { Operation } from '../compile/operation.ts';

/** The first words of paths of other hosts, by ours. */
const WORDS: Readonly<Record<string, readonly string[]>> = {
  '/v1/servers': ['server', 'droplets', 'instances', 'linodes', 'vms', 'vps', 'machines', 'virtual-machines'],
  '/v1/ssh-keys': ['sshkeys', 'ssh-key', 'keys'],
  '/v1/catalog': ['sizes', 'plans', 'types', 'server-types', 'flavors', 'products', 'pricing', 'prices', 'tiers'],
  '/v1/catalog/bastions': ['bastions', 'regions', 'locations', 'datacenters', 'zones'],
  '/v1/catalog/images': ['images', 'os', 'operating-systems', 'distributions', 'templates'],
  '/v1/billing/topups': ['topups', 'top-ups', 'deposits', 'payments', 'invoices'],
  '/v1/billing/coins': ['coins', 'currencies', 'cryptos'],
  '/v1/account/balance': ['balance', 'wallet'],
  '/v1/account/usage': ['usage'],
  '/v1/account/messages': ['messages', 'tickets', 'support'],
  '/v1/auth/api-keys': ['tokens', 'api-keys', 'apikeys'],
  '/v1/auth/login': ['login', 'sessions'],
  '/v1/auth/register': ['register', 'signup', 'accounts', 'users'],
  '/v1/webhooks': ['hooks', 'webhook'],
  '/v1/transparency/status': ['status', 'health'],
  '/v1/transparency/canary': ['canary'],
};
/** Other hosts have paths for these acts. Here, a field of one request does them. */
const ACTS = new Map(
  Object.entries({
    ...{
      reboot: 'action "reboot"',
      reset: 'action "reset"',
      rebuild: 'action "rebuild"',
      reinstall: 'action "rebuild"',
    },
    ...{
      start: 'power_state "on"',
      poweron: 'power_state "on"',
      stop: 'power_state "off"',
      poweroff: 'power_state "off"',
    },
    ...{ shutdown: 'power_state "off"', resize: 'a larger service_code', actions: 'action or power_state' },
  }),
);
/** A longer path is no near spelling. */
const LENGTH_MAX = 80;

/** Returns a function that makes the detail for a path that does not exist. */
export function lostPaths(operations: readonly Operation[]): (url: string) => string {
  const paths = [...new Set(operations.flatMap(({ http }) => (http ? [http.path] : [])))];
  return (url) => {
    const path = url.split('?')[0]!.toLowerCase().replaceAll('_', '-').slice(0, LENGTH_MAX);
    const [first = '', ...more] = path.split('/').filter((word) => word && !/^(api|v\d)$/.test(word));
    const act =
      ACTS.get(more.at(-1)?.replaceAll('-', '') ?? '') ?? (more[1] === 'actions' ? ACTS.get('actions') : undefined);
    const known = Object.keys(WORDS).find((ours) => WORDS[ours]!.includes(first) || ours === `/v1/${first}`);
    if (known === '/v1/servers' && more.length > 1 && act)
      return `There is no such path. Send PATCH /v1/servers/{order_number} with ${act}.`;
    const whole = `/v1/${[first, ...more].join('/')}`;
    const near = paths.find((one) => one === whole) ?? known ?? nearest(whole, paths);
    return `There is no such path.${suggestion(near)} See /docs.`;
  };
}
