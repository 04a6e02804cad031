/** An account that uses every feature. */
import { generateKeyPairSync } from 'node:crypto';
import type { ApiClient } from './api-client.ts';
import type { Chance } from './chance.ts';
import { Mailbox } from './mailbox.ts';
import type { Measurements, Reply } from './measurements.ts';
import { RestClient } from './rest-client.ts';
import { SecondFactor } from './second-factor.ts';

/** A webhook that stays until the end. */
export interface Hook {
  mailbox: Mailbox;
  filter: string;
  /** From this moment on, the service sends every wanted event to this webhook. */
  since: Date;
}

export interface Account {
  id: string;
  email: string;
  password: string;
  factor: SecondFactor;
  /** A REST client with the owner's access token. */
  owner: RestClient;
  session: { tokenId: string; refreshToken: string };
  hooks: Hook[];
  /** The receivers of all webhooks. Deleted webhooks keep theirs, since messages may be on their way. */
  mailboxes: Mailbox[];
  /** The ids that all clients of the account share. */
  servers: Set<string>;
  sshKeys: Set<string>;
  topUps: Set<string>;
}

export interface Opening {
  number: number;
  /** Its name in the report. */
  who: string;
  urls: readonly string[];
  measurements: Measurements;
  chance: Chance;
  /** Error codes that are legitimate for every call of this account. */
  always: readonly string[];
}

const FILTERS = ['*', 'server.*', 'server.running,server.deleted,topup.confirmed,status.changed'];
const FIRST_TOP_UP_USD = 120;

export async function openAccount(opening: Opening): Promise<Account> {
  const { number, chance } = opening;
  const owner = new RestClient(opening);
  const email = `soak-${process.pid}-${number}@example.org`;
  const password = `a heron on roof number ${number}`;
  const registered = await must(owner, 'register', { email, password });
  const { access_token, refresh_token, token_id } = registered.tokens;
  owner.credential = access_token;
  const account: Account = {
    id: registered.account.id,
    email,
    password,
    factor: await turnOnSecondFactor(owner, password),
    owner,
    session: { tokenId: token_id, refreshToken: refresh_token },
    hooks: [],
    mailboxes: [],
    servers: new Set(),
    sshKeys: new Set(),
    topUps: new Set(),
  };
  for (const filter of FILTERS.slice(0, 1 + (number % FILTERS.length))) await addHook(account, filter, chance);
  account.sshKeys.add((await must(owner, 'addSshKey', { public_key: newSshKeyLine() })).id);
  await must(owner, 'createTopup', { amount_usd: FIRST_TOP_UP_USD, crypto: 'XMR' });
  return account;
}

export async function turnOnSecondFactor(owner: ApiClient, password: string): Promise<SecondFactor> {
  const { secret } = await must(owner, 'setupTotp', { password });
  const factor = new SecondFactor(secret);
  const { recovery_codes } = await must(owner, 'enableTotp', { totp_code: factor.codeOfNow() });
  factor.keep(recovery_codes);
  return factor;
}

async function addHook({ owner, hooks, mailboxes }: Account, filter: string, chance: Chance): Promise<void> {
  const mailbox = await Mailbox.open(chance);
  mailboxes.push(mailbox);
  const { secret } = await must(owner, 'createWebhook', { url: mailbox.url, event_filter: filter });
  mailbox.open(secret);
  hooks.push({ mailbox, filter, since: new Date() });
}

/** A new SSH key, as ssh-keygen prints it. */
export function newSshKeyLine(): string {
  const kind = 'ssh-ed25519';
  const { x } = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });
  const members = [Buffer.from(kind), Buffer.from(x!, 'base64url')];
  const blob = members.flatMap((member) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(member.length);
    return [length, member];
  });
  return `${kind} ${Buffer.concat(blob).toString('base64')} soak@laptop`;
}

/** Asks for something that the service must not refuse. @throws Refused */
export async function must(
  api: ApiClient,
  ...[call, args, asking]: Parameters<ApiClient['ask']>
): Promise<Reply['body']> {
  const { code, body } = await api.ask(call, args, asking);
  if (code !== 'ok') throw new Refused(`${call} was refused: ${code}`);
  return body;
}

/** The service refused a call. The measurements already hold the refusal. */
export class Refused extends Error {}
