/** The way from an empty catalog to the first sale. Each step looks at the real engine or gateway. */
import { html } from 'htm/preact';
import type { Row } from './api.ts';

/** The rows that the first page has read, by root field. */
export type Lists = Record<string, Row[]>;

interface Step {
  title: string;
  /** The next act while the step is open. */
  hint: string;
  path: string;
  isDone: (lists: Lists) => boolean;
}

const some = (lists: Lists, field: string, fits: (row: Row) => boolean = () => true) => (lists[field] ?? []).some(fits);
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
  },
  {
    ...{ title: 'A host has room', path: 'hosts' },
    hint: 'Add the machines of the engine, with the size that you sell.',
    isDone: (lists) => some(lists, 'hosts', ({ state }) => state === 'ACTIVE'),
  },
  {
    ...{ title: 'A network has addresses', path: 'networks' },
    hint: 'Add an IPv4 or IPv6 network of the region.',
    isDone: (lists) => some(lists, 'addressPools'),
  },
  {
    ...{ title: 'A system is on offer', path: 'images' },
    hint: 'Offer a system whose image the engine has, or import one.',
    isDone: (lists) => some(lists, 'images', ({ offered }) => offered === true),
  },
  {
    ...{ title: 'A tier has stock', path: 'stock' },
    hint: 'Set how many machines of a tier a region sells.',
    isDone: (lists) => some(lists, 'stock', ({ free }) => Number(free) > 0),
  },
  {
    ...{ title: 'A gateway takes coins', path: 'gateways' },
    hint: 'Write PAYMENTS_FILE, and start the service again.',
    isDone: (lists) => some(lists, 'gateways', ({ reachable, simulated }) => Boolean(reachable && !simulated)),
  },
];

/** The open steps, until a server of a customer runs or every step is done. */
export function FirstSteps({ lists }: { lists: Lists }) {
  const isOver = some(lists, 'servers') || STEPS.every(({ isDone }) => isDone(lists));
  if (isOver) return null;
  return html`<section class="steps" aria-labelledby="first-steps">
    <h2 id="first-steps">To the first sale</h2>
    <ol>${STEPS.map((step) => {
      const isDone = step.isDone(lists);
      return html`<li class=${isDone ? 'done' : ''}><a href="#${step.path}">
        <strong>${step.title}</strong>${isDone ? html`<span>done</span>` : html`<span>${step.hint}</span>`}
      </a></li>`;
    })}</ol>
  </section>`;
}
