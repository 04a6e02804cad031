/** The first page: the figures, the open matters, the way to the first sale, and the latest orders. */
import { computed, effect, signal } from '@preact/signals';
import { html } from 'htm/preact';
import { changes, graphql, may, operator, type Row } from './api.ts';
import { FIGURES, Figures, LatestOrders } from './figures.ts';
import { FirstSteps, type Lists } from './first-steps.ts';
import { paced } from './pace.ts';
import { place } from './place.ts';
import { ago, toneOf } from './values.ts';

/** A matter as the service tells of it. */
interface Matter {
  kind: string;
  subject: string;
  since: string | null;
  severity: string;
  nextStep: string;
}

/** The page that shows a matter, by its kind. */
const PAGE_OF: Record<string, (subject: string) => string> = {
  BRAKE: (subject) => `brakes?row=${subject}`,
  CASE: (subject) => `cases?row=${subject}`,
  CAPACITY: () => 'stock',
  FINDING: () => 'findings',
  GATEWAY: (subject) => `gateways?row=${subject}`,
  MANUAL_JOB: (subject) => `jobs?row=${subject}`,
  MESSAGE: (subject) => `messages?unread=true&${subject === 'unpaid' ? 'paid=false' : `row=${subject}`}`,
  PAYMENT_HELD: (subject) => `payments?row=${subject}`,
  PAYMENT_UNMATCHED: (subject) => `payments?status=UNMATCHED&row=${subject}`,
  PROPOSAL: (subject) => `proposals?state=OPEN&row=${subject}`,
  TASK: (subject) => `work?state=STUCK&row=${subject}`,
};
const MATTERS_MAX = 100;
const MATTERS = `openMatters(limit: ${MATTERS_MAX}) { kind subject since severity nextStep }`;

/** The lists by which the first steps know how far they are. */
const PROGRESS = [
  ['regions', 'regions { offered }'],
  ['tiers', 'tiers { offered }'],
  ['engines', 'engines { simulated seenAt trouble members { name } }'],
  ['hosts', 'hosts { state }'],
  ['addressPools', 'addressPools { id }'],
  ['catalog', 'catalog { images { code } }'],
  ['engineImages', 'engineImages { trouble }'],
  ['stock', 'stock { free }'],
  ['gateways', 'gateways { name reachable simulated coins warning }'],
  ['servers', 'servers(limit: 8) { data { orderNumber hostname serviceCode region status createdAt } }'],
] as const;

const matters = signal<Matter[] | undefined>(undefined);
const lists = signal<Lists>({});
const figures = signal<Lists>({});

async function read(): Promise<void> {
  const allowed = PROGRESS.filter(([field]) => may(field)).map(([, query]) => query);
  const { openMatters, ...rest } = await graphql<
    { openMatters: Matter[] } & Record<string, Row[] | Record<string, Row[]>>
  >(`{ ${[MATTERS, ...allowed].join(' ')} }`);
  lists.value = rowsOf(rest);
  matters.value = openMatters;
}
async function readFigures(): Promise<void> {
  const allowed = FIGURES.filter(([field]) => may(field)).map(([, query]) => query);
  if (allowed.length) figures.value = rowsOf(await graphql(`{ ${allowed.join(' ')} }`));
}
const rowsOf = (answer: Record<string, Row[] | Record<string, Row[]>>): Lists =>
  Object.fromEntries(
    Object.entries(answer).map(([field, value]) => [field, Array.isArray(value) ? value : Object.values(value)[0]!]),
  );
const isOpen = computed(() => operator.value !== undefined && place.value.path === '');
/** The rest between two readings while changes pour in, in milliseconds. Each reading asks every gateway. */
const REST_MS = 10_000;
/** The same for the figures, which read all servers. */
const FIGURES_REST_MS = 60_000;
const whileOpen = (work: () => Promise<void>, restMs: number) =>
  paced(
    async () => {
      if (isOpen.peek()) await work();
    },
    () => restMs,
  );
const again = [whileOpen(read, REST_MS), whileOpen(readFigures, FIGURES_REST_MS)];
effect(() => {
  if (isOpen.value) for (const work of [read, readFigures]) void work().catch(() => {});
});
effect(() => {
  if (changes.value && isOpen.peek()) for (const work of again) work();
});

export function Today() {
  const open = matters.value;
  return html`
    <header class="head"><h1>Today</h1></header>
    ${!open && html`<p class="empty">Reading …</p>`}
    ${open && html`<${Figures} figures=${figures.value} />`}
    ${open?.length === 0 && html`<p class="calm">Nothing needs you.</p>`}
    <ul class="matters">${open?.map((matter) => html`<${Line} matter=${matter} key=${`${matter.kind} ${matter.subject}`} />`)}</ul>
    ${open?.length === MATTERS_MAX && html`<p class="empty">More may wait: the page of each kind has all of them.</p>`}
    ${open && html`<${FirstSteps} lists=${lists.value} /><${LatestOrders} lists=${lists.value} />`}`;
}

function Line({ matter: { kind, subject, since, severity, nextStep } }: { matter: Matter }) {
  const title = kind[0] + kind.slice(1).toLowerCase().replaceAll('_', ' ');
  return html`<li><a href="#${PAGE_OF[kind]?.(subject) ?? ''}">
    <strong class="state ${toneOf(severity)}">${title} <code>${subject}</code></strong>
    <span class="about">${nextStep}</span>
    ${since && html`<time datetime=${since}>${ago(since)}</time>`}
  </a></li>`;
}
