/** What makes a host a box: its controller, its card and its disk, for the operator. Secrets go in, and never out. */
import type { Host } from '../../entities/servers/host.ts';
import { BMC_PROTOCOLS, FIRMWARES, fingerprintOf } from '../../resolvers/servers/bare-metal.ts';
import { builder } from '../builder.ts';

const BmcProtocol = builder.enumType('BmcProtocol', {
  description: 'How a management controller is spoken to.',
  values: BMC_PROTOCOLS,
});
export const Firmware = builder.enumType('Firmware', { description: 'How a box starts.', values: FIRMWARES });

export const BmcType = builder.objectRef<Host>('Bmc').implement({
  description: 'How a management controller is reached.',
  fields: (t) => ({
    protocol: t.field({ type: BmcProtocol, resolve: ({ bmcProtocol }) => bmcProtocol! }),
    address: t.string({ resolve: ({ bmcAddress }) => bmcAddress! }),
    certificateSha256: t.string({
      nullable: true,
      description: 'Of the certificate that vouches for it. Without one, the public authorities do.',
      resolve: (host) => fingerprintOf(host),
    }),
  }),
});

const BmcInput = builder.inputType('BmcInput', {
  fields: (t) => ({
    protocol: t.field({ type: BmcProtocol, required: true }),
    address: t.field({
      type: 'Line',
      required: true,
      description: 'IPMI: a name or an IPv4 address, with a port where it is not 623. Redfish: https://10.1.0.12.',
    }),
    user: t.field({ type: 'Line', required: true }),
    password: t.field({ type: 'Line', required: true, description: 'Kept sealed, and never shown.' }),
    certificate: t.field({
      type: 'Prose',
      description:
        'PEM of the certificate of the controller itself (Redfish). By default public authorities vouch for it.',
    }),
  }),
});

type Fields = Parameters<Parameters<typeof builder.inputType>[1]['fields']>[0];
export const boxInput = (t: Fields) => ({
  bmc: t.field({ type: BmcInput, description: 'Of a dedicated server; always all of it.' }),
  mac: t.field({ type: 'Mac', description: 'Of the interface that a dedicated server boots from.' }),
  disk: t.field({
    type: 'BlockDevice',
    description: 'The device of a dedicated server that systems go to, and that is wiped.',
  }),
  firmware: t.field({ type: Firmware, description: 'Default: what the controller takes for it.' }),
});
