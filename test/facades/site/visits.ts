/** Visits to the site without a browser. */
import { get } from 'node:http';

export interface Visit {
  status: number;
  headers: Record<string, string>;
  /** The bytes as they came, perhaps compressed. */
  bytes: Buffer;
  text: string;
}

/** The header by which Chromium asks for a page. */
export const BROWSER = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' };

/** Gets a URL as it is: neither follows redirects, nor decompresses. */
export const visit = (url: string, headers: Record<string, string> = BROWSER): Promise<Visit> =>
  new Promise((done, fail) => {
    get(url, { headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        const bytes = Buffer.concat(chunks);
        const flat = response.headers as Record<string, string>;
        done({ status: response.statusCode!, headers: flat, bytes, text: bytes.toString() });
      });
    }).on('error', fail);
  });

/** The targets of links, styles and images in a page. */
export const targetsIn = (html: string): string[] =>
  [...html.matchAll(/\s(?:href|src|action)="([^"]*)"/g)].map(([, target]) => target!.replaceAll('&amp;', '&'));

/** Visits every page that links lead to, from the first. Returns the texts by path. */
export async function visitAll(origin: string): Promise<Map<string, Visit>> {
  const seen = new Map<string, Visit>();
  const waiting = ['/'];
  for (const path of waiting) {
    if (seen.has(path)) continue;
    const visited = await visit(origin + path);
    seen.set(path, visited);
    if (!visited.headers['content-type']?.startsWith('text/html')) continue;
    for (const target of targetsIn(visited.text)) {
      if (/^(\w+:|#)/.test(target)) continue;
      waiting.push(target.split('#')[0]!);
    }
  }
  return seen;
}
