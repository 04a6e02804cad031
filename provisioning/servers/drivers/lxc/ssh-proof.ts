/** The proof that a machine runs: its SSH server says who it is, before anybody logs in (RFC 4253, 4.2). */
import { execFile } from 'node:child_process';
import { connect } from 'node:net';

const ANSWER_MS = 1000;
const COMMAND_MS = 10_000;
const BANNER = /^SSH-2\.0-/m;

/** @returns whether an SSH server answers there */
export type Probe = (address: string, host: string | undefined, signal: AbortSignal) => Promise<boolean>;

/** Asks from where the worker runs. */
export const probeByConnecting: Probe = (address, _host, signal) =>
  new Promise((resolve) => {
    const socket = connect({ host: address, port: 22, signal });
    const end = (proven: boolean) => {
      resolve(proven);
      socket.destroy();
    };
    socket.setTimeout(ANSWER_MS, () => end(false));
    socket.on('data', (data) => end(BANNER.test(data.toString('latin1'))));
    socket.on('error', () => end(false)).on('close', () => end(false));
  });

/**
 * Runs a command that prints what port 22 of an address says, for networks that the worker does not reach.
 * @param command words with blanks between, of which `{address}` and `{host}` are replaced; no shell reads it
 */
export function probeByCommand(command: string): Probe {
  const words = command.split(/\s+/).filter(Boolean);
  return (address, host, signal) => {
    const [file, ...given] = words.map((word) =>
      word.replaceAll('{address}', address).replaceAll('{host}', host ?? ''),
    );
    return new Promise((resolve) => {
      // The exit code says nothing: what holds a connection open to read a banner is ended by a timeout.
      execFile(file!, given, { signal, timeout: COMMAND_MS }, (_error, output) => resolve(BANNER.test(output)));
    });
  };
}
