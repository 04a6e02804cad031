/** `node test/prose/findings.ts [path …]`: lists the sentences that break a rule, of all files or of those under the paths. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { passagesOfLines, passagesOfScript } from './comment.ts';
import { passagesOfGraphql } from './graphql.ts';
import { passagesOfMarkdown } from './markdown.ts';
import { type Passage, sentencesOf } from './passage.ts';
import { type Finding, findingsIn } from './rules.ts';
import { passagesOfTypeScript } from './typescript.ts';

/** The passages of a file that people read; none of a file in a language that is not known here. */
export function passagesOf(file: string, source: string): Passage[] {
  if (file.endsWith('.ts')) return passagesOfTypeScript(file, source);
  if (file.endsWith('.md')) return passagesOfMarkdown(source);
  if (file.endsWith('.graphql')) return passagesOfGraphql(source);
  if (file.endsWith('.sol'))
    return passagesOfLines(
      source.split('\n').map((text, index) => ({ number: index + 1, text: /\/\/+(.*)/.exec(text)?.[1] ?? '' })),
    );
  if (/\.(sh|ya?ml)$/.test(file) || source.startsWith('#!')) return passagesOfScript(source);
  if (file.endsWith('package.json')) return [{ line: 1, text: String(JSON.parse(source).description ?? '') }];
  return [];
}

/** @param paths files or folders; none means the whole project */
export function findProse(paths: string[] = []): { file: string; findings: Finding[]; sentences: number }[] {
  return execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '--', ...paths], {
    encoding: 'utf8',
  })
    .split('\n')
    .filter((file) => file && existsSync(file))
    .map((file) => {
      const sentences = passagesOf(file, readFileSync(file, 'utf8')).flatMap(sentencesOf);
      return { file, findings: sentences.flatMap(findingsIn), sentences: sentences.length };
    });
}

/** The findings one a line, then their number by rule and by folder. */
export function reportOf(files: { file: string; findings: Finding[] }[], max = Number.POSITIVE_INFINITY): string {
  const all = files.flatMap(({ file, findings }) => findings.map((finding) => ({ file, ...finding })));
  const folderOf = (file: string) => file.split('/').slice(0, -1).slice(0, 2).join('/') || '.';
  const totals = (name: (finding: (typeof all)[number]) => string) =>
    [...Map.groupBy(all, name)]
      .sort(([, some], [, others]) => others.length - some.length)
      .map(([key, found]) => `${String(found.length).padStart(6)}  ${key}`);
  return [
    ...all.slice(0, max).map(({ file, line, rule, sentence }) => `${file}:${line}  ${rule}: ${sentence}`),
    '',
    ...totals(({ rule }) => rule),
    '',
    ...totals(({ file }) => folderOf(file)),
    `${String(all.length).padStart(6)}  findings`,
  ].join('\n');
}

if (import.meta.main) {
  const files = findProse(process.argv.slice(2));
  console.log(reportOf(files));
  process.exitCode = files.some(({ findings }) => findings.length) ? 1 : 0;
}
