/** The first page: the matters that need an operator now. */
import { effect, signal } from '@preact/signals';
import { html } from 'htm/preact';
import { changes, graphql, may, operator, type Row } from './api.ts';
import { FirstSteps, type Lists } from './first-steps.ts';
import { place } from './place.ts';
import { ago } from './values.ts';

interface Matter {
  /** Where to look. */
  path: string;
  title: string;
  detail: string;
  since?: string | undefined;
}

/** The lists that make matters, with the page and the words of each row. */
const SOURCES: [field: string, query: string, matter: (row: Row) => Matter | undefined][] = [
  [
    'troubles',
    'troubles(limit: 20) { orderNumber trouble troubleAt }',
    ({ orderNumber, trouble, troubleAt }) => ({
      ...{ path: `servers?row=${orderNumber}`, title: `Server ${orderNumber} waits` },
      ...{ detail: String(trouble), since: troubleAt as string },
    }),
  ],
  [
    'findings',
    'findings(limit: 20) { id kind orderNumber detail firstSeenAt }',
    ({ id, kind, orderNumber, detail, firstSeenAt }) => ({
      ...{ path: `findings?row=${id}`, title: `${orderNumber}: ${String(kind).toLowerCase()}` },
      ...{ detail: String(detail), since: firstSeenAt as string },
    }),
  ],
  [
    'brakes',
    'brakes { engine reason createdAt }',
    ({ engine, reason, createdAt }) => ({
      ...{ path: `brakes?row=${engine}`, title: `The circuit breaker of ${engine} is open` },
      ...{ detail: String(reason), since: createdAt as string },
    }),
  ],
  [
    'gateways',
    'gateways { name reachable simulated warning }',
    ({ name, reachable, warning }) =>
      reachable && !warning
        ? undefined
        : { path: `gateways?row=${name}`, title: `Gateway ${name}`, detail: String(warning ?? 'It does not answer.') },
  ],
  [
    'payments',
    'payments(limit: 20, status: UNMATCHED) { data { id coin units seenAt } }',
    ({ id, coin, units, seenAt }) => ({
      ...{ path: `payments?row=${id}`, title: `A payment of ${coin} belongs to no top-up` },
      ...{ detail: `${units} units. Assign it, return it, or write it off.`, since: seenAt as string },
    }),
  ],
  [
    'engines',
    'engines { name simulated seenAt trouble troubleAt }',
    ({ name, trouble, troubleAt }) =>
      trouble === null
        ? undefined
        : { path: `engines?row=${name}`, title: `Engine ${name}`, detail: String(trouble), since: troubleAt as string },
  ],
  [
    'manualJobs',
    'manualJobs(limit: 20) { id orderNumber action createdAt closedAt }',
    ({ id, orderNumber, action, createdAt, closedAt }) =>
      closedAt === null
        ? {
            ...{ path: `jobs?row=${id}`, title: `${orderNumber}: ${String(action).toLowerCase()} by hand` },
            ...{ detail: 'A server waits for your hands.', since: createdAt as string },
          }
        : undefined,
  ],
];

/** The lists by which the first steps know how far they are. */
const PROGRESS = [
  ['hosts', 'hosts { state }'],
  ['addressPools', 'addressPools { id }'],
  ['images', 'images { offered }'],
  ['stock', 'stock { free }'],
  ['servers', 'servers(limit: 1) { data { orderNumber } }'],
] as const;

const lists = signal<Lists | undefined>(undefined);

async function read(): Promise<void> {
  const queries = [...SOURCES.map(([field, query]) => [field, query] as const), ...PROGRESS];
  const allowed = queries.filter(([field]) => may(field)).map(([, query]) => query);
  const data = await graphql<Record<string, Row[] | { data: Row[] }>>(`{ ${allowed.join(' ')} }`);
  const rows = Object.entries(data).map(([field, value]) => [field, Array.isArray(value) ? value : value.data]);
  lists.value = Object.fromEntries(rows);
}
effect(() => {
  changes.value;
  if (operator.value && place.value.path === '') void read().catch(() => {});
});

export function Today() {
  const known = lists.value;
  if (!known) return html`<header class="head"><h1>Today</h1></header><p class="empty">Reading …</p>`;
  const found = SOURCES.flatMap(([field, , matterOf]) => (known[field] ?? []).map(matterOf));
  const matters = found.filter((matter) => matter !== undefined);
  return html`
    <header class="head"><h1>Today</h1></header>
    ${matters.length === 0 && html`<p class="calm">Nothing needs you.</p>`}
    <ul class="matters">${matters.map(
      ({ path, title, detail, since }) => html`<li><a href="#${path}">
        <strong>${title}</strong><span>${detail}</span>${since && html`<time datetime=${since}>${ago(since)}</time>`}
      </a></li>`,
    )}</ul>
    <${FirstSteps} lists=${known} />`;
}
