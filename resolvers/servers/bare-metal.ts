/** What the operator tells of a box: its controller, the card that it boots from, and its disk. */
import { X509Certificate } from 'node:crypto';
import type { Transaction } from '../../entities/database/database.ts';
import { type Bmc, bmcPasswordContext, type FIRMWARES } from '../../entities/servers/bare-metal.ts';
import type { Host } from '../../entities/servers/host.ts';
import type { Context } from '../context.ts';
import { invalid } from '../invalid.ts';

export { BMC_PROTOCOLS, FIRMWARES } from '../../entities/servers/bare-metal.ts';

export interface BoxFacts {
  /** Always as a whole: what it does not have, the controller does not have any more. */
  bmc?: Bmc | null | undefined;
  mac?: string | null | undefined;
  disk?: string | null | undefined;
  firmware?: (typeof FIRMWARES)[number] | null | undefined;
}

/** @throws ApiError validation_failed where the driver would lack something */
export function requireWhole({ bmc, mac, disk }: BoxFacts): void {
  if (!bmc) throw invalid('bmc', 'Tell how its controller is reached.');
  if (!mac) throw invalid('mac', 'Tell the MAC address that it boots from.');
  if (!disk) throw invalid('disk', 'Tell the device that systems go to, and that is wiped.');
}

/**
 * The values of the columns from bmc_protocol to firmware; null for what is not given. A machine that is on the box goes
 * on with the MAC of its new card.
 * @throws ApiError validation_failed
 */
export async function boxColumns(
  tx: Transaction,
  { vault }: Context,
  { name, kind }: Pick<Host, 'name' | 'kind'>,
  { bmc, disk = null, firmware = null, ...given }: BoxFacts,
): Promise<unknown[]> {
  const mac = given.mac?.toLowerCase() ?? null;
  if (kind === 'VPS' && (bmc || mac || disk || firmware))
    throw invalid('kind', 'Only dedicated servers have a BMC, a MAC, a disk and a firmware of their own.');
  const reached = bmc ? { ...bmc, ...reachedAt(bmc) } : undefined;
  await requireUnshared(tx, name, mac, reached?.address ?? null);
  if (disk) await requireNoOtherDisk(tx, name, disk);
  if (mac) await tx.query('update deployment set mac = $2 where box = $1', [name, mac]);
  const controller = reached
    ? [reached.protocol, reached.address, reached.user, vault.seal(reached.password, bmcPasswordContext(name))]
    : [null, null, null, null];
  return [...controller, reached?.certificate ?? null, mac, disk, firmware];
}

/** Of two boxes with one controller or one card, the wrong one would be wiped. */
async function requireUnshared(tx: Transaction, name: string, mac: string | null, address: string | null) {
  const [other] = await tx.query<{ name: string; field: string }>(
    `select name, case when mac = $2 then 'mac' else 'bmc.address' end as field from host
      where name <> $1 and (mac = $2 or bmc_address = $3)
    union all select box, 'mac' from deployment where box <> $1 and mac = $2 limit 1`,
    [name, mac, address],
  );
  if (other) throw invalid(other.field, `That is of ${other.name}.`);
}

/** What is on a disk is wiped from that disk. */
async function requireNoOtherDisk(tx: Transaction, name: string, disk: string) {
  const [held] = await tx.query('select 1 from deployment where box = $1 and disk <> $2', [name, disk]);
  if (held) throw invalid('disk', 'A machine is on another disk of it, which is to be wiped first.');
}

const CONTROL = /\p{Cc}/u;
/** A name or an IPv4 address: never an option of ipmitool. */
const IPMI_ADDRESS = /^[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[1-9][0-9]{0,4})?$/;
/** What IPMI 2.0 has room for, in bytes. */
const [IPMI_USER_MAX, IPMI_PASSWORD_MAX] = [16, 20];

/** Where the controller is, in the one form in which it is kept, and the certificate that vouches for it. */
function reachedAt({ protocol, address, user, password, certificate }: Bmc): Pick<Bmc, 'address' | 'certificate'> {
  if (CONTROL.test(user) || CONTROL.test(password))
    throw invalid('bmc', 'No line of a controller has control characters.');
  if (protocol === 'IPMI') {
    if (!IPMI_ADDRESS.test(address))
      throw invalid('bmc.address', 'A name or an IPv4 address, and :port if it is not 623.');
    if (Buffer.byteLength(user) > IPMI_USER_MAX) throw invalid('bmc.user', 'IPMI has 16 bytes for it.');
    if (Buffer.byteLength(password) > IPMI_PASSWORD_MAX) throw invalid('bmc.password', 'IPMI has 20 bytes for it.');
    if (certificate) throw invalid('bmc.certificate', 'IPMI has none.');
    return { address: address.toLowerCase() };
  }
  const url = URL.parse(address);
  const isOrigin = url && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`;
  if (!isOrigin) throw invalid('bmc.address', 'A URL such as https://10.1.0.12, without a path.');
  if (user.includes(':')) throw invalid('bmc.user', 'Redfish has no colon in it (RFC 7617).');
  if (!certificate) return { address: url.origin };
  if (url.protocol !== 'https:') throw invalid('bmc.certificate', 'Only https has one.');
  return { address: url.origin, certificate: certificateOf(certificate).toString() };
}

/** SHA-256 of the certificate that vouches for the controller of a host, in hex with colons. */
export const fingerprintOf = ({ bmcCertificate }: Host): string | null =>
  bmcCertificate && certificateOf(bmcCertificate).fingerprint256;

function certificateOf(pem: string): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch {
    throw invalid('bmc.certificate', 'A certificate in PEM.');
  }
}
