/**
 * The list of all packages of the service with their checksums and licences, as CycloneDX. `npm sbom` writes it from the lock
 * file. The list has no time, no serial number and no name of a folder. So the same lock file gives the same bytes.
 *
 * usage: sbom.ts <folder of package-lock.json> <file> [--installed]
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

const OUTPUT_MAX = 64 * 1024 * 1024;

interface Locked {
  dev?: boolean;
}
interface Component {
  'bom-ref': string;
  name: string;
}
interface Sbom {
  serialNumber?: string;
  metadata: { timestamp?: string; tools?: { version?: string }[]; component: Component };
  components: Component[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

/** @param installed lists only the packages that the folder has in node_modules, such as those of one architecture */
export function sbomOf(folder: string, { installed = false } = {}): Buffer {
  const sbom = fromNpm(folder);
  delete sbom.serialNumber;
  delete sbom.metadata.timestamp;
  for (const tool of sbom.metadata.tools ?? []) delete tool.version;
  if (installed) keepOnly(sbom, installedIn(folder));
  return Buffer.from(`${JSON.stringify(sbom, null, 2)}\n`);
}

/**
 * Asks npm in a folder without the packages for development. `npm sbom --omit=dev` would leave out all packages that one of
 * them needs, too.
 */
function fromNpm(folder: string): Sbom {
  const own = readJson(join(folder, 'package.json'));
  const lock = readJson(join(folder, 'package-lock.json'));
  const packages = Object.entries<Locked>(lock.packages).filter(([, { dev }]) => !dev);
  delete own.devDependencies;
  delete lock.packages[''].devDependencies;
  const place = mkdtempSync(join(tmpdir(), 'sbom-'));
  try {
    writeFileSync(join(place, 'package.json'), JSON.stringify(own));
    writeFileSync(
      join(place, 'package-lock.json'),
      JSON.stringify({ ...lock, packages: Object.fromEntries(packages) }),
    );
    const command = ['sbom', '--sbom-format=cyclonedx', '--package-lock-only'];
    const text = execFileSync('npm', command, { cwd: place, encoding: 'utf8', maxBuffer: OUTPUT_MAX });
    const sbom: Sbom = JSON.parse(text);
    // npm takes the name of the folder.
    sbom.metadata.component.name = own.name;
    return sbom;
  } finally {
    rmSync(place, { recursive: true });
  }
}

const readJson = (file: string) => JSON.parse(readFileSync(file, 'utf8'));

/** Writes the list, and its checksum into a second file. */
export function writeSbom(file: string, content: Buffer): void {
  const sum = createHash('sha256').update(content).digest('hex');
  writeFileSync(file, content);
  writeFileSync(`${file}.sha256`, `${sum}  ${basename(file)}\n`);
  console.log(`${sum}  ${file}`);
}

/** The packages of node_modules, such as `fastify@5.0.0`. */
function installedIn(folder: string): Set<string> {
  const modules = globSync(
    ['node_modules/{*,@*/*}/package.json', 'node_modules/**/node_modules/{*,@*/*}/package.json'],
    {
      cwd: folder,
    },
  );
  return new Set(
    modules.map((file) => {
      const { name, version } = readJson(join(folder, file));
      return `${name}@${version}`;
    }),
  );
}

function keepOnly(sbom: Sbom, kept: ReadonlySet<string>): void {
  const own = sbom.metadata.component['bom-ref'];
  const isKept = (ref: string) => ref === own || kept.has(ref);
  sbom.components = sbom.components.filter((component) => isKept(component['bom-ref']));
  sbom.dependencies = sbom.dependencies
    .filter(({ ref }) => isKept(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter(isKept) }));
}

if (import.meta.main) {
  const [folder, file, flag] = process.argv.slice(2);
  writeSbom(file!, sbomOf(folder!, { installed: flag === '--installed' }));
}
