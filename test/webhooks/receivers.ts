/** Webhooks of test accounts, and receivers that end with the test file. */
import { expect } from 'vitest';
import { atEnd } from '../setup/end.ts';
import type { TestAccount } from '../setup/freehold.ts';
import { type Receiver, startReceiver } from '../setup/receiver.ts';

/** Adds an SSH key, which is the cheapest event. */
export const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILZo0JzYJEHChHBt6zG/B6cGUZpbFXeUqaufc1ki+RX/ ada@laptop';

export async function receiver(): Promise<Receiver> {
  const started = await startReceiver();
  atEnd(() => started.close());
  return started;
}

/** Registers a webhook. @returns it with its secret */
export async function register({ rest }: TestAccount, url: string, more: object = {}) {
  const { status, body } = await rest('POST', '/v1/webhooks', { url, ...more });
  expect(status, JSON.stringify(body)).toBe(200);
  return body;
}
export const list = async ({ rest }: TestAccount) => (await rest('GET', '/v1/webhooks')).body.data;
