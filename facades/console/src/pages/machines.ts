/** The pages about machines. */
import type { Row } from '../api.ts';
import { byId, byName, is, not, type Page } from './page.ts';

/** A row of which the service refuses the change when another operator was faster. */
const asSeen = ({ name, revision }: Row): Row => ({ name, seen: revision });

export const MACHINES: readonly Page[] = [
  {
    ...{ path: 'engines', group: 'Machines', title: 'Engines', list: 'engines', key: 'name' },
    fields: `name kinds region state simulated product version endpoints project pool network images revision
      seenAt trouble troubleAt members { name state vcpus memoryMb diskGb }`,
    columns: [
      { field: 'state', title: 'State', as: 'state' },
      { field: 'name', title: 'Engine' },
      { field: 'region', title: 'Region' },
      { field: 'product', title: 'Product', wide: true },
      { field: 'version', title: 'Version', wide: true },
      { field: 'trouble', title: 'Trouble' },
    ],
    actions: [{ mutation: 'addEngine', label: 'Add an engine' }],
    rowActions: [
      { mutation: 'updateEngine', label: 'Change', of: asSeen },
      { mutation: 'drainEngine', label: 'Drain', of: byName, when: is('state', 'ACTIVE') },
      { mutation: 'activateEngine', label: 'Activate', of: byName, when: is('state', 'DRAINED') },
      { mutation: 'removeEngine', label: 'Remove', of: byName, destroys: true },
    ],
    empty: 'No engine yet. Add the LXD or Incus server that carries your VPS.',
  },
  {
    ...{ path: 'hosts', group: 'Machines', title: 'Hosts', list: 'hosts', key: 'name', filters: ['region'] },
    fields: `name engine kind region state trouble troubleAt machines vcpus claimedVcpus vcpuOvercommit memoryMb claimedMemoryMb diskGb
      claimedDiskGb disks mac firmware serviceCode bootNetworkIsolated revision`,
    columns: [
      { field: 'state', title: 'State', as: 'state' },
      { field: 'name', title: 'Host' },
      { field: 'region', title: 'Region' },
      { field: 'machines', title: 'Machines', as: 'number' },
      { field: 'claimedVcpus', title: 'vCPUs sold', as: 'number', wide: true },
      { field: 'claimedMemoryMb', title: 'MB sold', as: 'number', wide: true },
      { field: 'memoryMb', title: 'of MB', as: 'number', wide: true },
      { field: 'trouble', title: 'Trouble', wide: true },
    ],
    actions: [{ mutation: 'addHost', label: 'Add a host', suggest: { name: 'engines { members { name } }' } }],
    rowActions: [
      { mutation: 'updateHost', label: 'Change', of: asSeen },
      { mutation: 'drainHost', label: 'Drain', of: byName, when: not('state', 'DRAINING') },
      { mutation: 'activateHost', label: 'Activate', of: byName, when: not('state', 'ACTIVE') },
      { mutation: 'evacuateHost', label: 'Evacuate', of: byName, destroys: true, when: is('kind', 'VPS') },
      { mutation: 'declareWiped', label: 'Declare wiped', of: byName, destroys: true, when: is('kind', 'DEDICATED') },
      { mutation: 'retireBox', label: 'Retire', of: byName, destroys: true, when: is('kind', 'DEDICATED') },
      { mutation: 'removeHost', label: 'Remove', of: byName, destroys: true },
    ],
    plot: {
      title: 'Sold and free memory of each host',
      name: ({ name }) => String(name),
      series: [
        { title: 'MB sold', value: ({ claimedMemoryMb }) => Number(claimedMemoryMb) },
        {
          title: 'MB left',
          value: ({ memoryMb, claimedMemoryMb }) => Math.max(0, Number(memoryMb) - Number(claimedMemoryMb)),
        },
      ],
      unit: 'MB',
    },
    empty: 'No host yet. Add the machines of your engines. You sell their room.',
  },
  {
    ...{ path: 'networks', group: 'Machines', title: 'Networks', list: 'addressPools', key: 'id', filters: ['region'] },
    fields: 'id region kind cidr gateway routed total held resting createdAt',
    columns: [
      { field: 'cidr', title: 'Network', as: 'code' },
      { field: 'region', title: 'Region' },
      { field: 'kind', title: 'Kind', wide: true },
      { field: 'held', title: 'In use', as: 'number' },
      { field: 'resting', title: 'Resting', as: 'number', wide: true },
      { field: 'total', title: 'of', as: 'number' },
    ],
    actions: [{ mutation: 'addAddressPool', label: 'Add a network' }],
    rowActions: [{ mutation: 'removeAddressPool', label: 'Remove', of: byId, destroys: true }],
    empty: 'No network yet. Servers get their addresses from here.',
  },
  {
    ...{ path: 'jobs', group: 'Machines', title: 'Jobs by hand', list: 'manualJobs', key: 'id', filters: ['limit'] },
    fields: `id orderNumber generation action power state note createdAt closedAt
      spec { serviceCode region image hostname sshPublicKeys rootPassword ipv4 ipv6 ipv6Prefix }`,
    columns: [
      { field: 'state', title: 'State', as: 'state' },
      { field: 'action', title: 'Job' },
      { field: 'orderNumber', title: 'Order', as: 'code' },
      { field: 'createdAt', title: 'Age', as: 'age' },
    ],
    rowActions: [
      { mutation: 'completeManualJob', label: 'Done', of: byId, when: is('closedAt', null) },
      { mutation: 'failManualJob', label: 'Failed', of: byId, when: is('closedAt', null), destroys: true },
    ],
    empty: 'No job waits for hands.',
  },
  {
    ...{ path: 'deployments', group: 'Machines', title: 'Installations', list: 'deployments', key: 'box' },
    filters: ['limit'],
    fields: 'box orderNumber generation state note report createdAt updatedAt',
    columns: [
      { field: 'state', title: 'State', as: 'state' },
      { field: 'box', title: 'Host' },
      { field: 'orderNumber', title: 'Order', as: 'code' },
      { field: 'updatedAt', title: 'News', as: 'age' },
    ],
    empty: 'No dedicated server is being installed or wiped.',
  },
  {
    ...{ path: 'work', group: 'Machines', title: 'Work', list: 'tasks', key: 'subject', filters: ['state', 'limit'] },
    fields: 'subject process step state attempts error runAt deadlineAt',
    columns: [
      { field: 'state', title: 'State', as: 'state' },
      { field: 'subject', title: 'Of', as: 'code' },
      { field: 'process', title: 'Process', wide: true },
      { field: 'step', title: 'Step' },
      { field: 'attempts', title: 'Tries', as: 'number', wide: true },
      { field: 'error', title: 'Error', wide: true },
    ],
    rowActions: [
      { mutation: 'retryTask', label: 'Try again', of: ({ subject }) => ({ subject }) },
      { mutation: 'giveUpTask', label: 'Give up', of: ({ subject }) => ({ subject }), destroys: true },
    ],
    empty: 'No work waits.',
  },
  {
    ...{ path: 'findings', group: 'Machines', title: 'Findings', list: 'findings', key: 'id', filters: ['limit'] },
    fields: 'id kind engine orderNumber generation detail firstSeenAt lastSeenAt',
    columns: [
      { field: 'kind', title: 'Kind', as: 'state' },
      { field: 'orderNumber', title: 'Order', as: 'code' },
      { field: 'detail', title: 'Detail' },
      { field: 'firstSeenAt', title: 'Since', as: 'age' },
    ],
    empty: 'The engines have what the books say.',
  },
  {
    ...{ path: 'brakes', group: 'Machines', title: 'Circuit breakers', list: 'brakes', key: 'engine' },
    fields: 'engine reason createdAt',
    columns: [
      { field: 'engine', title: 'Engine' },
      { field: 'reason', title: 'Reason' },
      { field: 'createdAt', title: 'Since', as: 'age' },
    ],
    rowActions: [{ mutation: 'releaseBrake', label: 'Release', of: ({ engine }) => ({ engine }), destroys: true }],
    empty: 'No circuit breaker is open.',
  },
];
