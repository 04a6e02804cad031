/** The service with bare-metal hosts, for two test files. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { Vault } from '../../../entities/secrets.ts';
import { bareMetalHostsOf } from '../../../provisioning/servers/netboot/hosts.ts';
import { atEnd } from '../../setup/end.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { freePort, newFolder, removeFolder } from '../../setup/spawn.ts';
import { DISKS, writeSums } from './room.ts';

const SECRET_KEY = Buffer.alloc(32, 9).toString('base64');
const FIELDS = 'name state engine bmc { protocol address certificateSha256 } mac disks firmware bootNetworkIsolated';
const ADD = `mutation ($input: AddHostInput!) { addHost(input: $input) { ${FIELDS} } }`;
const UPDATE = `mutation ($name: HostName!, $input: UpdateHostInput!) { updateHost(name: $name, input: $input) { ${FIELDS} } }`;
export const BMC = { protocol: 'IPMI', address: 'BMC-1.example:6230', user: 'ADMIN', password: 'hush, a secret' };
export const BOX = {
  ...{ name: 'b1', region: 'zrh', kind: 'DEDICATED', serviceCode: 'ded-1', bmc: BMC },
  ...{ mac: '52:54:00:AB:00:01', disks: DISKS, bootNetworkIsolated: true },
};

/** Starts one for each test file. Files may share a process, and the first would stop it for the second. */
export async function openHostWorld() {
  const folder = newFolder();
  atEnd(() => removeFolder(folder));
  for (const name of ['vmlinuz', 'initrd.img', 'debian-13.img']) writeFileSync(join(folder, name), `it is ${name}`);
  writeSums(folder);
  const port = await freePort();
  const freehold = await startFreehold({
    SECRET_KEY,
    DEDICATED_DRIVER: 'bmc',
    ALLOW_SIMULATED: 'true',
    PROVISIONING_PORT: String(port),
    NETBOOT_DIR: folder,
    LIMIT_SERVERS: '100',
  });
  const { db, newAccount, operator } = freehold;
  for (const network of [{ cidr: '192.0.2.0/24' }, { cidr: '2001:db8::/56', gateway: 'fe80::1' }])
    await operator('mutation ($input: AddAddressPoolInput!) { addAddressPool(input: $input) { id } }', {
      input: { region: 'ams', kind: 'DEDICATED', ...network },
    });
  const account = await newAccount();
  await account.fund(10_000);
  /** The operator's audit entries of a host, with their data. */
  async function audited(action: string, box: string): Promise<object[]> {
    const entries = await db.query<{ actor: string }>(
      'select actor_type as actor from audit_entry where action = $1 and resource_id = $2',
      [action, box],
    );
    const events = await db.query<{ data: object }>(
      'select data from event where type = $1 and subject = $2 order by id',
      [action, box],
    );
    expect(entries).toEqual(events.map(() => ({ actor: 'operator' })));
    return events.map(({ data }) => data);
  }
  return {
    ...freehold,
    port,
    account,
    audited,
    inventory: bareMetalHostsOf(db, new Vault(Buffer.from(SECRET_KEY, 'base64'))),
    add: (input: object = {}) => operator(ADD, { input: { ...BOX, ...input } }),
    update: (name: string, input: object) => operator(UPDATE, { name, input }),
    act: (mutation: string, name: string) =>
      operator(`mutation ($name: HostName!) { ${mutation}(name: $name) { ${FIELDS} } }`, { name }),
    override: (mutation: 'declareWiped' | 'retireBox', name: string, reason: string) =>
      operator(
        `mutation ($name: HostName!, $reason: Line!) { ${mutation}(name: $name, reason: $reason) { state note } }`,
        { name, reason },
      ),
  };
}

interface Answer {
  errors?: { extensions?: { code: string; errors?: { field: string }[] } }[];
}
export const codeOf = ({ errors }: Answer) => errors?.[0]?.extensions?.code;
export const fieldOf = ({ errors }: Answer) => errors?.[0]?.extensions?.errors?.[0]?.field;
