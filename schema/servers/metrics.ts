/** Metrics: the use of the machine of a server. */
import type { Use } from '../../entities/servers/metering/meter.ts';
import { findMetrics, type Metrics } from '../../resolvers/servers/metrics.ts';
import { builder, enumType, objectType } from '../builder.ts';

const MetricStep = enumType('MetricStep', 'The time between two points.', ['MINUTE', 'HOUR']);

const numberOf = (value: bigint | null) => (value === null ? null : Number(value));
const MetricPoint = objectType<Use>('MetricPoint', 'The use since the point before, or since the start.', (t) => ({
  at: t.expose('at', { type: 'DateTime', description: 'The minute or the hour at which the interval ends.' }),
  sentBytes: t.float({ description: 'From the machine.', resolve: ({ sentBytes }) => Number(sentBytes) }),
  receivedBytes: t.float({ description: 'To the machine.', resolve: ({ receivedBytes }) => Number(receivedBytes) }),
  cpuSeconds: t.float({
    nullable: true,
    description: 'The time of all vCPUs together.',
    resolve: ({ cpuNs }) => (cpuNs === null ? null : Number(cpuNs) / 1e9),
  }),
  memoryBytes: t.float({
    nullable: true,
    description: 'The used memory at that time.',
    resolve: ({ memoryBytes }) => numberOf(memoryBytes),
  }),
  diskBytes: t.float({
    nullable: true,
    description: 'The used disk at that time.',
    resolve: ({ diskBytes }) => numberOf(diskBytes),
  }),
}));
const MetricsType = objectType<Metrics>(
  'ServerMetrics',
  'The use of a machine, as its engine counts it. Dedicated servers have no points.',
  (t) => ({
    from: t.expose('from', { type: 'DateTime', description: 'The beginning of the range.' }),
    to: t.expose('to', { type: 'DateTime', description: 'The end of the range.' }),
    step: t.expose('step', { type: MetricStep, description: 'The time between two points.' }),
    slow: t.exposeBoolean('slow', { description: 'Whether the machine is slow until the end of the month.' }),
    points: t.expose('points', { type: [MetricPoint], description: 'The oldest first. Without a reading, none.' }),
  }),
);

builder.queryFields((t) => ({
  serverMetrics: t.field({
    type: MetricsType,
    scope: 'read',
    description: 'CPU, memory, disk and network of a server.',
    args: {
      orderNumber: t.arg({ type: 'ID', required: true, description: 'The order number of the server.' }),
      from: t.arg({ type: 'RangeStart', description: 'The first time. Default: an hour before the last.' }),
      to: t.arg({ type: 'RangeEnd', description: 'The last time. Default: now.' }),
      step: t.arg({
        type: MetricStep,
        description: 'Minutes are kept for a day, hours for 60 days. Default: minutes, if from is within a day.',
      }),
    },
    resolve: (_, { orderNumber, ...range }, context) => findMetrics(context, orderNumber, range),
  }),
}));
