/** The page of the downloads. */
import { html } from 'htm/preact';
import type { Download } from '../http/downloads.ts';
import { type Page, trusted } from './frame.ts';
import { codeBlock } from './markdown.ts';

/** The files by the beginnings of their names. */
const KINDS: readonly [RegExp, string][] = [
  [/^freehold-mcp.*\.mcpb$/, 'MCP for clients that install bundles, such as Claude Desktop'],
  [/^freehold-mcp.*\.tgz$/, 'MCP for clients that start processes'],
  [/^freehold-cli/, 'The command line'],
  [/^freehold-\d.*\.tgz$/, 'The SDK for TypeScript and JavaScript'],
  [/\.(whl|tar\.gz)$/, 'The SDK for Python'],
  [/^server\.json$/, 'The entry for the MCP registry'],
];
const kindOf = (name: string): string => KINDS.find(([pattern]) => pattern.test(name))?.[1] ?? 'File';
const sizeOf = (bytes: number): string => `${Math.ceil(bytes / 1000).toLocaleString('en')} kB`;

export function downloadsPage(files: readonly Download[], publicUrl: string): Page {
  const check = `curl -OJ ${publicUrl}/downloads/SHA256SUMS\nsha256sum --ignore-missing -c SHA256SUMS`;
  return {
    path: '/downloads',
    title: 'Downloads',
    description: 'Programs for this service, with their checksums.',
    body: html`
      <main class="plain" id="content">
        <h1>Downloads</h1>
        <p class="lead">Each archive has its source, and needs nothing from a registry.</p>
        <ul class="results">${files.map(
          ({ name, size_bytes, sha256 }) => html`<li>
            <a href=${`/downloads/${name}`}>${name}</a>
            <p>${kindOf(name)}, ${sizeOf(size_bytes)}</p>
            <p class="quiet break"><small>SHA-256 <code>${sha256}</code></small></p>
          </li>`,
        )}</ul>
        <h2>Check them</h2>
        ${trusted(codeBlock(check, 'bash', 'Check the files'))}
        <p><a href="/docs/agents">Agents and MCP</a> tells how to use them.</p>
      </main>`,
  };
}
