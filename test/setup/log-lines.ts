/**
 * Reads every line that a spawned service prints. Each is JSON with a level, a time and a message. No line has a network
 * address, an e-mail address or a token. test/setup/postgres.ts fails the run after a report.
 */
import { appendFileSync } from 'node:fs';
import { isIP } from 'node:net';

/** The lines in which the service tells about its own configuration. */
const ANNOUNCED = /^(Freehold is running|Freehold cannot start|PostgreSQL died|Webhooks may call)/;
const LEVELS = ['debug', 'info', 'warn', 'error', 'fatal'];
const PERSONAL = /[\w.+-]+@[\w-]+\.\w+|svc_[a-z]+_\w|whsec_\w|\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b/;

/** Returns the wrong lines of an output. A killed process may leave a part of a line at the end. */
export function wrongLines(output: string): string[] {
  const lines = output.split('\n').slice(0, -1);
  return lines.filter((line) => line && isWrong(line));
}

function isWrong(line: string): boolean {
  let parsed: { level?: string; time?: string; msg?: string };
  try {
    parsed = JSON.parse(line);
  } catch {
    return true;
  }
  const { level = '', time = '', msg } = parsed;
  if (!LEVELS.includes(level) || Number.isNaN(Date.parse(time)) || typeof msg !== 'string') return true;
  if (ANNOUNCED.test(msg)) return false;
  return PERSONAL.test(line) || line.split(/[^0-9a-fA-F:.]+/).some((word) => isIP(word) === 6);
}

/** Reports the wrong lines of a process that ended. */
export function reportLines(output: string): void {
  const report = process.env.LOG_REPORT;
  const wrong = wrongLines(output);
  if (report && wrong.length) appendFileSync(report, `${wrong.join('\n')}\n`);
}
