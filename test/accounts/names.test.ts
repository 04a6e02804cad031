/** Names and subjects that customers write, and that operators read in a terminal. */
import { expect, it } from 'vitest';
import { startFreehold } from '../setup/freehold.ts';

const { newAccount } = await startFreehold();

const PLACES = [
  ['of an API key', '/v1/auth/api-keys', (name: string) => ({ name, scope: 'read' })],
  [
    'of a webhook',
    '/v1/webhooks',
    (description: string) => ({ url: 'https://hook.example.org/', event_filter: '*', description }),
  ],
  ['of a message', '/v1/account/messages', (subject: string) => ({ subject, body: 'x' })],
] as const;

it.each(PLACES)('A name %s has no controls of terminals, and no marks of direction', async (_, path, input) => {
  const { rest } = await newAccount();
  for (const sign of ['\u009b31m', '\u001b[2J', '\u202e', '\u2066', '\u200f', '\u2028'])
    expect((await rest('POST', path, input(`Invoice ${sign}gnp.exe`))).status).toBe(422);
  expect((await rest('POST', path, input('Family 👨‍👩‍👧 ❤️'))).status).toBeLessThan(300);
});
