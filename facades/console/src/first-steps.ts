/** The way from an empty catalog to the first sale. Each step looks at the real engine or gateway. */
import { html } from 'htm/preact';
import type { Row } from './api.ts';

/** The rows that the first page has read, by root field. */
export type Lists = Record<string, Row[]>;

interface Step {
  title: string;
  /** The next act while the step is open. */
  hint: string;
  /** The words of the engine or the gateway against it. */
  trouble?: (lists: Lists) => unknown;
  path: string;
  isDone: (lists: Lists) => boolean;
}

const some = (lists: Lists, field: string, fits: (row: Row) => boolean = () => true) => (lists[field] ?? []).some(fits);
/** The first words of a field among the rows. */
const firstOf = (lists: Lists, list: string, field: string) => lists[list]?.find((row) => row[field])?.[field];
const membersOf = ({ engines = [] }: Lists): string =>
  engines.flatMap(({ members }) => (members as Row[]).map(({ name }) => name)).join(', ');
const STEPS: readonly Step[] = [
  {
    ...{ title: 'A region is on offer', path: 'regions' },
    hint: 'Add the data centre of your machines. Engines, hosts and networks belong to it.',
    isDone: (lists) => some(lists, 'regions', ({ offered }) => offered === true),
  },
  {
    ...{ title: 'A tier has a price', path: 'tiers' },
    hint: 'Add a tier with its size and its price.',
    isDone: (lists) => some(lists, 'tiers', ({ offered }) => offered === true),
  },
  {
    ...{ title: 'An engine answers', path: 'engines' },
    hint: 'Add the LXD or Incus server that carries your VPS, or hosts for dedicated servers.',
    isDone: (lists) =>
      some(lists, 'engines', ({ simulated, seenAt, trouble }) => Boolean(!simulated && seenAt && !trouble)),
    trouble: (lists) => firstOf(lists, 'engines', 'trouble'),
  },
  {
    ...{ title: 'A host has room', path: 'hosts' },
    hint: 'Add the machines of the engine, with the size that you sell.',
    isDone: (lists) => some(lists, 'hosts', ({ state }) => state === 'ACTIVE'),
    trouble: (lists) => membersOf(lists) && `The engine told of ${membersOf(lists)}.`,
  },
  {
    ...{ title: 'A network has addresses', path: 'networks' },
    hint: 'Add an IPv4 or IPv6 network of the region.',
    isDone: (lists) => some(lists, 'addressPools'),
  },
  {
    ...{ title: 'A system is on offer', path: 'images' },
    hint: 'Add a system, and import its image. An engine must have the image under the code of the system.',
    isDone: (lists) => some(lists, 'catalog'),
    trouble: (lists) => firstOf(lists, 'engineImages', 'trouble'),
  },
  {
    ...{ title: 'A tier has stock', path: 'stock' },
    hint: 'Set how many machines of a tier a region sells.',
    isDone: (lists) => some(lists, 'stock', ({ free }) => Number(free) > 0),
  },
  {
    ...{ title: 'A gateway takes coins', path: 'gateways' },
    hint: 'Set PAYMENTS_FILE to a JSON file of gateways, as docs/operate/payments.md shows, and start the service again.',
    isDone: (lists) => some(lists, 'gateways', ({ reachable, ...row }) => reachable === true && takesCoins(row)),
    trouble: ({ gateways = [] }) => {
      const silent = gateways.find((row) => takesCoins(row) && !row.reachable);
      return silent && `${silent.name} does not answer. ${silent.warning ?? ''}`;
    },
  },
];

/** Whether real customers can pay there. The entry of the public listener has no coins. */
function takesCoins({ simulated, coins }: Row): boolean {
  return !simulated && (coins as unknown[]).length > 0;
}

/** The steps, for as long as no customer has a real server. */
export function FirstSteps({ lists }: { lists: Lists }) {
  const isReady = STEPS.every(({ isDone }) => isDone(lists));
  return html`<section class="steps" aria-labelledby="first-steps">
    <h2 id="first-steps">To the first sale</h2>
    ${isReady && html`<p class="calm">All is ready. Customers can register, pay, and order over REST or MCP.</p>`}
    <ol>${STEPS.map((step) => {
      const isDone = step.isDone(lists);
      return html`<li class=${isDone ? 'done' : ''}><a href="#${step.path}">
        <strong>${step.title}</strong><span>${isDone ? 'done' : step.hint}</span>
        ${!isDone && step.trouble?.(lists) && html`<span class="problem">${step.trouble(lists)}</span>`}
      </a></li>`;
    })}</ol>
  </section>`;
}
