/** The pages about publications: incidents, the warrant canary and the peering. */
import type { Row } from '../api.ts';
import { valuesOf } from '../model.ts';
import { not, type Page } from './page.ts';

/** A canary with a missing code is an alarm that everybody sees. */
function alarm({ codes }: Row): string {
  const missing = valuesOf({ kind: 'ENUM', name: 'CanaryCode', ofType: null })!.filter(
    (code) => !(codes as string[]).includes(code),
  );
  return missing.length ? `Everybody will read that these events have happened: ${missing.join(', ')}.` : '';
}

export const PUBLIC: readonly Page[] = [
  {
    ...{ path: 'incidents', group: 'Public', title: 'Incidents', list: 'incidents', key: 'id', filters: ['open'] },
    fields: 'id status impact name components startedAt resolvedAt updates { createdAt status body }',
    columns: [
      { field: 'status', title: 'State', as: 'state' },
      { field: 'name', title: 'Incident' },
      { field: 'impact', title: 'Impact' },
      { field: 'components', title: 'Parts', wide: true },
      { field: 'startedAt', title: 'Since', wide: true },
    ],
    actions: [
      {
        ...{ mutation: 'publishIncident', label: 'Report an incident' },
        asks: () => 'Everybody will read this at once, on the page of the status.',
        suggest: { components: 'serviceStatus { components { id } }' },
      },
    ],
    rowActions: [
      {
        ...{ mutation: 'updateIncident', label: 'Add a report' },
        of: ({ id, updates }) => ({ id, seen: (updates as Row[]).length }),
      },
    ],
    empty: 'No incident. Report one, or announce a maintenance: the page of the status shows it to everybody.',
  },
  {
    ...{ path: 'canary', group: 'Public', title: 'Warrant canary', list: 'canary', key: 'version' },
    fields: `version status issuedAt expiresAt codes statement signedText fingerprint publicKey freshness sha256
      previousSha256`,
    columns: [
      { field: 'status', title: 'State', as: 'state' },
      { field: 'version', title: 'Version', as: 'code' },
      { field: 'issuedAt', title: 'Issued', wide: true },
      { field: 'expiresAt', title: 'Until' },
      { field: 'statement', title: 'Statement', wide: true },
    ],
    actions: [{ mutation: 'publishCanary', label: 'Publish a canary', asks: alarm }],
    rowActions: [
      {
        ...{ mutation: 'publishCanary', label: 'Repeat it', asks: alarm, when: not('version', '0') },
        of: ({ statement }) => ({ input: { statement } }),
      },
    ],
    empty: 'No canary.',
  },
  {
    ...{ path: 'peering', group: 'Public', title: 'Peering', list: 'peering', key: 'name' },
    fields: `asn name irrAsSet policy policyUrl nocEmail peeringdbUrl infoPrefixes4 infoPrefixes6
      exchanges { name city country speedMbps ipv4 ipv6 isRsPeer operational } facilities { name city country } updatedAt`,
    columns: [
      { field: 'name', title: 'Network' },
      { field: 'asn', title: 'ASN', as: 'code' },
      { field: 'policy', title: 'Policy', wide: true },
      { field: 'updatedAt', title: 'Published', as: 'day', wide: true },
    ],
    rowActions: [
      {
        ...{ mutation: 'publishPeering', label: 'Replace it' },
        first: ({ updatedAt: _, ...document }) => ({ document }),
      },
    ],
    empty: 'No network is published.',
  },
];
