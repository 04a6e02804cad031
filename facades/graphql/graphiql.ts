/** The page of GraphiQL, for developers. It is made once: it has 9 MB, and strangers may ask for it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

const QUERY = `# Put your credential into the headers below: {"Authorization": "Bearer …"}
# The operator's token is in the file that the service names when it starts.
subscription Servers {
  serverUpdated { type at server { orderNumber status hostname serviceCode region ipv4 } }
}
`;
/** GraphiQL runs on the origin of the console. */
const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-encoding': 'gzip',
  'content-security-policy': "frame-ancestors 'none'; connect-src 'self'",
};

let page: Promise<Buffer> | undefined;

/** Whether a browser asks for the page. A query in the URL belongs to GraphQL. */
export const asksForGraphiql = ({ method, url, headers }: IncomingMessage): boolean =>
  method === 'GET' && !url!.includes('query=') && Boolean(headers.accept?.includes('text/html'));

/** Answers with the page. Browsers unpack it. */
export async function serveGraphiql(response: ServerResponse): Promise<void> {
  try {
    page ??= render();
    const body = await page;
    response.writeHead(200, { ...HEADERS, 'content-length': body.length }).end(body);
  } catch {
    page = undefined;
    response.writeHead(503).end();
  }
}

async function render(): Promise<Buffer> {
  const { renderGraphiQL } = await import('@graphql-yoga/render-graphiql');
  return promisify(gzip)(renderGraphiQL({ title: 'Freehold', defaultQuery: QUERY, endpoint: '/graphql' }));
}
