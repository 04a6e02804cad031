/**
 * The network of the machines, in which each is apart. The engine filters every network card. On its own bridge it also
 * follows rules. They close the ways to the host, to other machines, and to mail servers.
 */
import { networkInterfaces } from 'node:os';
import type { MachineNetwork } from '../driver.ts';
import { type Engine, EngineError, type LxcClient } from './client.ts';

/** The engine's network of machines. */
export interface Network {
  name: string;
  /** Whether the engine manages it, and runs DHCP there. Otherwise it is a bridge of the host. */
  managed: boolean;
  /** Whether machines can have IPv6 addresses in it. */
  ipv6: boolean;
  /** The settings of a managed network. Restricted certificates do not see them. */
  config: Readonly<Record<string, string>>;
}

const pathOf = (network: string) => `/1.0/networks/${encodeURIComponent(network)}`;

/**
 * @param project the project of the network; default: ours
 * @throws EngineError if there is no such network
 */
export async function networkOf(
  client: LxcClient,
  name: string,
  signal: AbortSignal,
  project?: string,
): Promise<Network> {
  const { managed, config } = await client.get<Pick<Network, 'managed' | 'config'>>(pathOf(name), signal, project);
  // On its own bridges the engine accepts only addresses of the bridge's network. Its DHCP server needs a /64 there, so
  // prefixes of machines do not fit.
  return { name, managed, ipv6: !managed, config };
}

export const NIC = 'eth0';
/** The limit of sending. */
export const EGRESS = 'limits.egress';

interface Speed {
  /** Megabits a second in each direction. */
  portMbps: number;
  /** Whether the kernel of the engine can limit what a machine sends. */
  polices: boolean;
}

/** The limits of a network card by its tier. */
export function ratesOf({ portMbps, polices }: Speed): Record<string, string> {
  const rate = `${portMbps}Mbit`;
  return { 'limits.ingress': rate, ...(polices && { [EGRESS]: rate }) };
}

const APART = {
  'security.mac_filtering': 'true',
  'security.ipv4_filtering': 'true',
  'security.ipv6_filtering': 'true',
  'security.port_isolation': 'true',
} as const;

/**
 * A card without an IPv6 address, on the engine's own bridge or another. On its own bridge, `none` would prevent each start after
 * a restart of LXD 5.0. Without the key, the engine filters all IPv6 there, because its bridge has none.
 */
export const withoutIpv6 = ({ 'ipv6.address': _, ...nic }: Record<string, string>): Record<string, string> =>
  nic.network ? nic : { ...nic, 'ipv6.address': 'none' };

/** Whether a card lacks a filter, or may not start again, because an older version made it. */
export const isLoose = (nic: Record<string, string>): boolean =>
  Object.entries(APART).some(([name, value]) => nic[name] !== value) ||
  (nic.network !== undefined && nic['ipv6.address'] === 'none');

/** An older card with all filters, and with its own addresses. */
export function tightened(nic: Record<string, string>): Record<string, string> {
  const has = (nic['ipv6.address'] ?? 'none') !== 'none';
  return { 'ipv4.address': 'none', ...(has ? nic : withoutIpv6(nic)), ...APART };
}

/**
 * The network card of a machine. It sends only from its own MAC and addresses, and never a router advertisement. A
 * missing family of addresses is filtered, too. It reaches no other card on the bridge.
 */
export function nicOf(own: MachineNetwork, network: Network, speed: Speed): Record<string, string> {
  const card = {
    type: 'nic',
    name: NIC,
    ...(network.managed ? { network: network.name } : { nictype: 'bridged', parent: network.name }),
    hwaddr: own.mac,
    'ipv4.address': own.ipv4?.address ?? 'none',
    ...APART,
    ...ratesOf(speed),
  };
  return network.ipv6 && own.ipv6 ? { ...card, 'ipv6.address': own.ipv6.address } : withoutIpv6(card);
}

/** Whether the engine failed because its kernel lacks the module that limits what a machine sends. */
export const cannotPolice = (error: unknown): boolean =>
  error instanceof EngineError && /tc filter .* police /.test(error.message);

/** Milliseconds until the driver tries a member again: its operator may have loaded the module. */
const UNPOLICED_MS = 600_000;

/** The members whose kernels lack that module, by a start that failed for it. A single engine is the member `none`. */
export class Unpoliced {
  readonly #until = new Map<string, number>();

  polices = (member: string | null | undefined): boolean => (this.#until.get(member || 'none') ?? 0) <= Date.now();

  note(location: string): void {
    const member = location || 'none';
    if (this.polices(member))
      process.emitWarning(`Machines on the member ${member} send without limit. Run there: modprobe act_police`);
    this.#until.set(member, Date.now() + UNPOLICED_MS);
  }
}

/** The name of our rules on the engine. */
const RULES = 'freehold';
/** The setting of the project by which the operator says which network keeps machines apart. */
export const ISOLATED = 'user.freehold-isolated';

/**
 * Sets the rules on the engine's own bridge, if we may.
 * @param vouched the network that the operator vouches for
 * @returns warnings for the operator
 */
export async function isolate(
  engine: Engine,
  network: Network,
  { openMail, vouched }: { openMail: boolean; vouched: string | undefined },
  signal: AbortSignal,
): Promise<string[]> {
  const { client, command } = engine;
  if (network.managed && !client.fingerprint) {
    await setRules(engine, network, openMail, signal);
    return [];
  }
  if (vouched === network.name) return [];
  return [
    `The driver cannot close the ways from machines on ${network.name} to the host, and to port 25. ` +
      'Set the rules of docs/operate/lxd.md. ' +
      `Then run: ${command} project set ${client.project} ${ISOLATED}=${network.name}`,
  ];
}

/** A rule of an ACL, as the engine stores it. */
interface Rule {
  action: string;
  state: string;
  protocol?: string;
  source?: string;
  destination?: string;
  destination_port?: string;
}

/** The rules for packets from machines (`egress`), and for packets to them. */
interface Rules {
  egress: Rule[];
  ingress: Rule[];
}

async function setRules(engine: Engine, network: Network, openMail: boolean, signal: AbortSignal): Promise<void> {
  const { client } = engine;
  const rules = rulesOf(network, await hostAddresses(engine, signal), openMail);
  const path = `/1.0/network-acls/${RULES}`;
  const found = await client.find<Rules>(path, signal);
  if (!found) await client.call('POST', '/1.0/network-acls', { name: RULES, ...rules }, signal);
  else if (textOf(found) !== textOf(rules)) await client.call('PUT', path, rules, signal);
  const names = (network.config['security.acls'] ?? '').split(',').filter(Boolean);
  if (names.includes(RULES)) return;
  const config = {
    // Without these the engine rejects what no rule allows.
    'security.acls.default.ingress.action': 'allow',
    'security.acls.default.egress.action': 'allow',
    ...network.config,
    'security.acls': [...names, RULES].join(','),
  };
  await client.call('PATCH', pathOf(network.name), { config }, signal);
}

const KEYS = ['action', 'state', 'protocol', 'source', 'destination', 'destination_port'] as const;
const textOf = ({ egress, ingress }: Rules) =>
  [egress, ingress].map((rules) => rules.map((rule) => KEYS.map((key) => rule[key]).join()).join(' ')).join('; ');

const ALL_IPV6 = '::/0';
/** The destinations of IPv4 by which a machine would reach the host and routers without naming them. */
const ALL_HOSTS = '224.0.0.0/4,255.255.255.255';

/** A bridge with IPv6 gives each machine an address that the books do not know. The rules make all of them useless. */
function rulesOf(network: Network, host: readonly string[], openMail: boolean): Rules {
  const reject = { action: 'reject', state: 'enabled' };
  const [bridge = ''] = [network.config['ipv4.address']];
  const destination = [...new Set([bridge.split('/')[0]!, ...host])].filter(Boolean).sort().join(',');
  const egress = [
    // A machine may ping its gateway.
    ...['tcp', 'udp'].map((protocol) => ({ ...reject, protocol, destination })),
    { ...reject, destination: around(bridge) },
    { ...reject, destination: ALL_HOSTS },
    ...(openMail ? [] : [{ ...reject, protocol: 'tcp', destination_port: '25' }]),
    { ...reject, destination: ALL_IPV6 },
  ];
  return { egress, ingress: [{ ...reject, source: ALL_IPV6 }] };
}

/** The addresses of an IPv4 network without its gateway, as ranges. @param bridge such as 10.79.0.1/24 */
function around(bridge: string): string {
  const [address, length] = bridge.split('/') as [string, string];
  const gateway = address.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0);
  const size = 2 ** (32 - Number(length));
  const first = gateway - (gateway % size);
  const text = (value: number) => [24, 16, 8, 0].map((bits) => Math.floor(value / 2 ** bits) % 256).join('.');
  return [
    [first, gateway - 1],
    [gateway + 1, first + size - 1],
  ]
    .filter(([from, to]) => from! <= to!)
    .map(([from, to]) => (from === to ? text(from!) : `${text(from!)}-${text(to!)}`))
    .join(',');
}

/**
 * All addresses of the host, and those by which the members of its cluster reach each other. A member tells no address of
 * another one.
 */
async function hostAddresses({ client, clustered }: Engine, signal: AbortSignal): Promise<string[]> {
  const get = <T>(path: string) => client.get<T>(path, signal, 'default');
  const links = await get<{ name: string }[]>('/1.0/networks?recursion=1');
  const states = await Promise.all(
    links.map(({ name }) => get<{ addresses: { address: string; scope: string }[] | null }>(`${pathOf(name)}/state`)),
  );
  const members = clustered ? await get<{ url: string }[]>('/1.0/cluster/members?recursion=1') : [];
  return [
    ...states
      .flatMap(({ addresses }) => addresses ?? [])
      .flatMap(({ address, scope }) => (scope === 'global' ? [address] : [])),
    ...ownAddresses(),
    ...members.map(({ url }) => new URL(url).hostname.replace(/^\[|\]$/g, '')),
  ];
}

/** The addresses of this host, whose socket the driver uses. Incus does not list some of its cards, such as tunnels. */
const ownAddresses = (): string[] =>
  Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    // Those with a scope work on one link only. The engine tells those of the loopback.
    .filter(({ internal, scopeid }) => !internal && !scopeid)
    .map(({ address }) => address);
