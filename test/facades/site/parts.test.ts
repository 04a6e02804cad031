/** The parts of the site: its colours, its Markdown, its search, and its samples. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readOperations } from '../../../facades/compile/read.ts';
import { openapi } from '../../../facades/openapi/document.ts';
import { accentsOf, contrastOf } from '../../../facades/site/colours.ts';
import { referenceOf } from '../../../facades/site/document.ts';
import { rendered } from '../../../facades/site/markdown.ts';
import { samplesOf } from '../../../facades/site/samples/samples.ts';
import { searchIn } from '../../../facades/site/search.ts';
import { schema } from '../../../schema/index.ts';

describe('The colour of the operator', () => {
  it('becomes readable on every ground of the pages, light and dark', () => {
    const colour = fc.integer({ min: 0, max: 0xffffff }).map((value) => `#${value.toString(16).padStart(6, '0')}`);
    fc.assert(
      fc.property(colour, (chosen) => {
        const { light, dark } = accentsOf(chosen);
        for (const ground of ['#ffffff', '#f4f5f7']) expect(contrastOf(light, ground)).toBeGreaterThan(4.5);
        for (const ground of ['#0f1319', '#1a1f27']) expect(contrastOf(dark, ground)).toBeGreaterThan(4.5);
      }),
    );
  });

  it('stays as it is where it is readable', () => {
    expect(accentsOf('#1f6f54').light).toBe('#1f6f54');
    expect(contrastOf('#000000', '#ffffff')).toBe(21);
  });
});

describe('The Markdown of a guide', () => {
  const html = (text: string) => rendered(text, (target) => (target === 'gone.md' ? undefined : target));

  it('shows HTML as text, and follows no link to a script', () => {
    expect(html('<b onclick="x">a</b>')).toContain('&lt;b onclick=');
    expect(html('[a](javascript:alert(1))')).not.toContain('href');
  });

  it('keeps the words of a link that readers of the site cannot follow', () => {
    expect(html('See [the source](gone.md).')).toBe('<p>See <a>the source</a>.</p>\n');
  });

  it('has an anchor at each heading, and colours of code by classes', () => {
    expect(html('## Paying by `x402`')).toContain('<h2 id="paying-by-x402">');
    expect(html('```sh\necho "$A"\n```')).toContain('<span class="hljs-variable">$A</span>');
  });
});

describe('The search', () => {
  const search = searchIn([
    { title: 'Paying by x402', of: 'Payments', path: '/a', text: 'Sign the challenge.' },
    { title: 'Top-ups', of: 'Payments', path: '/b', text: 'A payment by x402 earns no bonus.' },
    { title: 'Order a server', of: 'Servers', path: '/c', text: 'POST /v1/servers', words: 'hostname order_server' },
  ]);
  const paths = (query: string) => search(query).map(({ path }) => path);

  it('finds titles before texts, and the parts that have all words', () => {
    expect(paths('x402')).toEqual(['/a', '/b']);
    expect(paths('X402 bonus')).toEqual(['/b']);
  });

  it('finds an operation by its fields, its tool and its path', () => {
    for (const query of ['hostname', 'order_server', '/v1/servers', 'serv']) expect(paths(query)).toContain('/c');
  });

  it('finds nothing for nothing, for signs, and for a long text', () => {
    for (const query of ['', '  ', '.*', '()', 'x'.repeat(10_000)]) expect(paths(query)).toEqual([]);
  });
});

describe('The samples of an operation', () => {
  const operations = readOperations(schema);
  const { nouns } = referenceOf(openapi(operations, 'https://h.example'), operations);
  const DOWNLOADABLE = ['freehold-0.1.0.tgz', 'freehold-0.1.0-py3-none-any.whl', 'freehold-cli-0.1.0.tgz'];
  const samples = (name: string, downloadable = DOWNLOADABLE) => {
    const endpoint = nouns.flatMap(({ endpoints }) => endpoints).find((one) => one.name === name)!;
    return new Map(samplesOf(endpoint, 'https://h.example', downloadable).map(({ title, code }) => [title, code]));
  };

  it('are only for programs that visitors can download', () => {
    expect([...samples('OrderServer').keys()]).toEqual(['curl', 'CLI', 'TypeScript', 'Python', 'MCP']);
    expect([...samples('OrderServer', ['freehold-0.1.0.tgz']).keys()]).toEqual(['curl', 'TypeScript', 'MCP']);
    expect([...samples('OrderServer', []).keys()]).toEqual(['curl', 'MCP']);
  });

  it('are a command of the program, or its call of the API', () => {
    expect(samples('GetServer').get('CLI')).toBe('freehold server get SRV-7K2M9X4QHT');
    expect(samples('DeleteServer').get('CLI')).toBe('freehold server delete SRV-7K2M9X4QHT --force');
    expect(samples('WriteMessage').get('CLI')).toMatch(/^echo '.*' \|\n {2}freehold message send 'A question/);
    expect(samples('GetMonthlyReceipt').get('CLI')).toBe('freehold api GET /v1/billing/receipts/2026-11');
  });

  it('call short methods of the SDK, iterate lists, and call all else by its name', () => {
    expect(samples('OrderServer').get('TypeScript')).toContain(
      'await freehold.servers.order({\n  service_code: "vps-1",',
    );
    expect(samples('GetServer').get('TypeScript')).toContain('await freehold.servers.get("SRV-7K2M9X4QHT")');
    expect(samples('ListServers').get('TypeScript')).toContain('for await (const entry of freehold.servers.list())');
    expect(samples('GetMonthlyReceipt').get('TypeScript')).toContain('freehold.call("GetMonthlyReceipt", {\n  month: ');
  });

  it('have the arguments of Python by name', () => {
    expect(samples('OrderServer').get('Python')).toContain(
      'freehold.servers.order(\n    service_code="vps-1",\n    region="ams",',
    );
    expect(samples('RevokeSession').get('Python')).toContain('freehold.account.revoke_session("tok_');
  });

  it('of a planned operation are absent, and forms have only curl', () => {
    expect(samples('Recover').size).toBe(0);
    expect([...samples('IssueOauthToken').keys()]).toEqual(['curl']);
    expect(samples('IssueOauthToken').get('curl')).toContain('-u "$CLIENT_ID:$CLIENT_SECRET"');
  });
});
