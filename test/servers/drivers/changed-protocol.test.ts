/** Clients of machines and wallets, whose servers answer that they change the protocol (RFC 9110, 15.2.2). */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { moneroRpc } from '../../../provisioning/payments/drivers/monero/rpc.ts';
import type { BareMetalHost } from '../../../provisioning/servers/drivers/bmc/host.ts';
import { RedfishController } from '../../../provisioning/servers/drivers/bmc/redfish.ts';
import { send } from '../../../provisioning/servers/drivers/lxc/endpoint.ts';
import { newFolder, removeFolder } from '../../setup/spawn.ts';

const NEVER = new AbortController().signal;
const LOGIN = { user: 'ada', password: 'secret' };

const controller = (address: string) =>
  new RedfishController({ name: 'box-1', bmc: { address, ...LOGIN } } as BareMetalHost);

it.each<[string, (url: string, socketPath: string) => Promise<unknown>]>([
  ['a controller', (url) => controller(url).power(NEVER)],
  ['an engine', (_, socketPath) => send({ socketPath }, { method: 'GET', path: '/', silentMs: 20_000, signal: NEVER })],
  ['a wallet', (url) => moneroRpc(url).call(NEVER, 'get_height')],
  ['a wallet with a login', (url) => moneroRpc(url, LOGIN).call(NEVER, 'get_height')],
])(
  '%s that changes the protocol counts as unreachable, and holds no call',
  async (_, ask) => {
    const folder = newFolder();
    onTestFinished(() => removeFolder(folder));
    const socketPath = `${folder}/socket`;
    const [overTcp, overSocket] = [createServer(), createServer()];
    for (const server of [overTcp, overSocket]) {
      server.on('request', (_, { socket }) =>
        socket!.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
      );
      onTestFinished(() => void server.close());
    }
    await once(overTcp.listen(0, '127.0.0.1'), 'listening');
    await once(overSocket.listen(socketPath), 'listening');
    await expect(ask(`http://127.0.0.1:${(overTcp.address() as AddressInfo).port}`, socketPath)).rejects.toThrow();
  },
  60_000,
);
