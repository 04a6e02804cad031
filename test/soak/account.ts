/** An account that has everything turned on. */
import type { Chance } from './chance.ts';
import type { Door, Reply } from './door.ts';
import { Mailbox } from './mailbox.ts';
import type { Measurements } from './measurements.ts';
import { RestClient } from './rest-client.ts';
import { SecondFactor } from './second-factor.ts';
import { newSshKeyLine } from './ssh-key-line.ts';

/** A webhook that stays until the end. */
export interface Hook {
  mailbox: Mailbox;
  filter: string;
  /** From then on it is told of everything that it wants. */
  since: Date;
}

export interface Account {
  id: string;
  email: string;
  password: string;
  factor: SecondFactor;
  /** With the access token of the owner. */
  owner: RestClient;
  session: { tokenId: string; refreshToken: string };
  hooks: Hook[];
  /** Of all webhooks, also of those that are deleted again: messages may be on their way. */
  mailboxes: Mailbox[];
  /** What the clients of the account know of, and work on together. */
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
  /** What any answer to this account may be refused with. */
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

export async function turnOnSecondFactor(owner: Door, password: string): Promise<SecondFactor> {
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

/** The answer to what cannot be refused. */
export async function must(door: Door, ...[call, args, asking]: Parameters<Door['ask']>): Promise<Reply['body']> {
  const { code, body } = await door.ask(call, args, asking);
  if (code !== 'ok') throw new Refused(`${call} was refused: ${code}`);
  return body;
}

/** The measurements have it already. */
export class Refused extends Error {}
