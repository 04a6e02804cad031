/**
 * The seed of a new system, in the form of cloud-init's NoCloud data source. Text is quoted as JSON, which is YAML, so text
 * of a customer cannot break out of its line.
 */
import type { MachineNetwork } from '../drivers/driver.ts';

export interface Seed {
  hostname: string;
  sshPublicKeys: string[];
  rootPassword: string | null;
  userData: string | null;
  network: MachineNetwork;
}

const quoted = (text: string) => JSON.stringify(text);
const lines = (...all: (string | false)[]) =>
  all
    .filter((line) => line !== false)
    .join('\n')
    .concat('\n');

/** @param instance cloud-init starts from the beginning when it changes */
export const metaData = ({ hostname, sshPublicKeys }: Seed, instance: string): string =>
  lines(
    `instance-id: ${quoted(instance)}`,
    `local-hostname: ${quoted(hostname)}`,
    'public-keys:',
    ...sshPublicKeys.map((key) => `  - ${quoted(key)}`),
  );

export const userData = ({ userData }: Seed): string => userData ?? '#cloud-config\n{}\n';

/** The configuration that Freehold adds. The customer's user data takes precedence. */
export const vendorData = ({ rootPassword, sshPublicKeys }: Seed, bootedUrl: string): string =>
  lines(
    '#cloud-config',
    'disable_root: false',
    ...(rootPassword === null
      ? []
      : [
          'ssh_pwauth: true',
          'chpasswd:',
          '  expire: false',
          '  users:',
          `    - {name: root, password: ${quoted(rootPassword)}, type: text}`,
        ]),
    ...(sshPublicKeys.length ? ['ssh_authorized_keys:', ...sshPublicKeys.map((key) => `  - ${quoted(key)}`)] : []),
    'phone_home:',
    `  url: ${quoted(bootedUrl)}`,
    '  post: [instance_id]',
    '  tries: 30',
  );

/** Static addresses if their gateways are known, otherwise DHCP. @param mac of the card that boots from the network */
export function networkConfig({ network: { ipv4, ipv6 } }: Seed, mac: string): string {
  const card = (...config: string[]) =>
    lines(
      'version: 2',
      'ethernets:',
      '  port0:',
      `    match: {macaddress: ${quoted(mac)}}`,
      ...config.map((line) => `    ${line}`),
    );
  const known = [ipv4, ipv6].filter((one) => one?.gateway);
  if (!known.length) return card('dhcp4: true');
  return card(
    ...(ipv4?.gateway ? [] : ['dhcp4: true']),
    `addresses: [${known.map((one) => quoted(`${one!.address}/${one!.prefixLength}`)).join(', ')}]`,
    'routes:',
    ...known.map((one) => `  - {to: ${one === ipv4 ? '0.0.0.0/0' : '"::/0"'}, via: ${quoted(one!.gateway!)}}`),
  );
}
