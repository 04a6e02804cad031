/** The pages of docs/ and the README agree with the project. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { EVENT_TYPES } from '../entities/history/event.ts';
import { TOLD_EVENTS } from '../entities/webhooks/events.ts';

const read = (file: string) => readFileSync(file, 'utf8');
const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { encoding: 'utf8' })
  .split('\n')
  .filter((file) => file && existsSync(file));
const pages = files.filter((file) => file === 'README.md' || /^docs\/.*\.md$/.test(file));
const folders = new Set(files.map((file) => file.split('/')[0]!).filter((name) => statSync(name).isDirectory()));

/** The anchor that GitHub gives to a heading. */
const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
const anchorsOf = (page: string) => [...read(page).matchAll(/^#+ (.+)$/gm)].map(([, heading]) => anchorOf(heading!));

describe('The documentation', () => {
  it('links to pages and headings that exist', () => {
    const links = pages.flatMap((page) =>
      [...read(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => ({ page, target: target! })),
    );
    const dead = links.filter(({ page, target }) => {
      if (/^https?:/.test(target)) return false;
      const [path = '', anchor] = target.split('#');
      const file = path ? join(dirname(page), path) : page;
      return !existsSync(file) || (anchor !== undefined && !anchorsOf(file).includes(anchor));
    });
    expect(links.length).toBeGreaterThan(50);
    expect(dead).toEqual([]);
  });

  it('leads from the README to every page', () => {
    const reached = new Set(['README.md']);
    for (const page of reached)
      for (const [, target] of read(page).matchAll(/\]\(([^)\s#]+\.md)[^)]*\)/g)) {
        const file = join(dirname(page), target!);
        if (pages.includes(file)) reached.add(file);
      }
    expect(pages.filter((page) => !reached.has(page))).toEqual([]);
  });

  it('names only files and folders that exist', () => {
    const named = pages.flatMap((page) =>
      [...read(page).matchAll(/`([a-z0-9-]+\/[\w./-]*)`/g)].map(([, path]) => ({ page, path: path! })),
    );
    const missing = named.filter(({ path }) => folders.has(path.split('/')[0]!) && !existsSync(path));
    expect(named.length).toBeGreaterThan(50);
    expect(missing).toEqual([]);
  });

  it('silences npm where a command passes its output on, because npm begins it with two lines of its own', () => {
    const commands = pages.flatMap((page) =>
      [...read(page).matchAll(/^```.*\n([\s\S]*?)^```|`([^`\n]+)`/gm)]
        .flatMap(([, block, inline]) => (block ?? inline!).replaceAll('\\\n', '').split('\n'))
        .filter((line) => line.includes('npm run'))
        .map((line) => ({ page, line: line.replace(/\s#.*/, '') })),
    );
    expect(commands.length).toBeGreaterThan(50);
    expect(commands.filter(({ line }) => /\bnpm run (?!--silent ).*[|>]/.test(line))).toEqual([]);
  });

  it('tells customers or the operator of every event', () => {
    const told = read('docs/use/webhooks.md') + read('docs/operate/running.md');
    expect(EVENT_TYPES.filter((type) => !told.includes(`\`${type}\``))).toEqual([]);
  });

  it('prints the events that customers can hear', async () => {
    const page = 'docs/use/webhooks.md';
    const rows = Object.entries(TOLD_EVENTS).map(([type, { description }]) => `| \`${type}\` | ${description} |`);
    const table = ['| event | meaning |', '|---|---|', ...rows].join('\n');
    const printed = read(page).replace(/^\| event \|.*/ms, () => `${table}\n`);
    await expect(printed).toMatchFileSnapshot(`../${page}`);
  });

  it('names each page of the console', () => {
    const folder = 'facades/console/src/pages/';
    const source = files
      .filter((file) => file.startsWith(folder))
      .map(read)
      .join('\n');
    const titles = [...source.matchAll(/\bgroup: '\w+',\s+title: '([^']+)'/g)].map(([, title]) => title!.toLowerCase());
    const table = /^\| group \| pages \|[\s\S]*?\n\n/m.exec(read('docs/operate/console.md'))![0];
    expect(titles.length).toBeGreaterThan(30);
    expect(titles.filter((title) => !table.includes(title))).toEqual([]);
  });

  it('gives a reason for every package that the service runs with', () => {
    const { dependencies, optionalDependencies } = JSON.parse(read('package.json'));
    const page = read('docs/develop/dependencies.md');
    const names = Object.keys({ ...dependencies, ...optionalDependencies });
    expect(names.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  });

  it('explains the architecture in at most 2,000 words', () => {
    expect(read('docs/develop/architecture.md').split(/\s+/).length).toBeLessThanOrEqual(2_000);
  });
});
