/** Builds a wheel of Python (PyPA "Binary distribution format") without Python, with the same bytes from the same sources. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { zipSync } from 'fflate';
import { parse } from 'smol-toml';

/** @param home the folder of its pyproject.toml */
export function wheelOf(home: string): { name: string; wheel: Uint8Array } {
  const read = (name: string): Buffer => readFileSync(join(home, name));
  const { project } = parse(read('pyproject.toml').toString()) as { project: Record<string, string> };
  const own = `${project.name}-${project.version}`;
  const sources = readdirSync(join(home, project.name!)).filter((name) => /\.py$|^py\.typed$/.test(name));
  const entries = new Map(sources.sort().map((name) => [`${project.name}/${name}`, read(`${project.name}/${name}`)]));
  const info = `${own}.dist-info`;
  entries.set(`${info}/METADATA`, Buffer.from(metadataOf(project, read('README.md').toString())));
  entries.set(
    `${info}/WHEEL`,
    Buffer.from('Wheel-Version: 1.0\nGenerator: freehold\nRoot-Is-Purelib: true\nTag: py3-none-any\n'),
  );
  entries.set(`${info}/licenses/LICENSE`, read('LICENSE'));
  const record = [...entries].map(([name, content]) => `${name},sha256=${sha256(content)},${content.length}\n`);
  entries.set(`${info}/RECORD`, Buffer.from(`${record.join('')}${info}/RECORD,,\n`));
  const wheel = zipSync(Object.fromEntries(entries), { level: 9, mtime: new Date(1985, 9, 26, 8, 15) });
  return { name: `${own}-py3-none-any.whl`, wheel };
}

const sha256 = (content: Buffer): string => createHash('sha256').update(content).digest('base64url');

const metadataOf = (project: Record<string, string>, readme: string): string => `Metadata-Version: 2.4
Name: ${project.name}
Version: ${project.version}
Summary: ${project.description}
License-Expression: ${project.license}
License-File: LICENSE
Requires-Python: ${project['requires-python']}
Description-Content-Type: text/markdown

${readme}`;
