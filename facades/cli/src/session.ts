/** The connection and the global options of a command. */
import type { Command } from 'commander';
import { type CallOptions, Freehold, type Server } from '../../client/src/index.ts';
import { UsageError } from './failure.ts';
import type { Format } from './output.ts';
import { connectionOf } from './profile.ts';

export interface Globals {
  output: Format;
  profile?: string;
  idempotencyKey?: string;
}
export interface Session {
  freehold: Freehold;
  url: string;
  format: Format;
  /** The options of the one call that changes something. */
  call: CallOptions;
}

/** @throws UsageError if the profile does not exist */
export function sessionOf(command: Command): Session {
  const { output, profile, idempotencyKey } = command.optsWithGlobals<Globals>();
  const { url, token } = connectionOf(process.env, profile);
  const freehold = new Freehold({ url, ...(token && { apiKey: token }) });
  return { freehold, url, format: output, call: { ...(idempotencyKey && { idempotencyKey }) } };
}

/** A hostname may begin as an order number does. */
const IS_ORDER_NUMBER = /^SRV-[0-9A-Z]{10}$/i;

/** Finds a server by its order number or its hostname. @throws UsageError if none or several have the hostname */
export async function findServer({ freehold }: Session, given: string): Promise<Server> {
  if (IS_ORDER_NUMBER.test(given)) return freehold.servers.get(given.toUpperCase());
  const found = await freehold.servers.list({ hostname: given }).all(2);
  if (found.length === 1) return found[0]!;
  if (found.length)
    throw new UsageError(`Several servers are named ${given}. Give an order number: freehold server list`);
  throw new UsageError(`There is no server ${given}. See: freehold server list`);
}

/** Whether a person can answer questions. */
export const isInteractive = (): boolean => Boolean(process.stdin.isTTY && process.stderr.isTTY);
