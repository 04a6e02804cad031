/** The files of the console, as a browser loads them. */
import { describe, expect, it } from 'vitest';
import { CONSOLE_PATHS } from '../../../facades/console/console.ts';
import { schema } from '../../../schema/index.ts';
import { startFreehold } from '../../setup/freehold.ts';

const { graphqlUrl } = await startFreehold();
const read = (path: string, headers: Record<string, string> = {}) => fetch(new URL(path, graphqlUrl), { headers });
const isScript = (path: string) => /\.(ts|m?js)$/.test(path);

describe('The page of the console', () => {
  it('names each script, so that the browser asks for all at once', async () => {
    const page = await (await read('/')).text();
    const named = [...page.matchAll(/<link rel="modulepreload" href="([^"]+)">/g)].map(([, path]) => path);
    expect(named).toEqual(CONSOLE_PATHS.filter(isScript));
  });

  it('is asked for each time, while the browser keeps its files for a year', async () => {
    expect((await read('/')).headers.get('cache-control')).toBe('no-cache');
    for (const path of CONSOLE_PATHS) {
      const { status, headers } = await read(path);
      expect([path, status, headers.get('cache-control')]).toEqual([path, 200, 'max-age=31536000, immutable']);
    }
  });

  it('gets the files of this version in the place of another one, and the browser keeps none', async () => {
    const [path] = CONSOLE_PATHS.filter((one) => one.endsWith('/main.ts'));
    const { status, headers } = await read(path!.replace(/^\/console\/[^/]+/, '/console/another'));
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-cache']);
    expect((await read('/console/another/nothing.ts')).status).toBe(404);
  });

  it('answers 304 to a browser that has the same page', async () => {
    const etag = (await read('/')).headers.get('etag')!;
    expect((await read('/', { 'if-none-match': etag })).status).toBe(304);
  });
});

it('The console reads the root fields of the schema from a file, which needs no credential', async () => {
  const path = CONSOLE_PATHS.find((one) => one.endsWith('/model.json'))!;
  const model = await (await read(path)).json();
  const names = model.mutationType.fields.map(({ name }: { name: string }) => name);
  expect(names).toEqual(Object.keys(schema.getMutationType()!.getFields()));
});
