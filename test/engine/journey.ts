/** The journey of a customer's VPS from the order to its deletion, on any engine. */
import { describe, expect, it } from 'vitest';
import { eventually } from '../setup/freehold.ts';
import { type Customer, login, type Sold, type UploadedKey } from './customer.ts';
import { ssh } from './lxd.ts';

export interface Ground {
  customer: Customer;
  keys: readonly [UploadedKey, UploadedKey];
  /** The paths of all instances of this project on the engine. */
  instances(): Promise<string[]>;
}

export interface Journey {
  /** The image of the rebuild. Default: alpine-3.22. */
  otherImage?: string;
  /** Whether machines use the first address of their prefix. */
  ipv6?: boolean;
  /** Seconds that a machine may take to boot. Default: 120. */
  bootSeconds?: number;
}

/** Describes the tests, which run in order. They ask for the ground when they run. */
export function describeJourney(
  name: string,
  ground: () => Ground,
  { otherImage = 'alpine-3.22', ipv6 = false, bootSeconds = 120 }: Journey = {},
): void {
  describe(name, () => {
    let server: Sold;
    let before: string[];
    const change = (body: object, status: string) =>
      ground().customer.change(server.order_number, body, status, bootSeconds);
    const enter = (key: 0 | 1, command: string, address = server.ipv4) =>
      login(address, ground().keys[key].file, command, bootSeconds);
    const isShut = async (key: 0 | 1) => (await ssh(server.ipv4, ground().keys[key].file, 'true')) === undefined;

    it('accepts the uploaded key', async () => {
      const { customer, keys, instances } = ground();
      before = await instances();
      const orderNumber = await customer.order({ ssh_key_ids: [keys[0].id], hostname: 'first.example.org' });
      server = await customer.settled(orderNumber, bootSeconds);
      expect(server).toMatchObject({ status: 'running', failure: null });
      expect(await enter(0, 'hostname; echo here >/root/mine; sync')).toBe('first.example.org');
      expect(await isShut(1)).toBe(true);
    });

    it.runIf(ipv6)('is reachable by the first address of its IPv6 prefix, too', async () => {
      expect(server.ipv6_prefix).toBe(server.ipv6.replace(/1$/, '/64'));
      expect(await enter(0, 'cat /root/mine', server.ipv6)).toBe('here');
    });

    it('keeps its data over a reboot', async () => {
      await change({ action: 'reboot' }, 'running');
      expect(await enter(0, 'cat /root/mine')).toBe('here');
    });

    it('is rebuilt with another key', async () => {
      await change({ action: 'rebuild', os: otherImage, ssh_key_ids: [ground().keys[1].id] }, 'running');
      expect(await enter(1, 'cat /root/mine 2>/dev/null || echo empty')).toBe('empty');
      expect(await isShut(0)).toBe(true);
    });

    it('gets a larger size while it is off', async () => {
      await enter(1, 'echo kept >/root/mine; sync');
      await change({ power_state: 'off' }, 'stopped');
      expect(await isShut(1)).toBe(true);
      await change({ service_code: 'vps-2' }, 'stopped');
      await change({ power_state: 'on' }, 'running');
      expect(await enter(1, 'nproc; cat /root/mine')).toBe('2\nkept');
    });

    it('has a meter within a minute', async () => {
      const read = () => ground().customer.rest('GET', `/v1/servers/${server.order_number}`);
      await eventually(async () => (await read()).body.traffic_used_gb !== null, 90);
    });

    it('leaves nothing on the engine after its deletion', async () => {
      const { customer, instances } = ground();
      expect(await instances()).toHaveLength(before.length + 1);
      expect((await customer.rest('DELETE', `/v1/servers/${server.order_number}`)).status).toBe(200);
      await eventually(async () => (await instances()).length === before.length);
      expect(await instances()).toEqual(before);
      expect(await isShut(1)).toBe(true);
    });
  });
}
