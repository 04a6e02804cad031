/**
 * The log of the service: JSON lines by pino, or readable lines in a terminal. Warnings and errors go to the standard error
 * output. `log` removes every network address, e-mail address and token, also from the words of an engine or of PostgreSQL.
 */
import { isIP } from 'node:net';
import { type Logger, pino } from 'pino';
import { causesOf } from '../errors.ts';

const EMAIL = /[^\s"'<>(),:;\\/=]{1,64}@[\w-]+(\.[\w-]+)+/g;
const TOKEN = /\b(svc_[a-z]{2,4}_|whsec_|Bearer )[\w+/=.~-]+/gi;
const IPV4 = /(?<!\d)\d{1,3}(\.\d{1,3}){3}(?!\d)/g;
const IPV6 = /[0-9a-f]{0,4}:[0-9a-f:.]{0,45}[0-9a-f:]/gi;

/** Removes network addresses, e-mail addresses and tokens from a text. */
export const withoutPersons = (text: string): string =>
  text.replace(EMAIL, '…').replace(TOKEN, '$1…').replace(IPV6, withoutIpv6).replace(IPV4, '…');

/** A port may follow an address, and the end of a word and a colon may come before it. */
function withoutIpv6(found: string): string {
  if (isIP(found) || isIP(found.replace(/:\d*$/, ''))) return '…';
  const word = found.slice(0, found.indexOf(':') + 1);
  return isIP(found.slice(word.length)) ? `${word}…` : found;
}

/** Shows a line to a person. */
function readable(line: string): string {
  const { level, time: _, msg, ...rest } = JSON.parse(line);
  const details = Object.keys(rest).length ? ` ${JSON.stringify(rest)}` : '';
  return `${level === 'info' ? '' : `${level.toUpperCase()} `}${msg}${details}`;
}

const WARN = 40;
/** pino tells a destination with this mark the level of each line. */
const METADATA = Symbol.for('pino.metadata');

function loggerOf(prepare: (line: string) => string): Logger {
  const destination = {
    [METADATA]: true,
    lastLevel: 0,
    write(text: string) {
      const line = prepare(text.trimEnd());
      const shown = process.stdout.isTTY ? readable(line) : line;
      if (destination.lastLevel >= WARN) console.error(shown);
      else console.log(shown);
    },
  };
  const formatters = { level: (level: string) => ({ level }) };
  return pino({ base: null, timestamp: pino.stdTimeFunctions.isoTime, formatters }, destination);
}

/** The log. Its level is LOG_LEVEL. */
export const log = loggerOf(withoutPersons);
/** The lines about the configuration, which keep the addresses of the service. */
export const announcements = loggerOf((line) => line);

/** Logs a fault: an error, or the line that a facade made of one. */
export function logFault(fault: unknown): void {
  const details = fault instanceof Error ? detailsOf(fault) : { message: 'A fault without a text.', ...Object(fault) };
  const { message, ...rest } = details;
  log.error(rest, String(message));
}

function detailsOf(error: Error) {
  const { code } = error as NodeJS.ErrnoException;
  const [, ...causes] = causesOf(error);
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  return {
    message: messageOf(error),
    name: error.name,
    ...(typeof code === 'string' && { code }),
    ...(causes.length && { causes: causes.map(messageOf) }),
    stack: frames.slice(0, 12).map((line) => line.trim()),
  };
}

/** The message of an error. PostgreSQL quotes values of rows, so its messages lose them. */
const messageOf = (error: Error): string =>
  'severity' in error || 'driverError' in error ? error.message.replace(/"[^"]*"|: .*$/gs, ' …') : error.message;

/** Logs a warning of Node, or one that a part of the service gave to `process.emitWarning`. */
export const logWarning = ({ name, message }: Error): void =>
  log.warn(name === 'Warning' ? message : `${name}: ${message}`);
