/** Failures of commands, and the exit codes that tell scripts what to do. */
import { FreeholdError } from '../../client/src/index.ts';

/** The caller used a command wrongly. */
export class UsageError extends Error {}
/** A wait ended before the thing had reached the state. */
export class Unsettled extends Error {}

export const EXIT = {
  general: 1,
  usage: 2,
  credential: 3,
  notFound: 4,
  refused: 5,
  money: 6,
  again: 7,
  unsettled: 8,
  interrupted: 130,
} as const;

const BY_STATUS: Readonly<Record<number, number>> = {
  0: EXIT.again,
  401: EXIT.credential,
  402: EXIT.money,
  403: EXIT.credential,
  404: EXIT.notFound,
  429: EXIT.again,
};

/** Returns the exit code of a failed command. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError) return EXIT.usage;
  if (error instanceof Unsettled) return EXIT.unsettled;
  if (!(error instanceof FreeholdError)) return EXIT.general;
  if (error.body.server) return EXIT.unsettled;
  return BY_STATUS[error.status] ?? (error.status >= 500 ? EXIT.again : EXIT.refused);
}

/** Returns the lines that explain a failure. */
export function explain(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  if (!(error instanceof FreeholdError)) return `error: ${message}`;
  const lines = [`error: ${message}`];
  if (error.errors.length > 1)
    for (const { field, message: fault } of error.errors) lines.push(`  - ${field}: ${fault}`);
  lines.push(`code: ${error.code}${error.requestId ? `, request: ${error.requestId}` : ''}`);
  const advice = adviceOn(error);
  if (advice) lines.push(advice);
  return lines.join('\n');
}

function adviceOn({ status, code, idempotencyKey, retryAfterSeconds }: FreeholdError): string | undefined {
  if (code === 'missing_credential') return 'Log in with `freehold login`, or set FREEHOLD_TOKEN.';
  if (status === 402) return 'Top up with `freehold topup create`, and run the command again.';
  if (status === 429) return `Try again in ${retryAfterSeconds ?? 60} seconds.`;
  if (code === 'no_answer' && idempotencyKey)
    return `To learn what became of it, add --idempotency-key ${idempotencyKey}`;
  return undefined;
}
