/** The proof that a machine runs: the banner of its SSH server, which needs no login (RFC 4253, 4.2). */
import { execFile } from 'node:child_process';
import { connect } from 'node:net';
import { ENVIRONMENT } from '../driver.ts';

const ANSWER_MS = 1000;
const COMMAND_MS = 10_000;
const BANNER = /^SSH-2\.0-/m;

/** @returns whether an SSH server answers at the address */
export type Probe = (address: string, host: string | undefined, signal: AbortSignal) => Promise<boolean>;

/** Connects from the worker itself. */
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
 * Runs a command that prints the banner of port 22, for networks that the worker cannot reach.
 * @param command words separated by blanks; `{address}` and `{host}` are replaced, and no shell runs
 */
export function probeByCommand(command: string): Probe {
  const words = command.split(/\s+/).filter(Boolean);
  return (address, host, signal) => {
    const [file, ...given] = words.map((word) =>
      word.replaceAll('{address}', address).replaceAll('{host}', host ?? ''),
    );
    return new Promise((resolve) => {
      // The exit code is ignored, since commands that wait for a banner often end by a timeout.
      execFile(file!, given, { env: ENVIRONMENT, signal, timeout: COMMAND_MS }, (_error, output) =>
        resolve(BANNER.test(output)),
      );
    });
  };
}
