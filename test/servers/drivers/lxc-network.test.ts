/** The network of machines: the rules on the own bridge of an engine, and the limit of sending. */
import { networkInterfaces } from 'node:os';
import { expect, it } from 'vitest';
import { type Instance, nameOf } from '../../../provisioning/servers/drivers/lxc/instance.ts';
import { LxcDriver } from '../../../provisioning/servers/drivers/lxc/lxc.ts';
import { newSpec } from '../../engine/machine.ts';
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

it('A member whose kernel cannot limit what machines send takes that limit from no other member', async () => {
  const instances = new Map<string, Required<Instance>>();
  const broken = new Set(['n1']);
  const socketPath = await listen((request, response, body, url) => {
    const answer = (metadata: unknown) => response.end(JSON.stringify({ type: 'sync', metadata }));
    const fail = (error_code: number, error: string) =>
      response.end(JSON.stringify({ type: 'error', error_code, error }));
    if (request === 'GET /1.0')
      return answer({ auth: 'trusted', environment: { server: 'lxd', server_clustered: true, server_name: 'n1' } });
    if (request.startsWith('GET /1.0/projects')) return answer({ config: {} });
    if (request.startsWith('GET /1.0/networks')) return answer({ managed: false, config: {} });
    if (request === 'GET /1.0/operations') return answer({});
    if (request === 'GET /1.0/instances') {
      const filter = url.searchParams.get('filter') ?? '';
      return answer(
        [...instances.values()].filter(
          (one) => filter.includes(one.name) || filter.includes(one.config['user.freehold-order']!),
        ),
      );
    }
    if (request === 'POST /1.0/instances') {
      const made = JSON.parse(body);
      instances.set(made.name, { ...made, status: 'Stopped', location: url.searchParams.get('target')! });
      return answer({});
    }
    const name = request.split('/')[3]!;
    const one = instances.get(name);
    if (!one) return fail(404, 'Not found');
    if (request.startsWith('GET')) return answer(one);
    if (request.startsWith('PATCH')) {
      const { config, devices } = JSON.parse(body);
      Object.assign(one.config, config);
      Object.assign(one.devices, devices);
      return answer({});
    }
    if (broken.has(one.location) && one.devices.eth0!['limits.egress'])
      return fail(
        500,
        'Failed to start device "eth0": Failed to run: tc filter add dev veth1 parent ffff: protocol all u32 match u32 0 0 police rate 1mbit: exit status 2',
      );
    one.status = 'Running';
    return answer({});
  });
  const driver = new LxcDriver({
    endpoints: [{ socketPath }],
    project: 'freehold',
    pool: 'p',
    network: 'br0',
    nameservers: [],
    probe: async () => true,
  });
  const egressOn = async (host: string) => {
    const spec = { ...newSpec(), host };
    await driver.create(spec, NEVER);
    return instances.get(nameOf(spec))!.devices.eth0!['limits.egress'];
  };
  const before = await egressOn('n2');
  const bad = await egressOn('n1');
  const after = await egressOn('n2');
  expect([before, bad, after]).toEqual(['1000Mbit', undefined, '1000Mbit']);
});
