/** The live catalog: prices, stock, regions and images. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { Dot } from './transparency.ts';

interface Tier {
  code: string;
  name: string;
  memory_mb: number;
  port_mbps: number;
  price_month_usd: number;
  price_hour_usd: number;
  setup_fee_usd: number;
  regions: { code: string; stock: 'available' | 'low' | 'none' }[];
}
export interface VpsTier extends Tier {
  vcpus: number;
  disk_gb: number;
  disk_type: string;
  traffic_tb: number;
  extra_traffic_tb_usd: number | null;
  virtualization: string;
}
export interface DedicatedTier extends Tier {
  cpu_model: string;
  cores: number;
  threads: number;
  disks: { count: number; size_gb: number; type: string }[];
  traffic_tb: number | null;
  delivery_hours: number;
}
export interface Bastion {
  code: string;
  name: string;
  city: string;
  country: string;
  test_ipv4: string | null;
  test_ipv6: string | null;
  looking_glass_url: string | null;
  status: string;
}
export interface Image {
  code: string;
  name: string;
  deprecated_at: string | null;
}
export interface Catalog {
  vps: VpsTier[];
  dedicated: DedicatedTier[];
  bastions: Bastion[];
  images: Image[];
}

const usd = (amount: number): string =>
  `$${amount.toLocaleString('en', { minimumFractionDigits: amount % 1 ? 2 : 0, maximumFractionDigits: amount < 1 ? 4 : 2 })}`;
const size = (gb: number): string =>
  gb >= 1000 && gb % 1000 === 0 ? `${gb / 1000} TB` : `${gb.toLocaleString('en')} GB`;
const memory = (mb: number): string => size(mb / 1024);
const speed = (mbps: number): string => (mbps % 1000 ? `${mbps} Mbit/s` : `${mbps / 1000} Gbit/s`);

/** A cell with its column's name, which a narrow screen shows beside it. */
const Cell = ({ of, children }: { of: string; children?: unknown }): VNode =>
  html`<td data-column=${of}>${children}</td>`;

const Price = ({ tier }: { tier: Tier }): VNode => html`
  <${Cell} of="Price">
    <span class="price">${usd(tier.price_month_usd)}</span> a month
    <small>${usd(tier.price_hour_usd)} an hour${tier.setup_fee_usd > 0 && `, ${usd(tier.setup_fee_usd)} setup`}</small>
  <//>`;

const STOCK = { available: '', low: ', few left', none: ', sold out' };
const Regions = ({ tier: { regions }, bastions }: { tier: Tier; bastions: readonly Bastion[] }): VNode => html`
  <${Cell} of="Regions">${
    regions.length
      ? html`<ul class="chips">${regions.map(
          ({ code, stock }) =>
            html`<li class=${stock === 'none' ? 'out' : null}>${bastions.find((one) => one.code === code)?.name ?? code}${STOCK[stock]}</li>`,
        )}</ul>`
      : 'sold out'
  }<//>`;

const Name = ({ tier: { name, code } }: { tier: Tier }): VNode =>
  html`<th scope="row">${name}<small><code>${code}</code></small></th>`;

function table(caption: string, columns: readonly string[], rows: readonly VNode[]): VNode | false {
  return (
    rows.length > 0 &&
    html`<table class="prices">
      <caption>${caption}</caption>
      <thead><tr>${columns.map((column) => html`<th scope="col">${column}</th>`)}</tr></thead>
      <tbody>${rows}</tbody>
    </table>`
  );
}

function vpsTable({ vps, bastions }: Catalog): VNode | false {
  const rows = vps.map(
    (tier) => html`<tr>
      <${Name} tier=${tier} /><${Price} tier=${tier} />
      <${Cell} of="CPU">${tier.vcpus} ${tier.vcpus === 1 ? 'vCPU' : 'vCPUs'}<//>
      <${Cell} of="Memory">${memory(tier.memory_mb)}<//>
      <${Cell} of="Disk">${size(tier.disk_gb)} ${tier.disk_type}<//>
      <${Cell} of="Traffic">${tier.traffic_tb} TB<small>${tier.extra_traffic_tb_usd === null ? 'then slow' : `then ${usd(tier.extra_traffic_tb_usd)} a TB`}</small><//>
      <${Cell} of="Port">${speed(tier.port_mbps)}<//>
      <${Regions} tier=${tier} bastions=${bastions} />
    </tr>`,
  );
  return table('VPS', ['Plan', 'Price', 'CPU', 'Memory', 'Disk', 'Traffic', 'Port', 'Regions'], rows);
}

function dedicatedTable({ dedicated, bastions }: Catalog): VNode | false {
  const rows = dedicated.map(
    (tier) => html`<tr>
      <${Name} tier=${tier} /><${Price} tier=${tier} />
      <${Cell} of="CPU">${tier.cpu_model}<small>${tier.cores} cores, ${tier.threads} threads</small><//>
      <${Cell} of="Memory">${memory(tier.memory_mb)}<//>
      <${Cell} of="Disks">${tier.disks.map(({ count, size_gb, type }) => `${count} × ${size(size_gb)} ${type}`).join(', ')}<//>
      <${Cell} of="Traffic">${tier.traffic_tb === null ? 'not counted' : `${tier.traffic_tb} TB`}<//>
      <${Cell} of="Ready in">${tier.delivery_hours} ${tier.delivery_hours === 1 ? 'hour' : 'hours'}<//>
      <${Regions} tier=${tier} bastions=${bastions} />
    </tr>`,
  );
  return table(
    'Dedicated servers',
    ['Plan', 'Price', 'CPU', 'Memory', 'Disks', 'Traffic', 'Ready in', 'Regions'],
    rows,
  );
}

/** The prices, or a word that nothing is on sale. */
export function pricesSection(catalog: Catalog): VNode {
  const isEmpty = !catalog.vps.length && !catalog.dedicated.length;
  return html`
    <section id="prices">
      <h2>Prices</h2>
      <p>A month has 730 hours, and you pay it in advance. When you delete a server, the balance gets the unused whole hours back. The list is live.</p>
      ${isEmpty && html`<p class="empty">Nothing is on sale at present. The <a href="/status">status</a> tells how the service is.</p>`}
      ${vpsTable(catalog)}
      ${dedicatedTable(catalog)}
    </section>
    ${placesSection(catalog)}`;
}

function placesSection({ bastions, images }: Catalog): VNode | false {
  const current = images.filter(({ deprecated_at }) => !deprecated_at);
  return (
    bastions.length + current.length > 0 &&
    html`<section>
      <h2>Regions and images</h2>
      <p>An order names a region and an image by their codes.</p>
      <ul class="cards">${bastions.map(
        ({ name, code, city, country, test_ipv4, test_ipv6, looking_glass_url, status }) => html`<li>
          <h3>${name} <code>${code}</code></h3>
          <p class="quiet"><span class="state"><${Dot} state=${status} />${status.replaceAll('_', ' ')}</span></p>
          <p>${city}, ${new Intl.DisplayNames('en', { type: 'region' }).of(country)}</p>
          ${[test_ipv4, test_ipv6].map((address) => address && html`<p class="quiet"><small>Ping <code>${address}</code></small></p>`)}
          ${looking_glass_url && html`<p><a href=${looking_glass_url}>Looking glass</a></p>`}
        </li>`,
      )}</ul>
      <ul class="chips">${current.map(({ name, code }) => html`<li>${name} <code>${code}</code></li>`)}</ul>
    </section>`
  );
}
