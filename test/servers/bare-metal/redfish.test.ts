import { expect, it } from 'vitest';
import { RedfishController } from '../../../provisioning/servers/drivers/bmc/redfish.ts';
import { startRedfish } from '../../engine/metal/redfish.ts';
import { CONTROLLER, OTHER_CERTIFICATE } from '../../setup/certificates.ts';
import { atEnd } from '../../setup/end.ts';
import { freePort } from '../../setup/spawn.ts';
import { newRack } from './room.ts';

const { box, disconnect } = await newRack('box-1', 1);
const port = await freePort();
const asked: string[] = [];
const chassis = (...what: string[]) => {
  asked.push(what.join(' '));
  return 'power:1';
};
const controller = await startRedfish({ port, user: 'u', password: 'p', chassis, tls: CONTROLLER });
atEnd(() => Promise.all([controller.stop(), disconnect()]));

const powerWith = (certificate: string | undefined) => {
  const bmc = { ...box.bmc, address: `https://127.0.0.1:${port}`, ...(certificate && { certificate }) };
  return new RedfishController({ ...box, bmc }).power(new AbortController().signal);
};

it('The driver sends its password only to a controller with the pinned certificate', async () => {
  for (const certificate of [OTHER_CERTIFICATE, undefined])
    await expect(powerWith(certificate)).rejects.toMatchObject({ code: 'unreachable' });
  expect(asked).toEqual([]);
  expect(await powerWith(CONTROLLER.cert)).toBe('on');
});
