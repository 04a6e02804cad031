/** The command of docs/operate/accounts.md that opens a case, with the words of a stranger. It runs as printed. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildSchema, parse, validate } from 'graphql';
import { expect, it, onTestFinished } from 'vitest';
import { newFolder, removeFolder } from '../setup/spawn.ts';

const printed = [...readFileSync('docs/operate/accounts.md', 'utf8').matchAll(/```(?:sh)?\n([\s\S]*?)```/g)]
  .map(([, block]) => block!)
  .find((block) => block.includes('openCase('));

it('The words of a complaint run neither in the shell nor as a mutation of the operator', () => {
  const folder = newFolder();
  onTestFinished(() => removeFolder(folder));
  const words = `It's "; touch stolen; $(touch stolen)'; touch stolen; '"}) { id } x: addNote(text: "`;
  for (const name of ['complaint.txt', 'source.txt']) writeFileSync(join(folder, name), words);
  writeFileSync(join(folder, 'operator-token'), 'svc_op_test');
  // It prints what would be sent.
  const sent = execFileSync('bash', ['-c', `curl() { cat; }\n${printed}`], {
    cwd: folder,
    env: { ...process.env, DATA_DIR: folder },
    encoding: 'utf8',
  });
  const { query, variables } = JSON.parse(sent);
  expect(variables.input).toMatchObject({ source: words, text: words });
  expect(Date.parse(variables.input.deadline)).toBeGreaterThan(Date.now());
  expect(validate(buildSchema(readFileSync('schema/schema.graphql', 'utf8')), parse(query))).toEqual([]);
  expect(existsSync(join(folder, 'stolen'))).toBe(false);
});
