/** The pages of the warrant canary and of the status. They show what /v1/transparency shows. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { Page } from './frame.ts';

interface Update {
  status: string;
  body: string;
  created_at: string;
}
interface Incident {
  id: string;
  name: string;
  status: string;
  impact: string;
  started_at: string;
  resolved_at: string | null;
  updates: Update[];
}
export interface Status {
  indicator: string;
  description: string;
  components: { id: string; name: string; region: string | null; status: string }[];
  incidents: Incident[];
  scheduled_maintenances: Incident[];
  updated_at: string;
}
export interface Canary {
  version: string;
  status: string;
  issued_at: string;
  expires_at: string;
  codes: string[];
  statement: string;
  signed_text: string | null;
  fingerprint: string | null;
  public_key: string | null;
  freshness: string | null;
  sha256: string;
  previous_sha256: string | null;
}

const TONES: Readonly<Record<string, string>> = {
  ...{ none: 'good', operational: 'good', valid: 'good', resolved: 'good', completed: 'good' },
  ...{
    minor: 'warn',
    maintenance: 'warn',
    degraded_performance: 'warn',
    under_maintenance: 'warn',
    partial_outage: 'warn',
  },
  ...{ major: 'bad', critical: 'bad', major_outage: 'bad', expired: 'bad', triggered: 'bad' },
};
/** A state as a dot of its colour. The text beside it says the same. */
export const Dot = ({ state }: { state: string }): VNode => html`<span class=${`dot ${TONES[state] ?? ''}`}></span>`;

const words = (state: string): string => state.replaceAll('_', ' ');
const minuteOf = (time: string): string => `${time.slice(0, 16).replace('T', ' ')} UTC`;
const Time = ({ at }: { at: string }): VNode => html`<time datetime=${at}>${minuteOf(at)}</time>`;

export function statusPage({
  indicator,
  description,
  components,
  incidents,
  scheduled_maintenances,
  updated_at,
}: Status): Page {
  return {
    path: '/status',
    title: 'Status',
    description: 'The health of the service, its incidents and its maintenance.',
    body: html`
      <main class="plain" id="content">
        <h1>Status</h1>
        <p class="banner"><${Dot} state=${indicator} />${description}</p>
        <div class="scroll" role="group" aria-label="Components" tabindex="0"><table>
          <thead><tr><th scope="col">Component</th><th scope="col">Region</th><th scope="col">State</th></tr></thead>
          <tbody>${components.map(
            ({ name, region, status }) => html`<tr>
              <th scope="row">${name}</th><td>${region ?? 'all'}</td>
              <td class="state"><${Dot} state=${status} />${words(status)}</td>
            </tr>`,
          )}</tbody>
        </table></div>
        <h2>Incidents</h2>
        ${incidents.length ? incidents.map(incidentOf) : html`<p>None at present.</p>`}
        <h2>Maintenance</h2>
        ${scheduled_maintenances.length ? scheduled_maintenances.map(incidentOf) : html`<p>None is planned.</p>`}
        <p class="quiet"><small>As of <${Time} at=${updated_at} />. Programs read <a href="/v1/transparency/status">the same as JSON</a>.</small></p>
      </main>`,
  };
}

const incidentOf = ({ name, status, impact, started_at, resolved_at, updates }: Incident): VNode => html`
  <article>
    <h3>${name}</h3>
    <p class="quiet"><${Dot} state=${status} /> ${words(status)}, impact ${impact}, from <${Time} at=${started_at} />
      ${resolved_at && html` to <${Time} at=${resolved_at} />`}</p>
    <ul>${updates.map(
      (update) =>
        html`<li><${Time} at=${update.created_at} />: <strong>${words(update.status)}</strong>. ${update.body}</li>`,
    )}</ul>
  </article>`;

/** A canary before the first has the version 0. */
export function canaryPage(canary: Canary): Page {
  return {
    path: '/canary',
    title: 'Warrant canary',
    description: 'A statement of events that did not happen.',
    body: html`
      <main class="plain" id="content">
        <h1>Warrant canary</h1>
        <p class="lead">A statement of what has not happened. It expires unless the operator renews it. If it is gone, expired or lacks a code, draw your own conclusion.</p>
        ${
          canary.version === '0'
            ? html`<p class="banner"><${Dot} state="absent" />There is no canary yet.</p><p>${canary.statement}</p>`
            : statementOf(canary)
        }
      </main>`,
  };
}

function statementOf({ status, statement, issued_at, expires_at, codes, signed_text, ...proof }: Canary): VNode {
  const facts: [string, string | null][] = [
    ['Version', proof.version],
    ['Fingerprint', proof.fingerprint],
    ['Freshness', proof.freshness],
    ['SHA-256', proof.sha256],
    ['SHA-256 of the one before', proof.previous_sha256],
  ];
  return html`
    <p class="banner"><${Dot} state=${status} />The canary is ${status}.</p>
    <p>${statement}</p>
    <dl class="facts">
      <dt>Issued</dt><dd><${Time} at=${issued_at} /></dd>
      <dt>Expires</dt><dd><${Time} at=${expires_at} /></dd>
      <dt>Codes</dt><dd><ul class="chips">${codes.map((code) => html`<li>${code}</li>`)}</ul></dd>
      ${facts.map(([name, value]) => value !== null && html`<dt>${name}</dt><dd class="break"><code>${value}</code></dd>`)}
    </dl>
    ${signed_text === null && html`<p class="note">This canary has no signature. So the service itself could have written it.</p>`}
    ${
      signed_text !== null &&
      html`
      <h2>Signed text</h2>
      <p>Check the signature with the public key that you already have, and not with one from this page.</p>
      ${block('Signed text', signed_text)}`
    }
    ${proof.public_key !== null && html`<h2>Public key</h2>${block('Public key', proof.public_key)}`}
    <p class="quiet"><small>Programs read <a href="/v1/transparency/canary">the same as JSON</a>. <a href="/docs/transparency">Transparency</a> explains it.</small></p>`;
}

const block = (title: string, text: string): VNode =>
  html`<pre class="text" tabindex="0" aria-label=${title}>${text}</pre>`;
