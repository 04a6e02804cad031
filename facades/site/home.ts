/** The first page: the service, its live catalog, and the way to start. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { Brand, Page } from './frame.ts';
import { trusted } from './frame.ts';
import { codeBlock } from './markdown.ts';
import { type Catalog, pricesSection } from './prices.ts';
import { Dot, type Status } from './transparency.ts';

export type { Catalog };

export interface Coin {
  code: string;
  name: string;
  available: boolean;
  x402: boolean;
}

export interface HomeFacts {
  catalog: Catalog;
  coins: readonly Coin[];
  status: Status;
}

const commandsOf = (publicUrl: string, plan: string): string => `API=${publicUrl}/v1
JSON='Content-Type: application/json'

# Make an account with your email and a long password. The answer has your token.
curl $API/auth/register -H "$JSON" \\
  -d '{"email":"YOU@example.org","password":"YOUR PASSWORD"}'
KEY='Authorization: Bearer svc_at_…'

# Get an address to pay to.
curl $API/billing/topups -H "$KEY" -H "$JSON" \\
  -d '{"amount_usd":50,"crypto":"BTC"}'

# Order a server, once the money is there.
curl $API/servers -H "$KEY" -H "$JSON" \\
  -d '{"service_code":"${plan}"}'
`;

export function homePage(brand: Brand, publicUrl: string, { catalog, coins, status }: HomeFacts): Page {
  const description = `${brand.name} sells VPS and dedicated servers for coins. It asks for no identity, and has REST and MCP.`;
  return {
    path: '/',
    title: 'servers for coins, without an identity',
    description,
    body: html`
      <main class="home" id="content">
        <div class="hero">
          <div>
            <h1>Servers for coins. No identity asked.</h1>
            <p class="lead">${brand.name} sells ${kindsOf(catalog)}. An email and a password make an account. You pay in coins, and control every server over REST or MCP.</p>
            <p class="actions"><a class="button" href="/docs/quickstart">Start in five minutes</a><a class="button second" href="/docs/agents">Connect an agent</a></p>
            <p class="quiet state"><small><${Dot} state=${status.indicator} /><a href="/status">${status.description}</a></small></p>
          </div>
          ${trusted(codeBlock(commandsOf(publicUrl, catalog.vps[0]?.code ?? 'vps-1'), 'bash', 'The way to the first server'))}
        </div>
        ${trialNote(status)}
        ${pricesSection(catalog)}
        ${startSection(publicUrl, coins)}
        ${promisesSection}
      </main>`,
  };
}

function kindsOf({ vps, dedicated }: Catalog): string {
  if (vps.length && !dedicated.length) return 'VPS';
  return dedicated.length && !vps.length ? 'dedicated servers' : 'VPS and dedicated servers';
}

/** The status page names simulated parts. A visitor must not mistake them for a real offer. */
function trialNote({ components }: Status): VNode | false {
  const simulated = components.filter(({ name }) => name.endsWith('(simulated)')).map(({ name }) => name);
  if (!simulated.length) return false;
  const parts = [
    simulated.some((name) => name.startsWith('Machines')) && 'machines',
    simulated.some((name) => name.startsWith('Payments')) && 'payments',
  ];
  return html`<p class="note"><strong>This is a trial.</strong> Its ${parts.filter(Boolean).join(' and ')} are simulated. Do not send coins.</p>`;
}

const startSection = (publicUrl: string, coins: readonly Coin[]): VNode => html`
  <section>
    <h2>How to start</h2>
    <p>Three calls lead to a server. The <a href="/docs/quickstart">quickstart</a> has them to paste.</p>
    <ol class="cards steps">
      <li><h3>Register</h3><p>Send an email and a password. No mail comes, so keep the password. Then make an API key with the <a href="/docs/authentication">scope</a> that you need.</p></li>
      <li><h3>Top up</h3><p>Pay from 30 to 10,000 USD to an address of your own. Agents can pay within a request, by <a href="/docs/payments#paying-by-x402">x402</a>.</p>${coinList(coins)}</li>
      <li><h3>Order</h3><p>Name a plan. The server runs when its SSH server answers, and only then its month begins. An order that fails pays the whole price back.</p></li>
    </ol>
    <h3>With an agent</h3>
    <p>The MCP endpoint is <code>${publicUrl}/mcp</code>. It has nearly the same operations as REST. An agent can register, pay and order alone.</p>
    ${trusted(codeBlock(`claude mcp add --transport http freehold ${publicUrl}/mcp`, 'bash', 'Connect Claude Code'))}
  </section>`;

const coinList = (coins: readonly Coin[]): VNode | false => {
  const accepted = coins.filter(({ available }) => available);
  return accepted.length > 0 && html`<ul class="chips">${accepted.map(({ name }) => html`<li>${name}</li>`)}</ul>`;
};

const promisesSection = html`
  <section>
    <h2>What you can check</h2>
    <p>Trust is better with a way to look.</p>
    <ul class="cards">
      <li><h3>Little to take</h3><p>No name, no phone number, no card. Your network address enters no table and no log. See <a href="/docs/transparency#your-data">what the service keeps</a>.</p></li>
      <li><h3>A canary</h3><p>The <a href="/canary">warrant canary</a> is a statement that expires unless the operator renews it.</p></li>
      <li><h3>Signed books</h3><p>The service signs a <a href="/docs/transparency">digest of all audit logs</a> each day. Keep one. It proves later changes of the past.</p></li>
      <li><h3>Free software</h3><p>The service is Freehold, under the MIT licence. Anybody can read how it works.</p></li>
    </ul>
  </section>`;
