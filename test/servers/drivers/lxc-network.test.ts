/** The rules that the LXC driver sets on the own bridge of an engine. */
import { networkInterfaces } from 'node:os';
import { expect, it } from 'vitest';
import { LxcDriver } from '../../../provisioning/servers/drivers/lxc/lxc.ts';
import { listen } from './engine-socket.ts';

const NEVER = new AbortController().signal;

/** @returns the rules of a driver on the own bridge of an engine, whose host has an address on its loopback */
async function rulesOnOwnBridge() {
  const acls: { egress: { destination?: string; protocol?: string }[]; ingress: object[] }[] = [];
  const config = { 'ipv4.address': '10.79.0.1/24', 'ipv6.address': 'fd42:79::1/64' };
  const answers: Record<string, unknown> = {
    'GET /1.0': { auth: 'trusted', environment: { server: 'lxd', server_clustered: false, server_name: 'n1' } },
    'GET /1.0/projects/freehold': { config: {} },
    'GET /1.0/networks/lxdbr0': { managed: true, config },
    'GET /1.0/networks': [{ name: 'lo', type: 'loopback' }],
    'GET /1.0/networks/lo/state': {
      addresses: [
        { address: '127.0.0.1', scope: 'local' },
        { address: '198.51.100.8', scope: 'global' },
      ],
    },
    'PATCH /1.0/networks/lxdbr0': {},
  };
  const socketPath = await listen((request, response, body) => {
    if (request === 'POST /1.0/network-acls') acls.push(JSON.parse(body));
    const isKnown = request in answers || request === 'POST /1.0/network-acls';
    response.end(
      JSON.stringify(isKnown ? { type: 'sync', metadata: answers[request] } : { type: 'error', error_code: 404 }),
    );
  });
  const place = { project: 'freehold', pool: 'p', network: 'lxdbr0', nameservers: [] };
  expect(await new LxcDriver({ endpoints: [{ socketPath }], ...place }).reachable('zrh', NEVER)).toBe(true);
  expect(acls).toHaveLength(1);
  return acls[0]!;
}

it("On an engine's own bridge, no machine sends or gets anything by IPv6, whose addresses the books do not know", async () => {
  const { egress, ingress } = await rulesOnOwnBridge();
  const reject = { action: 'reject', state: 'enabled' };
  expect(egress).toContainEqual({ ...reject, destination: '::/0' });
  expect(ingress).toEqual([{ ...reject, source: '::/0' }]);
});

it("On an engine's own bridge, no machine reaches an address of the host, listed by the engine or not", async () => {
  const { egress } = await rulesOnOwnBridge();
  const closed = egress.find(({ protocol }) => protocol === 'tcp')!.destination!.split(',');
  const cards = Object.values(networkInterfaces()).flatMap((given) => given ?? []);
  const outer = cards.filter(({ internal, scopeid }) => !internal && !scopeid).map(({ address }) => address);
  expect(closed.sort()).toEqual([...outer, '10.79.0.1', '198.51.100.8'].sort());
});
