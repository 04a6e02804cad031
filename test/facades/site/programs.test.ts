/** The files for programs that meet the domain. */
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { startFreehold } from '../../setup/freehold.ts';
import { visit } from './visits.ts';

const { publicUrl } = await startFreehold({ ROLES: 'api', SECURITY_CONTACT: 'mailto:security@example.org' });
const { publicUrl: silent } = await startFreehold({ ROLES: 'api' });
const program = (path: string, origin = publicUrl) => visit(origin + path, { accept: '*/*' });

describe('A program', () => {
  it('finds the API, its description and MCP in the catalogue of RFC 9727, and each link answers', async () => {
    const { status, headers, text } = await program('/.well-known/api-catalog');
    expect(status).toBe(200);
    expect(headers['content-type']).toContain(
      'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"',
    );
    const { linkset } = JSON.parse(text) as { linkset: Record<string, string | { href: string; type: string }[]>[] };
    expect(linkset.map(({ anchor }) => anchor)).toEqual([`${publicUrl}/v1`, `${publicUrl}/mcp`]);
    for (const { anchor: _, ...relations } of linkset)
      for (const { href, type } of Object.values(relations).flat() as { href: string; type: string }[]) {
        const answer = await visit(href, { accept: type });
        expect([answer.status, answer.headers['content-type']?.split(';')[0]]).toEqual([200, type]);
      }
  });

  it('is led to that catalogue by the first page, also by HEAD', async () => {
    for (const method of ['GET', 'HEAD']) {
      const { headers } = await fetch(publicUrl, { method });
      expect(headers.get('link')).toContain('</.well-known/api-catalog>; rel="api-catalog"');
    }
  });

  it('reads in the card of A2A that the service speaks MCP', async () => {
    const card = JSON.parse((await program('/.well-known/agent-card.json')).text);
    const text = { type: 'string', minLength: 1 };
    // The members that the specification of A2A 1.0 requires.
    const isCard = new Ajv().compile({
      type: 'object',
      required: [
        'name',
        'description',
        'version',
        'supportedInterfaces',
        'capabilities',
        'defaultInputModes',
        'defaultOutputModes',
        'skills',
      ],
      properties: {
        ...{ name: text, description: text, version: text },
        skills: {
          type: 'array',
          minItems: 1,
          items: { type: 'object', required: ['id', 'name', 'description', 'tags'] },
        },
      },
    });
    expect(isCard(card), JSON.stringify(isCard.errors)).toBe(true);
    expect(card.description).toContain('MCP and not A2A');
    expect(card.supportedInterfaces).toEqual([
      { url: `${publicUrl}/mcp`, protocolBinding: 'https://modelcontextprotocol.io', protocolVersion: '2026-07-28' },
    ]);
  });

  it('reads the guides as Markdown by llms.txt', async () => {
    const { headers, text } = await program('/llms.txt');
    expect(headers['content-type']).toBe('text/plain; charset=utf-8');
    expect(text).toMatch(/^# Freehold\n\n> /);
    const links = [...text.matchAll(/\]\(([^)]+)\)/g)].map(([, link]) => link!);
    expect(links.filter((link) => link.endsWith('.md')).length).toBeGreaterThan(6);
    for (const link of links) expect((await visit(link, { accept: '*/*' })).status, link).toBe(200);
  });

  it('reads whom to tell of a weakness, until a day that is ahead by less than a year', async () => {
    const { headers, text } = await program('/.well-known/security.txt');
    expect(headers['content-type']).toBe('text/plain; charset=utf-8');
    expect(text).toContain('Contact: mailto:security@example.org\n');
    expect(text).toContain(`Canonical: ${publicUrl}/.well-known/security.txt\n`);
    const expires = Date.parse(/^Expires: (\S+)$/m.exec(text)![1]!);
    expect(expires).toBeGreaterThan(Date.now() + 30 * 86_400_000);
    expect(expires).toBeLessThan(Date.now() + 365 * 86_400_000);
    expect((await program('/.well-known/security.txt', silent)).status).toBe(404);
  });

  it('may read pages, and not the API, as a crawler', async () => {
    const { text } = await program('/robots.txt');
    expect(text).toContain('User-agent: *\nDisallow: /v1/\n');
    expect(text).not.toContain('Disallow: /docs\n');
  });

  it('finds the sign of the service', async () => {
    for (const path of ['/favicon.ico', '/favicon.svg']) {
      const { headers, text } = await program(path);
      expect(headers['content-type']).toBe('image/svg+xml');
      expect(text).toMatch(/^<svg /);
    }
  });
});
