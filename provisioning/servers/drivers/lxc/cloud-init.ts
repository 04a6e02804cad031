/**
 * The data of cloud-init in a machine: `user-data` with the keys of the order, and `network-config`. Both are JSON, which is
 * YAML. The customer's user data comes second. It adds to ours, and cannot lock the customer out.
 */
import { createHash } from 'node:crypto';
import { encrypt } from 'unixcrypt';
import type { MachineNetwork, MachineSpec } from '../driver.ts';

/** Appends lists to ours, and keeps our values (cloud-init, "Merging user-data sections"). */
const MERGE = 'list(append)+dict(no_replace,recurse_list)+str()';

export function userDataOf(spec: MachineSpec): string {
  const { order, userData } = spec;
  const ours = `#cloud-config\n${JSON.stringify(cloudConfigOf(spec), undefined, 1)}\n`;
  if (!userData) return ours;
  const boundary = createHash('sha256').update(`${order}\n${userData}`).digest('hex');
  // cloud-init detects the kind of plain text. MIME archives are nested unchanged.
  const theirs = /^(content-type|mime-version):/i.test(userData)
    ? userData
    : `Content-Type: text/plain; charset="utf-8"\nMerge-Type: ${MERGE}\n\n${userData}`;
  return [
    `Content-Type: multipart/mixed; boundary="${boundary}"\nMIME-Version: 1.0\n`,
    `--${boundary}\nContent-Type: text/cloud-config; charset="utf-8"\n\n${ours}`,
    `--${boundary}\n${theirs}`,
    `--${boundary}--\n`,
  ].join('\n');
}

const cloudConfigOf = ({ hostname, sshPublicKeys, rootPassword }: MachineSpec) => ({
  hostname,
  // The whole ordered name, not only its first label. The machine resolves it without DNS.
  prefer_fqdn_over_hostname: true,
  manage_etc_hosts: 'localhost',
  disable_root: false,
  ssh_pwauth: rootPassword !== null,
  users: [
    {
      name: 'root',
      ...(rootPassword === null
        ? { lock_passwd: true }
        : // SHA-512 (crypt(5)): the engine stores user data, and must not know the password.
          { lock_passwd: false, hashed_passwd: encrypt(rootPassword) }),
      ssh_authorized_keys: sshPublicKeys,
    },
  ],
  // Some images allow root only with a key, even with ssh_pwauth.
  ...(rootPassword !== null && {
    bootcmd: [
      'mkdir -p /etc/ssh/sshd_config.d && echo "PermitRootLogin yes" > /etc/ssh/sshd_config.d/10-root-password.conf',
    ],
  }),
});

/** Version 2 ("Networking config Version 2"). All versions of cloud-init know `gateway4`. */
export function networkConfigOf({ ipv4, ipv6 }: MachineNetwork, nameservers: readonly string[]): string {
  const addresses = [ipv4, ipv6].flatMap((one) => one ?? []);
  const eth0 = {
    addresses: addresses.map(({ address, prefixLength }) => `${address}/${prefixLength}`),
    ...(ipv4?.gateway && { gateway4: ipv4.gateway }),
    ...(ipv6?.gateway && { gateway6: ipv6.gateway }),
    ...(nameservers.length && { nameservers: { addresses: nameservers } }),
  };
  return `${JSON.stringify({ version: 2, ethernets: { eth0 } })}\n`;
}
