/** The requests of the lxc driver, as far as a test without an engine can check them. */
import { verify } from 'unixcrypt';
import { describe, expect, it } from 'vitest';
import type { MachineSpec } from '../../../provisioning/servers/drivers/driver.ts';
import { networkConfigOf, userDataOf } from '../../../provisioning/servers/drivers/lxc/cloud-init.ts';
import { observationsOf, requireNoCopy } from '../../../provisioning/servers/drivers/lxc/copy.ts';
import { endpointOf } from '../../../provisioning/servers/drivers/lxc/endpoint.ts';
import {
  answering,
  instanceOf,
  keyOf,
  MARK,
  machinesIn,
  nameOf,
  observationOf,
  specDigestOf,
} from '../../../provisioning/servers/drivers/lxc/instance.ts';
import { readingOf, speedOf } from '../../../provisioning/servers/drivers/lxc/meter.ts';
import { predecessorIn } from '../../../provisioning/servers/drivers/lxc/predecessor.ts';

const SPEC: MachineSpec = {
  order: 'SRV-5JX368RQN8',
  generation: 2,
  kind: 'VPS',
  serviceCode: 'vps-1',
  region: 'zrh',
  image: 'debian-13',
  hostname: 'web.example.org',
  sshPublicKeys: ['ssh-ed25519 AAAA ada@laptop'],
  rootPassword: null,
  userData: null,
  size: { vcpus: 1, memoryMb: 2048, diskGb: 25 },
  host: null,
  network: {
    mac: '02:00:00:00:00:01',
    ipv4: { address: '192.0.2.7', prefixLength: 24, gateway: '192.0.2.1' },
    ipv6: { address: '2001:db8::1', prefixLength: 64, gateway: null },
    ipv6Prefix: '2001:db8::/64',
  },
};
const configIn = (userData: string) => JSON.parse(/#cloud-config\n(\{[\s\S]*?\n\})/.exec(userData)![1]!);

describe('cloud-init', () => {
  it('gets the keys of the order, and a root user without a password', () => {
    expect(configIn(userDataOf(SPEC))).toMatchObject({
      hostname: 'web.example.org',
      prefer_fqdn_over_hostname: true,
      manage_etc_hosts: 'localhost',
      ssh_pwauth: false,
      users: [{ name: 'root', lock_passwd: true, ssh_authorized_keys: SPEC.sshPublicKeys }],
    });
  });

  it('gets a password only as a hash', () => {
    const told = userDataOf({ ...SPEC, rootPassword: 'correct horse 9' });
    expect(told).not.toContain('correct horse');
    const { ssh_pwauth, users } = configIn(told);
    expect(ssh_pwauth).toBe(true);
    expect(verify('correct horse 9', users[0].hashed_passwd)).toBe(true);
  });

  it.each([
    ['a script', '#!/bin/sh\necho "--boundary" >/root/x\n', 'Content-Type: text/plain'],
    [
      'a cloud-config',
      '#cloud-config\npackages: [git]\n',
      'Merge-Type: list(append)+dict(no_replace,recurse_list)+str()',
    ],
    [
      'an archive',
      'Content-Type: multipart/mixed; boundary="x"\nMIME-Version: 1.0\n\n--x\n',
      '\nContent-Type: multipart',
    ],
  ])('gets %s of the customer behind ours, unchanged', (_name, userData, header) => {
    const told = userDataOf({ ...SPEC, userData });
    const [, boundary] = /^Content-Type: multipart\/mixed; boundary="(\w+)"\nMIME-Version: 1\.0\n\n/.exec(told)!;
    const [, ours, theirs, end] = told.split(`--${boundary}`);
    expect(configIn(ours!).users[0].ssh_authorized_keys).toEqual(SPEC.sshPublicKeys);
    expect(theirs).toContain(header);
    expect(theirs!.trimEnd().endsWith(userData.trimEnd())).toBe(true);
    expect(end).toBe('--\n');
  });

  it('gets the addresses, and a gateway only if the network has one', () => {
    expect(JSON.parse(networkConfigOf(SPEC.network, ['9.9.9.9']))).toEqual({
      version: 2,
      ethernets: {
        eth0: {
          addresses: ['192.0.2.7/24', '2001:db8::1/64'],
          gateway4: '192.0.2.1',
          nameservers: { addresses: ['9.9.9.9'] },
        },
      },
    });
  });
});

describe('An instance', () => {
  it('is named after its order and generation, which identify it while its member is offline', () => {
    expect(nameOf(SPEC)).toBe('srv-5jx368rqn8-2');
    const lost = { name: nameOf(SPEC), status: 'Error', location: 'n2' };
    const key = keyOf(lost)!;
    expect(key).toEqual({ order: SPEC.order, generation: 2 });
    expect(observationOf(lost, key, 'n1')).toMatchObject({ phase: 'unknown', host: 'n2', proven: false });
    // A member that answers reports our mark, so an instance without it is foreign.
    expect(keyOf({ ...lost, status: 'Running', config: {} })).toBeUndefined();
  });

  it('is there and on if its virtual machine has failed or hangs, so it can be reset and deleted', () => {
    const { config } = instanceOf(SPEC, OWN);
    const failed = { name: nameOf(SPEC), status: 'Error', location: 'n2', config: { ...config, [MARK.ready]: '1' } };
    expect(observationOf(failed, keyOf(failed)!, 'n1')).toMatchObject({ phase: 'present', power: 'on', host: 'n2' });
    expect(answering(failed)).toBe(failed);
    const half = { ...failed, config };
    expect(observationOf(half, keyOf(half)!, 'n1')).toMatchObject({ phase: 'incomplete', power: 'on' });
    expect(() => answering({ ...failed, config: {} })).toThrow('n2 does not answer');
  });

  it('counts itself while its engine copies it to another member, and its copy when it is gone', () => {
    const { config } = instanceOf(SPEC, OWN);
    const marks = { ...config, [MARK.ready]: '1' };
    const own = { name: nameOf(SPEC), status: 'Stopped', location: 'n1', config: marks };
    const copy = { ...own, name: 'lxd-move-of-e6126878', location: 'n2' };
    const silent = { name: own.name, status: 'Error', location: 'n1' };
    expect(machinesIn([copy, own])).toEqual([own]);
    expect(machinesIn([copy, silent])).toEqual([silent]);
    expect(machinesIn([copy])).toEqual([copy]);
    expect(() => requireNoCopy([copy, own], SPEC, own.name)).toThrow('left lxd-move-of-e6126878 on n2');
    requireNoCopy([own], SPEC, own.name);
    requireNoCopy([copy], SPEC, copy.name);
    const stays = `An earlier move of ${own.name} left ${copy.name} on n2. Delete the copy if ${own.name} is whole.`;
    expect(observationsOf([copy, own], 'n1')).toMatchObject([{ order: SPEC.order, host: 'n1', stays }]);
    for (const alone of [own, copy]) expect(observationsOf([alone], 'n1')[0]).not.toHaveProperty('stays');
  });

  it('keeps its digest for another host, password or user data, and for no other change', () => {
    const digest = specDigestOf(SPEC);
    expect(specDigestOf({ ...SPEC, host: 'n2', rootPassword: 'x', userData: '#!/bin/sh' })).toBe(digest);
    expect(specDigestOf({ ...SPEC, hostname: 'other' })).not.toBe(digest);
  });

  const PLACE = { pool: 'p', nameservers: [], polices: true };
  const BRIDGE = { ...PLACE, network: { name: 'br0', managed: false, ipv6: true, config: {} } };
  const OWN = { ...PLACE, network: { name: 'lxdbr0', managed: true, ipv6: false, config: {} } };
  const traits = { virtualization: 'container', nesting: true, portMbps: 250 } as const;

  it('may use only its own MAC and addresses, and reaches no other card, in both kinds of network', () => {
    const filters = {
      ...{ 'security.mac_filtering': 'true', 'security.ipv4_filtering': 'true', 'security.ipv6_filtering': 'true' },
      ...{ 'security.port_isolation': 'true', type: 'nic', name: 'eth0', hwaddr: '02:00:00:00:00:01' },
    };
    expect(instanceOf({ ...SPEC, traits }, BRIDGE).devices.eth0).toEqual({
      ...{ ...filters, nictype: 'bridged', parent: 'br0', 'limits.ingress': '250Mbit', 'limits.egress': '250Mbit' },
      ...{ 'ipv4.address': '192.0.2.7', 'ipv6.address': '2001:db8::1' },
    });
    const { eth0 } = instanceOf(SPEC, { ...OWN, polices: false }).devices;
    const own = { network: 'lxdbr0', 'ipv4.address': '192.0.2.7', 'limits.ingress': '1000Mbit' };
    expect(eth0).toEqual({ ...filters, ...own });
    const without = { ...SPEC, network: { ...SPEC.network, ipv4: null } };
    expect(instanceOf(without, BRIDGE).devices.eth0).toMatchObject({ ...filters, 'ipv4.address': 'none' });
  });

  it('has limits of its tier, user ids of its own, and containers inside only if the tier says so', () => {
    const { config, devices } = instanceOf(SPEC, OWN);
    expect(config).toMatchObject({
      ...{ 'limits.cpu': '1', 'limits.memory': '2048MiB', 'limits.processes': '8192' },
      ...{ 'security.idmap.isolated': 'true', 'security.nesting': 'false' },
    });
    expect(devices.root).toMatchObject({ size: '25GiB', 'limits.read': '100MB', 'limits.write': '100MB' });
    expect(instanceOf({ ...SPEC, traits }, OWN).config).toMatchObject({ 'security.nesting': 'true' });
  });

  it('is a virtual machine with its own image and a disk for cloud-init if its tier says kvm', () => {
    const virtual = { ...SPEC, traits: { ...traits, virtualization: 'kvm' } } as const;
    const { type, source, config, devices } = instanceOf(virtual, OWN);
    expect({ type, source }).toEqual({ type: 'virtual-machine', source: { type: 'image', alias: 'debian-13-vm' } });
    expect(devices).toMatchObject({ 'cloud-init': { type: 'disk', source: 'cloud-init:config' } });
    expect(Object.keys(config).filter((name) => /^(limits|security)\./.test(name))).toEqual([
      ...['limits.cpu', 'limits.memory', 'security.secureboot', 'security.agent.metrics'],
    ]);
    // Root in the machine may replace the agent, which could make up counters or keep the engine waiting.
    expect(config).toMatchObject({ 'security.agent.metrics': 'false' });
  });
});

describe('A failed rebuild', () => {
  const instance = (name: string, config: object) => ({
    ...{ name, status: 'Stopped', location: 'none' },
    config: Object.fromEntries(Object.entries(config).map(([key, value]) => [`user.freehold-${key}`, value])),
  });
  const parked = (name: string, change: string | undefined, more: object = {}) =>
    instance(name, { parked: JSON.stringify({ change, power: 'on', nic: {} }), ...more });

  it('gives back the machine that it was to replace, and none of an earlier rebuild', () => {
    const [older, newer] = [parked('older', 'change-1'), parked('newer', 'change-2')];
    const unfinished = instance('new', { change: 'change-2' });
    expect(predecessorIn([older, newer], 'change-2')).toBe(newer);
    expect(predecessorIn([newer, unfinished])).toBe(newer);
    expect(predecessorIn([older, unfinished])).toBeUndefined();
    expect(predecessorIn([unfinished])).toBeUndefined();
  });

  it('gives back a machine of an older version, and rather one that is not stuck', () => {
    const old = parked('old', undefined);
    expect(predecessorIn([instance('new', { change: 'change-2' }), old])).toBe(old);
    expect(predecessorIn([parked('stuck', 'change-1', { stuck: '1' }), old])).toBe(old);
  });
});

describe('An endpoint', () => {
  it('is a socket, or HTTPS with certificates', () => {
    const tls = { certificate: 'c', key: 'k', serverCertificate: 's' };
    expect(endpointOf('unix:/run/lxd.socket', undefined)).toEqual({ socketPath: '/run/lxd.socket' });
    expect(endpointOf('https://[2001:db8::1]:8443', tls)).toEqual({ host: '2001:db8::1', port: 8443, tls });
    expect(() => endpointOf('https://a:8443', undefined)).toThrow('needs certificates');
  });
});

describe('A reading', () => {
  const { order, generation } = SPEC;
  const counters = { bytes_sent: 700, bytes_received: 300, packets_sent: 9 };
  const card = { host_name: 'veth1', counters };
  const instance = {
    ...{ name: nameOf(SPEC), status: 'Running', location: 'n1', type: 'container' },
    config: {
      ...{ 'user.freehold-order': order, 'user.freehold-generation': String(generation), 'user.freehold-ready': '1' },
      'volatile.eth0.host_name': 'veth1',
    },
    devices: { eth0: { 'limits.ingress': '1000Mbit', 'limits.egress': '1000Mbit' } },
    state: { pid: 17, cpu: { usage: 5 }, memory: { usage: 6 }, disk: { root: { usage: 7 } }, network: { eth0: card } },
  };
  const network = (cards: Record<string, typeof card>) =>
    readingOf({ ...instance, state: { ...instance.state, network: cards } })[0];
  const fake = { host_name: '', counters: { ...counters, bytes_sent: 1 } };

  it('has the counters of the card, from the side of the machine', () => {
    expect(readingOf(instance)).toEqual([
      {
        ...{ order, generation, epoch: `${instance.name} n1 17`, portMbps: 1000 },
        ...{ sentBytes: 700, receivedBytes: 300, sentPackets: 9, cpuNs: 5, memoryBytes: 6, diskBytes: 7 },
      },
    ]);
  });

  it('comes from each machine that is on, also from one whose root set its state by the guest API', () => {
    for (const status of ['Ready', 'Frozen', 'Stopping'])
      expect(readingOf({ ...instance, status })).toMatchObject([{ order, sentBytes: 700, cpuNs: 5 }]);
    const { state: _, ...unread } = instance;
    expect(readingOf({ ...unread, status: 'Ready' })).toMatchObject([{ order, isUnread: true }]);
  });

  it('finds the card under any name, and counts each card with the same other end', () => {
    expect(network({ eth0: fake, other: card })?.sentBytes).toBe(700);
    const alike = { host_name: 'veth1', counters: { ...counters, bytes_sent: 5000 } };
    expect(network({ eth0: alike, other: card })).toMatchObject({ sentBytes: 5700, isDisguised: true });
  });

  it('has no counters of a hidden card', () => {
    for (const cards of [{}, { eth0: fake }] as Record<string, typeof card>[])
      expect(network(cards)).toMatchObject({ sentBytes: null, cpuNs: 5 });
  });

  it('takes the zeros of a virtual machine without an agent for unknown', () => {
    const state = { pid: 17, cpu: { usage: 0 }, memory: { usage: 0 }, disk: null, network: { eth0: card } };
    const unknown = { cpuNs: null, memoryBytes: null, diskBytes: null, sentBytes: 700 };
    expect(readingOf({ ...instance, type: 'virtual-machine', state })).toMatchObject([unknown]);
  });

  it('leaves out machines that are off, unfinished, being replaced, or on a silent member', () => {
    const config = (more: object) => ({ ...instance, config: { ...instance.config, ...more } });
    const others = [
      { ...instance, status: 'Stopped', state: { ...instance.state, pid: 0 } },
      { ...instance, status: 'Stopped', state: undefined },
      { ...instance, status: 'Stopping', state: { ...instance.state, pid: -1 } },
      { ...instance, status: 'Error', state: null },
      config({ 'user.freehold-ready': '' }),
      config({ 'user.freehold-parked': '{}' }),
    ];
    expect(others.flatMap(readingOf)).toEqual([]);
  });

  it('is followed by another speed, which keeps the rest of the card', () => {
    const devices = { eth0: { hwaddr: 'x', 'limits.ingress': '1000Mbit', 'limits.egress': '1000Mbit' } };
    const slow = { hwaddr: 'x', 'limits.ingress': '10Mbit', 'limits.egress': '10Mbit' };
    expect(speedOf({ ...instance, devices }, 10)).toEqual({ eth0: slow });
    const { 'limits.egress': _, ...unpoliced } = slow;
    expect(speedOf({ ...instance, devices: { eth0: { hwaddr: 'x' } } }, 10)).toEqual({ eth0: unpoliced });
  });
});
