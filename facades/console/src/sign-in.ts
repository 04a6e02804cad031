/** The ways into the console: a sign-in with a second factor, a token, or an invitation. */
import { signal } from '@preact/signals';
import { html } from 'htm/preact';
import { hasSession, logIn, operator, signInBy, signOut, tokenOfTab } from './api.ts';
import { offerLogin, tellTouch } from './new-tab.ts';
import { go, place } from './place.ts';
import { QrCode } from './qr.ts';
import { Secret } from './secret.ts';

/** The seed of the second factor of an invited operator. */
interface Invitation {
  code: string;
  name: string;
  secret: string;
  provisioningUri: string;
}
type Way = 'sign in' | 'token' | 'invitation';

const way = signal<Way>(place.value.path === 'invitation' ? 'invitation' : 'sign in');
const invitation = signal<Invitation | undefined>(undefined);
/** A new session with its recovery codes, which the person copies before the console opens. */
const accepted = signal<{ token: string; recoveryCodes: string[] } | undefined>(undefined);

/** Does a step of a login, and shows why the service refuses it. */
type Enter = (work: () => Promise<void>) => Promise<void>;
/** Sends the fields of a form by their names. */
type Send = (given: Record<string, string>) => Promise<void>;

const enterByCode: Send = async (given) => {
  const { token } = await signInBy<{ token: string }>('signIn', given);
  await logIn(token);
};
const open: Send = async ({ code = '' }) => {
  invitation.value = { ...(await signInBy<Omit<Invitation, 'code'>>('openInvitation', { code })), code };
};
const accept: Send = async ({ password = '', totpCode = '' }) => {
  accepted.value = await signInBy('acceptInvitation', { code: invitation.value!.code, password, totpCode });
  invitation.value = undefined;
};
const enterAccepted: Send = async () => {
  await logIn(accepted.value!.token);
  accepted.value = undefined;
  // The address had the code of the invitation.
  go('');
};

/** A step of a way: its fields, and the act of its button. */
interface Step {
  fields: unknown;
  send: Send;
  button: string;
}
function stepOf(): Step {
  const button = 'Open the console';
  if (way.value === 'token') return { fields: TOKEN, send: ({ token = '' }) => logIn(token), button };
  if (way.value === 'sign in') return { fields: SIGN_IN, send: enterByCode, button };
  if (accepted.value)
    return { fields: html`<${Codes} codes=${accepted.value.recoveryCodes} />`, send: enterAccepted, button };
  if (invitation.value) return { fields: html`<${Choice} invitation=${invitation.value} />`, send: accept, button };
  return { fields: CODE, send: open, button: 'Continue' };
}

export function Login({ enter, problem }: { enter: Enter; problem: string }) {
  const { fields, send, button } = stepOf();
  const onSubmit = (event: SubmitEvent) => {
    event.preventDefault();
    const given = Object.fromEntries(new FormData(event.target as HTMLFormElement)) as Record<string, string>;
    void enter(() => send(given)).then(focusFirst);
  };
  return html`<main class="login">
    <form onSubmit=${onSubmit} key=${way.value}>
      <h1>Freehold</h1>
      ${fields}
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
      <button class="main">${button}</button>
      <p class="ways">${WAYS.filter(([one]) => one !== way.value).map(
        ([one, words]) =>
          html`<button type="button" class="quiet" onClick=${() => choose(one, enter)}>${words}</button>`,
      )}</p>
    </form>
  </main>`;
}
const WAYS: [Way, string][] = [
  ['sign in', 'Sign in'],
  ['token', 'Use a token'],
  ['invitation', 'Accept an invitation'],
];
function choose(one: Way, enter: Enter): void {
  way.value = one;
  invitation.value = undefined;
  accepted.value = undefined;
  // The words about another way go.
  void enter(async () => {}).then(focusFirst);
}
/** The button that had the focus is gone. */
function focusFirst(): void {
  requestAnimationFrame(() => document.querySelector<HTMLElement>('.login input')?.focus());
}

const PASSWORD = (autocomplete: string) => html`<label for="password">Password</label>
  <input id="password" name="password" type="password" autocomplete=${autocomplete} required />`;
const TOTP = html`<label for="totpCode">Code of the authenticator</label>
  <input id="totpCode" name="totpCode" autocomplete="one-time-code" required />`;
const SIGN_IN = html`<label for="name">Name</label>
  <input id="name" name="name" autocomplete="username" required autofocus />${PASSWORD('current-password')}${TOTP}
  <p class="hint">An owner invites you. You choose the password and the second factor then. A recovery code
  works in place of a code of the authenticator, once.</p>`;
const TOKEN = html`<label for="token">Your operator token</label>
  <input id="token" name="token" type="password" autocomplete="current-password" required autofocus />
  <p class="hint">The first owner finds it in the file <code>operator-token</code> of DATA_DIR.</p>`;
const CODE = html`<label for="code">Code of the invitation</label>
  <input id="code" name="code" autocomplete="off" required autofocus defaultValue=${place.value.search.get('code') ?? ''} />
  <p class="hint">An owner gives it to you. It is valid once.</p>`;
const Choice = ({ invitation: { name, secret, provisioningUri } }: { invitation: Invitation }) => html`
  <p>You are <strong>${name}</strong>. Scan this code with your authenticator. On a phone, <a href=${provisioningUri}>open it there</a>.</p>
  <${QrCode} text=${provisioningUri} title="QR code of the key for your authenticator" />
  <p class="hint">It has this key, which you can also type: <code>${secret}</code></p>${PASSWORD('new-password')}${TOTP}`;

const Codes = ({ codes }: { codes: string[] }) => html`
  <p>Copy these recovery codes now. The service shows them only once. Each signs you in once without your authenticator.</p>
  <${Secret} text=${codes.join('\n')} />`;

/** A session ends after so long without a key or a pointer, although an open page reads all the time. */
const IDLE_MS = 30 * 60_000;
let touchedAt = Date.now();
for (const type of ['keydown', 'pointerdown', 'pointermove'])
  addEventListener(type, () => {
    touchedAt = Date.now();
    tellTouch();
  });
offerLogin(tokenOfTab, () => {
  touchedAt = Date.now();
});
setInterval(() => {
  if (operator.value && hasSession() && Date.now() - touchedAt > IDLE_MS) void signOut();
}, 60_000);
