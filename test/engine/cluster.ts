/**
 * Three LXD members in one cluster. Each has its own network namespace on the segment 10.78.0.0/24, like three hosts.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { World } from './customer.ts';
import { FOLDER, importImage, type Lxd, startLxd } from './lxd.ts';

export interface Cluster {
  members: Lxd[];
  /** Files for HTTPS endpoints. */
  files: { certificate: string; key: string; server: string };
  endpoints: string[];
}

const sh = (script: string) => execFileSync('sh', ['-ec', script]);
const addressOf = (n: number) => `10.78.0.${n}`;

/**
 * Starts members n1, n2 and n3. Machines are on their bridge br0, and the test itself has the address .254 there. For
 * IPv6 the test is the router fe80::1, with its own network behind it.
 * @param within as for `startLxd`, by the name of a member
 */
export async function startCluster(within: (name: string) => string[] = () => []): Promise<Cluster> {
  sh(`ip link add br0 type bridge; ip addr add 10.78.0.254/24 dev br0; ip link set br0 up
    ip addr add fe80::1/64 dev br0 nodad; ip addr add 2001:db8:78::1/64 dev br0 nodad; ip -6 route replace 2001:db8:79::/56 dev br0`);
  const members: Lxd[] = [];
  for (const n of [1, 2, 3]) {
    sh(`ip netns add n${n}; ip link add v${n} type veth peer name eth0 netns n${n}; ip link set v${n} master br0 up
      ip -n n${n} link add br0 type bridge; ip -n n${n} link set eth0 master br0 up
      ip -n n${n} addr add ${addressOf(n)}/24 dev br0; ip -n n${n} link set br0 up; ip -n n${n} link set lo up`);
    members.push(await startLxd(`n${n}`, [...within(`n${n}`), ...withinNetwork(n)]));
  }
  const [first, ...others] = members as [Lxd, ...Lxd[]];
  const https = `${addressOf(1)}:8443`;
  await first.call('PATCH', '/1.0', { config: { 'core.https_address': https, 'cluster.https_address': https } });
  await first.call('PUT', '/1.0/cluster', { server_name: 'n1', enabled: true });
  await first.call('POST', '/1.0/storage-pools', { name: 'local', driver: 'dir' });
  for (const [index, member] of others.entries()) await joinCluster(first, member, index + 2);
  // The engine refuses this key before there is a cluster, and accepts no lower value.
  await first.call('PATCH', '/1.0', { config: { 'cluster.offline_threshold': '11' } });
  await importImage(first, ['debian-13', 'alpine-3.22']);
  return { members, files: await trust(first), endpoints: [1, 2, 3].map((n) => `https://${addressOf(n)}:8443`) };
}

/** A separate /sys shows this network; the control groups are those of the host. */
function withinNetwork(n: number): string[] {
  const script = join(FOLDER, `within-n${n}`);
  writeFileSync(
    script,
    `#!/bin/sh
exec unshare -m --propagation slave nsenter --net=/run/netns/n${n} sh -ec '
  mount -t sysfs sysfs /sys
  mount --rbind ${FOLDER}/cgroup /sys/fs/cgroup
  exec "$@"' within "$@"
`,
    { mode: 0o755 },
  );
  return [script];
}

interface Token {
  fingerprint: string;
  addresses: string[];
  secret: string;
  expiresAt: string;
}

async function joinCluster(first: Lxd, member: Lxd, n: number): Promise<void> {
  const name = `n${n}`;
  // The operation holds the token. It stays open until the new member presents the token.
  const { metadata } = (await first.begin('POST', '/1.0/cluster/members', { server_name: name })) as {
    metadata: Token;
  };
  const { environment } = (await first.call('GET', '/1.0')) as { environment: { certificate: string } };
  const token = { ...metadata, server_name: name, expires_at: metadata.expiresAt };
  await member.call('PUT', '/1.0/cluster', {
    server_name: name,
    enabled: true,
    server_address: `${addressOf(n)}:8443`,
    cluster_address: `${addressOf(1)}:8443`,
    cluster_certificate: environment.certificate,
    // The name in LXD 5.0; newer versions and Incus call it cluster_token.
    cluster_password: Buffer.from(JSON.stringify(token)).toString('base64'),
    member_config: [{ entity: 'storage-pool', name: 'local', key: 'source', value: '' }],
  });
}

/** Makes a client certificate that the cluster trusts, and fetches the certificate of the cluster. */
async function trust(first: Lxd): Promise<Cluster['files']> {
  const files = {
    certificate: join(FOLDER, 'client.crt'),
    key: join(FOLDER, 'client.key'),
    server: join(FOLDER, 'cluster.crt'),
  };
  sh(`openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=freehold \
    -keyout ${files.key} -out ${files.certificate} 2>/dev/null`);
  const certificate = readFileSync(files.certificate, 'utf8').replace(/-----.*-----|\n/g, '');
  const config = {
    'features.images': 'false',
    'features.profiles': 'true',
    restricted: 'true',
    'restricted.devices.nic': 'allow',
    'restricted.cluster.target': 'allow',
  };
  await first.call('POST', '/1.0/projects', { name: 'freehold', config });
  const trusted = { type: 'client', name: 'freehold', certificate, restricted: true, projects: ['freehold'] };
  await first.call('POST', '/1.0/certificates', trusted);
  const { environment } = (await first.call('GET', '/1.0')) as { environment: { certificate: string } };
  writeFileSync(files.server, environment.certificate);
  return files;
}

interface Host {
  name: string;
  state: string;
  machines: number;
}

/** The operator's queries and changes of the hosts. */
export function operatorOf({ operator }: World) {
  const change = async (mutation: string) => {
    const { errors } = await operator(`mutation { ${mutation} { name } }`);
    if (errors) throw new Error(`${mutation}: ${JSON.stringify(errors)}`);
  };
  return {
    hosts: async () => (await operator('{ hosts { name state machines } }')).data.hosts as Host[],
    /** Activates these hosts, and drains the others. */
    sellOn: async (...names: string[]) => {
      for (const name of ['n1', 'n2', 'n3'])
        await change(`${names.includes(name) ? 'activateHost' : 'drainHost'}(name: "${name}")`);
    },
    evacuate: (name: string) => change(`evacuateHost(name: "${name}")`),
    resize: (name: string, memoryMb: number) => change(`updateHost(name: "${name}", input: {memoryMb: ${memoryMb}})`),
  };
}

/** Deletes the copies that dead engines left, as the guide says. @returns whether there was one */
export async function deleteCopies({ members }: Cluster, { operator }: World): Promise<boolean> {
  const { troubles } = (await operator('{ troubles { trouble } }')).data as { troubles: { trouble: string }[] };
  const copies = troubles.flatMap(({ trouble }) => /left (\S+) on/.exec(trouble)?.[1] ?? []);
  for (const copy of copies) await members[2]!.call('DELETE', `/1.0/instances/${copy}?project=freehold`);
  return copies.length > 0;
}
