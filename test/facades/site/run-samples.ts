/** Runs the samples of a language, all in one process. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { wheelOf } from '../../../facades/downloads/wheel.ts';
import { installed } from '../client/install.ts';

const ROOT = join(import.meta.dirname, '../../..');
const PROGRAM = join(ROOT, 'facades/cli/src/program.ts');

export interface Sample {
  code: string;
  /** The address of the service. */
  url: string;
}
/** The result of a sample. */
export interface Outcome {
  /** Its output. */
  printed: string;
  /** The code of its refusal by the service, or the text of another fault. */
  fault?: string;
}
interface Setting {
  /** A folder of the run. */
  folder: string;
  token: string;
}

/** Runs a program that prints the outcomes as its last line. @throws Error with its complaint, if it failed */
async function outcomes(command: string, args: string[], env: Record<string, string>): Promise<Outcome[]> {
  const child = spawn(command, args, { env: { PATH: process.env.PATH, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  const [out, error] = await Promise.all([text(child.stdout), text(child.stderr)]);
  if (!out) throw new Error(`${command} failed: ${error}`);
  return JSON.parse(out);
}

const TSCONFIG = {
  compilerOptions: {
    ...{ target: 'es2024', module: 'nodenext', types: ['node'], strict: true, noEmit: true, skipLibCheck: true },
    allowImportingTsExtensions: true,
  },
  include: ['*.ts'],
};
/** Checks the types of all samples, and imports them one after the other. */
const TYPESCRIPT = `
const outcomes = [];
for (let at = 0; at < Number(process.argv[2]); at++) {
  const lines = [];
  console.log = (...values) => lines.push(values.map((value) => JSON.stringify(value)).join(' '));
  const fault = await import(\`./sample-\${at}.ts\`).then(() => undefined, (error) => error.code ?? String(error));
  outcomes.push({ printed: lines.join('\\n'), fault });
}
process.stdout.write(JSON.stringify(outcomes));
`;

/** With the packed SDK. @throws Error if the types of a sample are wrong */
export async function runTypescript(samples: readonly Sample[], { folder, token }: Setting): Promise<Outcome[]> {
  installed(join(ROOT, 'facades/client'), folder);
  mkdirSync(join(folder, 'node_modules/@types'));
  for (const name of ['@types/node', 'undici-types'])
    symlinkSync(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name));
  writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG));
  writeFileSync(join(folder, 'run.js'), TYPESCRIPT);
  for (const [at, { code }] of samples.entries()) writeFileSync(join(folder, `sample-${at}.ts`), code);
  const { stdout, status } = spawnSync('tsc', ['-p', folder], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`The types of samples are wrong:\n${stdout}`);
  return outcomes(process.execPath, [join(folder, 'run.js'), String(samples.length)], { FREEHOLD_TOKEN: token });
}

const PYTHON = `
import contextlib, io, json, sys
outcomes = []
for code in json.load(open(sys.argv[1])):
    printed, fault = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        try: exec(compile(code, "sample", "exec"), {})
        except Exception as error: fault = getattr(error, "code", None) or repr(error)
    outcomes.append({"printed": printed.getvalue(), "fault": fault})
print(json.dumps(outcomes))
`;

/** With the SDK from its wheel. */
export async function runPython(
  python: string,
  samples: readonly Sample[],
  { folder, token }: Setting,
): Promise<Outcome[]> {
  const { name, wheel } = wheelOf(join(ROOT, 'facades/client/python'));
  const [packed, codes] = [join(folder, name), join(folder, 'samples.json')];
  writeFileSync(packed, wheel);
  writeFileSync(codes, JSON.stringify(samples.map(({ code }) => code)));
  const found = await outcomes(python, ['-W', 'error', '-c', PYTHON, codes], {
    PYTHONPATH: packed,
    FREEHOLD_TOKEN: token,
  });
  return found.map(({ printed, fault }) => ({ printed, ...(fault && { fault }) }));
}

/** In place of the program: tells its words and its standard input. */
const SHELL = `freehold() { printf '%s\\037' "$@"; printf '\\035'; if [ -p /dev/stdin ]; then cat; fi; printf '\\036'; }\n`;
const COMMANDS = `
import { readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { run } from ${JSON.stringify(PROGRAM)};
const write = process.stdout.write.bind(process.stdout);
const outcomes = [];
for (const { words, input, url } of JSON.parse(readFileSync(process.argv[2], 'utf8'))) {
  let [printed, told] = ['', ''];
  process.stdout.write = (chunk) => ((printed += chunk), true);
  process.stderr.write = (chunk) => ((told += chunk), true);
  Object.defineProperty(process, 'stdin', { value: Readable.from([Buffer.from(input)]), configurable: true });
  process.env.FREEHOLD_URL = url;
  process.env.FREEHOLD_CONFIG = process.argv[2] + outcomes.length + '.toml';
  const code = await run(words);
  outcomes.push({ printed: printed + told, ...(code && { fault: /^code: (\\w+)/m.exec(told)?.[1] ?? told }) });
}
write(JSON.stringify(outcomes));
`;

/** A shell reads all commands, and the program runs them one after the other. */
export async function runCommands(samples: readonly Sample[], { folder, token }: Setting): Promise<Outcome[]> {
  const script = SHELL + samples.map(({ code }) => code).join('\n');
  const { stdout } = spawnSync('bash', ['-euc', script], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
  const given = stdout.split('\x1e').slice(0, -1);
  if (given.length !== samples.length) throw new Error(`The shell read ${given.length} commands.`);
  const runs = given.map((one, at) => {
    const [words = '', input = ''] = one.split('\x1d');
    return { words: words.split('\x1f').slice(0, -1), input, url: samples[at]!.url };
  });
  writeFileSync(join(folder, 'runs.json'), JSON.stringify(runs));
  writeFileSync(join(folder, 'run.mjs'), COMMANDS);
  const env = { HOME: folder, FREEHOLD_TOKEN: token };
  return outcomes(process.execPath, [join(folder, 'run.mjs'), join(folder, 'runs.json')], env);
}
