/** The pages of the site, as any client gets them. */
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { ERRORS } from '../../../entities/errors.ts';
import { PLANS } from '../../../facades/site/guides.ts';
import { eventually, startFreehold } from '../../setup/freehold.ts';
import { queriesOf } from '../../setup/queries.ts';
import { BROWSER, targetsIn, visit, visitAll } from './visits.ts';

const { db, publicUrl, operator, anonymous } = await startFreehold({
  SITE_NAME: 'Marsh & Meadow',
  SITE_COLOR: '#ffdd00',
  SITE_TERMS_URL: 'https://example.org/terms',
  SECURITY_CONTACT: 'mailto:security@example.org',
});
const page = (path: string, headers?: Record<string, string>) => visit(publicUrl + path, headers);
const pages = await visitAll(publicUrl);
const htmlPages = [...pages].filter(([, { headers }]) => headers['content-type']?.startsWith('text/html'));
const STYLE = [...pages.keys()].find((path) => path.endsWith('.css'))!;
const KIB = 1024;

describe('A visitor of the site', () => {
  it('reaches every guide, operation and error by links, and each link leads to a page and an anchor', async () => {
    const { body } = await anonymous('GET', '/v1/openapi.json');
    const names = Object.values(body.paths as Record<string, object>).flatMap((methods) => Object.values(methods));
    expect(htmlPages.filter(([path]) => /^\/docs\/api\/[^/]+\/./.test(path))).toHaveLength(names.length);
    for (const { slug } of PLANS) expect([...pages.keys()]).toContain(`/docs/${slug}`);
    expect([...pages].filter(([, { status }]) => status !== 200).map(([path]) => path)).toEqual([]);
    const dead = htmlPages.flatMap(([path, { text }]) =>
      targetsIn(text).filter((target) => {
        const [to, anchor] = target.split('#');
        if (/^\w+:/.test(target) || !anchor) return false;
        return !pages.get(to || path)?.text.includes(`id="${anchor}"`);
      }),
    );
    expect(dead).toEqual([]);
    for (const code of Object.keys(ERRORS)) expect(pages.get('/docs/errors')!.text).toContain(`id="${code}"`);
  });

  it('gets pages without scripts, styles of their own, and files of other hosts', () => {
    expect(htmlPages.length).toBeGreaterThan(80);
    for (const [path, { text, headers }] of htmlPages) {
      expect(text, path).not.toMatch(/<script|<style|\sstyle=|\son\w+=/);
      expect(text, path).toMatch(/^<!doctype html><html lang="en">/);
      expect([...text.matchAll(/\ssrc="([^"]*)"/g)].map(([, source]) => source)).toEqual(['/favicon.svg']);
      expect(headers).toMatchObject({
        'content-security-policy': expect.stringMatching(/^default-src 'none'; style-src 'self'; img-src 'self';/),
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
      });
    }
  });

  it('loads the first page with its style and its sign in less than 60 KB', async () => {
    const zipped = { ...BROWSER, 'accept-encoding': 'gzip' };
    const loads = await Promise.all(['/', STYLE, '/favicon.svg'].map((path) => page(path, zipped)));
    expect(loads[0]!.headers['content-encoding']).toBe('gzip');
    expect(gunzipSync(loads[0]!.bytes).toString()).toContain(STYLE);
    expect(loads.reduce((sum, { bytes }) => sum + bytes.length, 0)).toBeLessThan(60 * KIB);
  });

  it('gets 304 for a page that it has, compressed or not', async () => {
    for (const path of ['/', '/docs/api/servers/order-server', STYLE, '/v1/openapi.json']) {
      const { headers } = await page(path, { 'accept-encoding': 'gzip' });
      expect(headers.etag, path).toMatch(/^W\/"/);
      expect(headers.vary, path).toMatch(/accept-encoding/i);
      const again = await page(path, { 'accept-encoding': 'gzip', 'if-none-match': headers.etag! });
      expect([again.status, again.bytes.length], path).toEqual([304, 0]);
    }
  });

  it('gets no other answer compressed, because its length could tell a secret', async () => {
    const zipped = { 'accept-encoding': 'gzip, br, deflate' };
    for (const path of ['/v1/catalog', '/v1/transparency/status', '/v1/account']) {
      const { headers } = await page(path, zipped);
      expect(headers['content-encoding'], path).toBeUndefined();
    }
  });

  it('sees a page instead of JSON where nothing is, and a program sees JSON', async () => {
    const lost = await page('/v1/server');
    expect([lost.status, lost.headers['content-type']]).toEqual([404, 'text/html; charset=utf-8']);
    expect(lost.text).toContain('Did you mean /v1/servers?');
    expect(targetsIn(lost.text)).toEqual(expect.arrayContaining(['/', '/docs', '/status']));
    for (const accept of ['*/*', 'application/json'])
      expect(JSON.parse((await page('/nowhere', { accept })).text).code).toBe('not_found');
    // An endpoint answers a browser as it answers all.
    expect(JSON.parse((await page('/v1/account')).text).code).toBe('missing_credential');
  });

  it('is led to the page by a path with a slash at its end', async () => {
    const { status, headers } = await page('/docs/');
    expect([status, headers.location]).toEqual([308, '/docs']);
  });
});

describe('The first page', () => {
  it('has the name, the terms and the prices of the operator', async () => {
    const { text } = await page('/');
    expect(text).toContain('<title>Marsh &amp; Meadow: ');
    expect(text).toContain('href="https://example.org/terms"');
    const { body } = await anonymous('GET', '/v1/catalog');
    for (const { name, price_month_usd } of [...body.vps, ...body.dedicated]) {
      expect(text).toContain(name);
      expect(text).toContain(`$${price_month_usd}<`);
    }
    for (const { name } of [...body.bastions, ...body.images]) expect(text).toContain(name);
  });

  it('says that machines and payments are simulated', async () => {
    expect((await page('/')).text).toContain('Its machines and payments are simulated. Do not send coins.');
  });

  it('costs no query while it is fresh', async () => {
    await page('/');
    const queries = await queriesOf(db, async () => {
      for (let visitor = 0; visitor < 20; visitor++) await page('/');
    });
    // The visits take far less than the time for which an answer serves.
    expect(queries.filter(({ text }) => /\btier\b/.test(text)).length).toBeLessThanOrEqual(2);
  });

  it('says so when nothing is on sale', async () => {
    const { body } = await anonymous('GET', '/v1/catalog');
    for (const { code } of [...body.vps, ...body.dedicated])
      await operator('mutation ($code: Code!) { withdrawTier(code: $code) { code } }', { code });
    await eventually(async () => (await page('/')).text.includes('Nothing is on sale at present.'));
  });
});

describe('The guides', () => {
  it('have every section of the page about the API', () => {
    const headings = [...readFileSync('docs/use/api.md', 'utf8').matchAll(/^## (.*)$/gm)].map(([, heading]) => heading);
    const shown = PLANS.flatMap(({ sources }) => sources.flatMap(({ only = [] }) => only));
    expect(headings.filter((heading) => !shown.includes(heading!))).toEqual([]);
  });

  it('have the address of this service in their commands, also as Markdown', async () => {
    const markdown = await page('/docs/quickstart.md');
    expect(markdown.headers['content-type']).toBe('text/markdown; charset=utf-8');
    for (const { text } of [markdown, pages.get('/docs/quickstart')!, pages.get('/docs/agents')!]) {
      expect(text).toContain(publicUrl);
      expect(text).not.toMatch(/localhost:3000|\{PUBLIC_URL\}/);
    }
  });
});

describe('The status and the canary', () => {
  it('show what the API shows', async () => {
    const { body } = await anonymous('GET', '/v1/transparency/status');
    const status = (await page('/status')).text;
    for (const { name } of body.components) expect(status).toContain(name);
    expect((await page('/canary')).text).toContain('There is no canary yet.');
    const canary = `mutation { publishCanary(input: { codes: [WAR, GAG, TRAP, CEASE, DURESS, XCRED, RAID, SEIZE, XOPERS, SUBP],
      statement: "Nothing <b>of that</b> happened." }) { version } }`;
    expect((await operator(canary)).errors).toBeUndefined();
    const shown = await eventually(async () => {
      const { text } = await page('/canary');
      return text.includes('The canary is valid.') && text;
    });
    expect(shown).toContain('This canary has no signature.');
    expect(shown).toContain('Nothing &lt;b>of that&lt;/b> happened.');
  });
});
