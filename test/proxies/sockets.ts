/** The TCP sockets of this machine, as the Linux kernel lists them. */
import { existsSync, readFileSync } from 'node:fs';

export interface KernelSocket {
  localPort: number;
  remotePort: number;
  isListening: boolean;
  /** The bytes that the peer has not taken. */
  unsent: number;
  /** The bytes that the owner has not read. */
  unread: number;
}

const LISTENING = '0A';
const numberOf = (hex = '') => Number.parseInt(hex, 16);

/** Lists the sockets of the network that a process lives in. */
export function socketsAround(pid: number | 'self' = 'self'): KernelSocket[] {
  const files = ['tcp', 'tcp6'].map((name) => `/proc/${pid}/net/${name}`).filter(existsSync);
  const lines = files.flatMap((file) => readFileSync(file, 'utf8').trim().split('\n').slice(1));
  return lines.map((line) => {
    const [, local, remote, state, waiting] = line.trim().split(/\s+/);
    const [localPort, remotePort] = [local, remote].map((address) => numberOf(address?.split(':')[1]));
    const [unsent, unread] = waiting!.split(':').map(numberOf);
    return { localPort, remotePort, isListening: state === LISTENING, unsent, unread } as KernelSocket;
  });
}
