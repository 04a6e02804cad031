/** The first page: the figures, the open matters, the way to the first sale, and the latest orders. */
import { computed, effect, signal, untracked } from '@preact/signals';
import { html } from 'htm/preact';
import { changes, graphql, may, operator, type Row } from './api.ts';
import { FIGURES, Figures, LatestOrders } from './figures.ts';
import { FirstSteps, type Lists } from './first-steps.ts';
import { paced } from './pace.ts';
import { forConsole } from './pages/words.ts';
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
  BACKUP: () => 'events',
  BRAKE: (subject) => `brakes?row=${subject}`,
  CASE: (subject) => `cases?row=${subject}`,
  CANARY: () => 'canary',
  CAPACITY: () => 'stock',
  FINDING: () => 'findings',
  GATEWAY: (subject) => `gateways?row=${subject}`,
  HOST: (subject) => `hosts?row=${subject}`,
  MANUAL_JOB: (subject) => `jobs?row=${subject}`,
  MESSAGE: (subject) => `messages?unread=true&${subject === 'unpaid' ? 'paid=false' : `row=${subject}`}`,
  PAYMENT_HELD: (subject) => `payments?row=${subject}`,
  PAYMENT_UNMATCHED: (subject) => `payments?status=UNMATCHED&row=${subject}`,
  PROPOSAL: (subject) => `proposals?state=OPEN&row=${subject}`,
  TASK: (subject) => `work?state=STUCK&row=${subject}`,
};
const MATTERS_MAX = 100;
const MATTERS = `openMatters(limit: ${MATTERS_MAX}) { kind subject since severity nextStep }`;

const ORDERS = 'servers(limit: 8) { data { orderNumber hostname serviceCode region status createdAt } }';

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
] as const;

const matters = signal<Matter[] | undefined>(undefined);
const orders = signal<Row[]>([]);
/** Undefined: they have not arrived, or a customer has a real server. */
const progress = signal<Lists | undefined>(undefined);
const figures = signal<Lists>({});

type Queries = readonly (readonly [field: string, query: string])[];
/** Reads the lists that the role may read. @throws Refusal */
async function readLists(queries: Queries): Promise<Lists> {
  const allowed = queries.filter(([field]) => may(field)).map(([, query]) => query);
  if (!allowed.length) return {};
  const answer = await graphql<Record<string, Row[] | Record<string, Row[]>>>(`{ ${allowed.join(' ')} }`);
  return Object.fromEntries(
    Object.entries(answer).map(([field, value]) => [field, Array.isArray(value) ? value : Object.values(value)[0]!]),
  );
}
async function readMatters(): Promise<void> {
  matters.value = (await graphql<{ openMatters: Matter[] }>(`{ ${MATTERS} }`)).openMatters;
}
async function readOrders(): Promise<void> {
  const { servers = [], engines = [] } = await readLists([
    ['servers', ORDERS],
    ['engines', 'engines { simulated }'],
  ]);
  orders.value = servers;
  // Orders of simulated machines are trials before the first sale.
  const isTrial = engines.length > 0 && engines.every(({ simulated }) => simulated);
  progress.value = servers.length && !isTrial ? undefined : await readLists(PROGRESS);
}
async function readFigures(): Promise<void> {
  figures.value = await readLists(FIGURES);
}
const isOpen = computed(() => operator.value !== undefined && place.value.path === '');
/**
 * The parts of the page, and the rest between two readings while changes pour in, in milliseconds. The matters ask every gateway,
 * and the figures read all servers. Each part appears when it arrives, so no slow gateway holds up the others.
 */
const PARTS = [
  [readMatters, 10_000],
  [readOrders, 10_000],
  [readFigures, 60_000],
] as const;
const whileOpen = (work: () => Promise<void>, restMs: number) =>
  paced(
    async () => {
      if (isOpen.peek()) await work();
    },
    () => restMs,
  );
const again = PARTS.map(([work, restMs]) => whileOpen(work, restMs));
effect(() => {
  if (isOpen.value) untracked(() => PARTS.forEach(([work]) => void work().catch(() => {})));
});
effect(() => {
  if (changes.value && isOpen.peek()) for (const work of again) work();
});

export function Today() {
  const open = matters.value;
  return html`
    <header class="head"><h1>Today</h1></header>
    <${Figures} figures=${figures.value} />
    ${!open && html`<p class="empty">Reading …</p>`}
    ${open?.length === 0 && html`<p class="calm">Nothing needs you.</p>`}
    <ul class="matters">${open?.map((matter) => html`<${Line} matter=${matter} key=${`${matter.kind} ${matter.subject}`} />`)}</ul>
    ${open?.length === MATTERS_MAX && html`<p class="empty">More may wait: the page of each kind has all of them.</p>`}
    <${LatestOrders} servers=${orders.value} />
    ${progress.value && html`<${FirstSteps} lists=${progress.value} />`}`;
}

function Line({ matter: { kind, subject, since, severity, nextStep } }: { matter: Matter }) {
  const title = kind[0] + kind.slice(1).toLowerCase().replaceAll('_', ' ');
  return html`<li><a href="#${PAGE_OF[kind]?.(subject) ?? ''}">
    <strong class="state ${toneOf(severity)}">${title} <code>${subject}</code></strong>
    <span class="about">${forConsole(nextStep)}</span>
    ${since && html`<time datetime=${since}>${ago(since)}</time>`}
  </a></li>`;
}
