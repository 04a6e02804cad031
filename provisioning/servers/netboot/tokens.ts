/**
 * Tokens of deployments, one for each run and stage. They are derived, and never stored. A token of an earlier run opens
 * nothing.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { Vault } from '../../../entities/secrets.ts';
import type { Deployment } from '../../../entities/servers/deployment.ts';

/** `job` opens the job of a machine. `report` signs the news of its installer or wiper. `system` is for the new system. */
export type Stage = 'job' | 'report' | 'system';
type Run = Pick<Deployment, 'id' | 'run'>;

/** The tokens of a stage, of which the first is the present one. Machines may still have those of previous keys. */
const tokensOf = (vault: Vault, { id, run }: Run, stage: Stage): Buffer[] =>
  vault.deriveAll('netboot').map((key) => createHmac('sha256', key).update(`${id}:${run}:${stage}`).digest());

/** A token in hex, for a machine. */
export const tokenOf = (vault: Vault, of: Run, stage: Stage): string => tokensOf(vault, of, stage)[0]!.toString('hex');

/** The path of a deployment's job. A stranger cannot guess it. */
export const jobPath = (vault: Vault, of: Run): string => `/d/${of.id}/${tokenOf(vault, of, 'job')}`;

/** Whether a text is the token of that stage. */
export const opens = (vault: Vault, given: string, of: Run, stage: Stage): boolean =>
  tokensOf(vault, of, stage).some((token) => isSame(given, token.toString('hex')));

/** Whether a text signs what the installer says. The token itself does not cross the network. */
export const signs = (vault: Vault, given: string, of: Run, text: string): boolean =>
  tokensOf(vault, of, 'report').some((token) => isSame(given, signatureOf(token.toString('hex'), text)));

/** Nested, so that a stranger cannot append to a signed text. A shell with `sha256sum` can do it. */
export const signatureOf = (token: string, text: string): string => sha256(token + sha256(token + text));

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

function isSame(given: string, right: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(right)];
  return one.length === other.length && timingSafeEqual(one, other);
}
