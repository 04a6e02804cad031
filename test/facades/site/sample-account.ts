/** An account with a thing of each kind, and the samples filled with them. */
import { eventually, type Freehold } from '../../setup/freehold.ts';
import { startReceiver } from '../../setup/receiver.ts';

const PUBLIC_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKkm4o3AUy9jM9UwkKx6CTVn0hlpPpAZYSbY9mNu7SYv me';
/** The id of the examples, without its prefix. */
const EXAMPLE = '_01m7z3eaymx8r1n4b6tq0c5d2h';

/** The environment with which webhooks reach the receiver of an account. */
export const ALLOWS_RECEIVER = { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' };

/** The operations that a customer cannot do with the values of the examples alone, and why the service refuses them. */
export const REFUSED: Readonly<Record<string, string>> = {
  // The account has no second factor, and the code of the examples is a wrong one.
  LoginTotp: 'login_token_expired',
  EnableTotp: 'invalid_totp',
  NewRecoveryCodes: 'totp_not_enabled',
  DisableTotp: 'totp_not_enabled',
  // The top-up of the account is paid, so it has a receipt.
  CancelTopup: 'topup_not_cancellable',
};

/** Deletions come last, because other samples need the things. A new password ends the sessions even later. */
export const inOrder = <T extends { name: string }>(samples: readonly T[]): T[] => {
  const rank = ({ name }: T) => (name === 'ChangePassword' ? 2 : Number(/^(Delete|Revoke)/.test(name)));
  return [...samples].sort((a, b) => rank(a) - rank(b));
};

export interface SampleAccount {
  accessToken: string;
  /** Puts real things where an example has made-up ones. @param name the operation of the text */
  fill(text: string, name: string): string;
}

type Answers = Awaited<ReturnType<Freehold['anonymous']>>['body'];

/** @param atEnd runs its argument after the tests */
export async function newSampleAccount(
  { newAccount, anonymous, operator }: Freehold,
  atEnd: (end: () => Promise<void>) => void,
): Promise<SampleAccount> {
  const receiver = await startReceiver();
  atEnd(receiver.close);
  const { id, email, password, rest, fund, topUp } = await newAccount();
  const done = async (method: string, path: string, input?: object): Promise<Answers> => {
    const { status, body } = await rest(method, path, input);
    if (status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(body)}`);
    return body;
  };
  const login = async () => (await anonymous('POST', '/v1/auth/login', { email, password })).body.tokens;
  await fund(500);
  await topUp(50);
  const input = { accountId: id, subject: 'Your server', body: 'It restarted.' };
  await operator('mutation ($input: SendMessageInput!) { sendMessage(input: $input) { id } }', { input });
  // A login ends only older ones.
  const [ended, spent, own] = [await login(), await login(), await login()];
  const key = await done('POST', '/v1/auth/api-keys', { name: 'made', scope: 'read' });
  const sshKey = await done('POST', '/v1/ssh-keys', { public_key: PUBLIC_KEY });
  const server = await done('POST', '/v1/servers', { service_code: 'vps-1', ssh_key_ids: [sshKey.id] });
  const webhook = await done('POST', '/v1/webhooks', { url: receiver.url, event_filter: ['topup.*'] });
  await done('POST', `/v1/webhooks/${webhook.id}/test`);
  const client = await done('POST', '/v1/oauth/register', { client_name: 'made', scope: 'servers' });
  const first = async (path: string) => (await done('GET', path)).data[0];
  await eventually(async () => (await done('GET', `/v1/servers/${server.order_number}`)).status === 'running');
  const real: [string, string][] = [
    ['correct horse battery staple', password],
    [`sshkey${EXAMPLE}`, sshKey.id],
    [`tok${EXAMPLE}`, ended.token_id],
    [`key${EXAMPLE}`, key.key_id],
    [`whk${EXAMPLE}`, webhook.id],
    [`dlv${EXAMPLE}`, (await first(`/v1/webhooks/${webhook.id}/deliveries`)).id],
    [`msg${EXAMPLE}`, (await first('/v1/account/messages')).id],
    [`cl${EXAMPLE}`, client.client_id],
    ['svc_cs_6mlLTzEnmlPVPxHAe74kg9awGRUOButR2pp2Kz', client.client_secret],
    ['svc_rt_6mlLTzEnmlPVPxHAe74kg9awGRUOButR2pp2Kz', spent.refresh_token],
    ['SRV-7K2M9X4QHT', server.order_number],
    ['TOP-7K2M9X4QHT', (await first('/v1/billing/topups')).order_number],
    ['2026-11', new Date().toISOString().slice(0, 7)],
    ['weather-agent', `weather-${id.slice(-8)}`],
    ['https://hooks.example.com/freehold', receiver.url],
  ];
  const fill = (text: string, name: string) =>
    [...real, ['you@example.com', name === 'Register' ? `new-${email}` : email] as const].reduce(
      (filled, [from, to]) => filled.replaceAll(from, to),
      text,
    );
  return { accessToken: own.access_token, fill };
}
