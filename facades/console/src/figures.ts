/** The state of the company in a few numbers, and the latest orders. */
import { html } from 'htm/preact';
import type { Row } from './api.ts';
import type { Lists } from './first-steps.ts';
import { ago, toneOf, usd } from './values.ts';

/** The queries of the figures: the root field, and the selection. */
export const FIGURES = [
  ['sales', 'sales { servers monthlyUsd }'],
  ['dailyTotals', 'dailyTotals(days: 1) { kind creditedUsd }'],
  ['hosts', 'hosts { state memoryMb claimedMemoryMb }'],
] as const;

const sum = (rows: readonly Row[], field: string): number =>
  rows.reduce((total, row) => total + Number(row[field] ?? 0), 0);

/** One number with its name, as a link to the page that explains it. */
function Figure({ name, value, path }: { name: string; value: string; path: string }) {
  return html`<a href="#${path}"><span>${name}</span><strong>${value}</strong></a>`;
}

/** Leaves out the numbers that the role may not read. */
export function Figures({ figures: { sales, dailyTotals, hosts } }: { figures: Lists }) {
  const credited = (dailyTotals ?? []).filter(({ kind }) => kind === 'topup');
  const room = (hosts ?? []).filter(({ state }) => state === 'ACTIVE');
  const used = (100 * sum(room, 'claimedMemoryMb')) / sum(room, 'memoryMb');
  return html`<section class="figures" aria-label="Figures">
    ${sales && html`<${Figure} name="Servers" value=${sum(sales, 'servers').toLocaleString('en')} path="servers" />`}
    ${sales && html`<${Figure} name="Revenue a month" value=${usd(sum(sales, 'monthlyUsd'))} path="sales" />`}
    ${dailyTotals && html`<${Figure} name="Paid today" value=${usd(sum(credited, 'creditedUsd'))} path="payments" />`}
    ${room.length > 0 && html`<${Figure} name="Memory sold" value=${`${Math.round(used)} %`} path="hosts" />`}
  </section>`;
}

/** The latest orders, with their state as it is now. */
export function LatestOrders({ servers }: { servers: readonly Row[] }) {
  if (!servers.length) return null;
  return html`<section class="latest" aria-labelledby="latest">
    <h2 id="latest">Latest orders</h2>
    <ul class="matters">${servers.map(
      ({ orderNumber, hostname, serviceCode, region, status, createdAt }) => html`<li key=${orderNumber}>
        <a href=${`#servers?row=${orderNumber}`}>
          <strong class="state ${toneOf(String(status))}">${hostname} <code>${orderNumber}</code></strong>
          <span class="about">${serviceCode} in ${region}, ${String(status).toLowerCase()}</span>
          <time datetime=${createdAt}>${ago(String(createdAt))}</time>
        </a></li>`,
    )}</ul>
  </section>`;
}
