/** Operations of the owner alone: logins, tokens, the second factor, the password. They never run at once. */
import { must, turnOnSecondFactor } from './account.ts';
import type { Actor, Operation, Weighed } from './actor.ts';
import type { Reply } from './measurements.ts';
import { RestClient } from './rest-client.ts';

/** Wraps an operation that uses up a code. If few are left, it sets the second factor up anew. */
const withCode =
  (work: Operation): Operation =>
  (actor) =>
    actor.account.factor.left > 2 && !actor.account.factor.isOff ? work(actor) : renewSecondFactor(actor);

const take = ({ account }: Actor, { access_token, refresh_token, token_id }: Reply['body']) => {
  account.owner.credential = access_token;
  account.session = { tokenId: token_id, refreshToken: refresh_token };
};

const login: Operation = async (actor) => {
  const { account, chance, measurements, urls } = actor;
  const { email, password, factor } = account;
  const stranger = new RestClient({ who: actor.name, urls, chance, measurements, always: actor.always });
  const before = account.session.tokenId;
  const asked = await must(stranger, 'login', { email, password });
  if (!asked.totp_required) measurements.contradiction(`${email} was not asked for the second factor.`);
  const { tokens } = await factor.use((totp_code) =>
    must(stranger, 'loginTotp', { login_token: asked.login_token, totp_code }),
  );
  take(actor, tokens);
  await account.owner.ask('revokeSession', { token_id: before });
};

/** A client sends the same refresh twice with one key, and must get the same tokens. */
const refresh: Operation = async (actor) => {
  const { account, chance } = actor;
  const args = { refresh_token: account.session.refreshToken };
  const key = chance.oneIn(2) ? actor.newKey() : undefined;
  const { tokens } = await must(account.owner, 'refreshTokens', args, key ? { key } : {});
  take(actor, tokens);
  if (!key) return;
  const again = await must(account.owner, 'refreshTokens', args, { key });
  if (again.tokens.access_token !== tokens.access_token)
    actor.measurements.contradiction(`${account.email} got other tokens for the same Idempotency-Key.`);
};

/** The operator may suspend the account between the two calls; then the next operation turns the factor on again. */
const renewSecondFactor: Operation = async ({ account }) => {
  if (!account.factor.isOff) {
    await account.factor.use((totp_code) => must(account.owner, 'disableTotp', { totp_code }));
    account.factor.isOff = true;
  }
  account.factor = await turnOnSecondFactor(account.owner, account.password);
};

const changePassword: Operation = async ({ account, chance }) => {
  const new_password = `a heron on roof number ${chance.between(1_000, 9_999_999)}`;
  await account.factor.use((totp_code) =>
    must(account.owner, 'changePassword', { current_password: account.password, new_password, totp_code }),
  );
  account.password = new_password;
};

const listSessions: Operation = async ({ account }) => {
  await account.owner.ask('listSessions');
};

export const SESSION_OPERATIONS: Weighed<Operation> = [
  [3, withCode(login)],
  [4, refresh],
  [1, withCode(renewSecondFactor)],
  [1, withCode(changePassword)],
  [1, listSessions],
];
