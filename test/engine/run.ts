/**
 * `npm run test:engine [files]`: the tests over a real engine. The engine starts in private namespaces that vanish with
 * the tests, so it needs root and Debian packages. If something is missing, the program names it and succeeds.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The required programs, and the Debian packages that contain them. */
const NEEDED: Record<string, string> = {
  lxd: 'lxd',
  dnsmasq: 'dnsmasq-base',
  'mkfs.btrfs': 'btrfs-progs',
  unsquashfs: 'squashfs-tools',
  nft: 'nftables',
  '/bin/busybox': 'busybox-static',
  dropbear: 'dropbear-bin',
  ssh: 'openssh-client',
  ip: 'iproute2',
  unshare: 'util-linux',
  nc: 'netcat-openbsd',
};
const HERE = import.meta.dirname;

const reason = why();
if (reason) console.log(`Skipped: the tests over a real engine. ${reason}`);
else process.exitCode = run(process.argv.slice(2));

function why(): string | undefined {
  if (process.getuid?.() !== 0) return 'They need root.';
  const missing = Object.entries(NEEDED).filter(([command]) => !has(command));
  if (missing.length) return `Packages are missing: ${missing.map(([, name]) => name).join(', ')}.`;
  const refused = spawnSync('unshare', ['--net', '--mount', '--pid', '--fork', 'true'], { encoding: 'utf8' });
  return refused.status === 0 ? undefined : `Namespaces cannot be made: ${refused.stderr}`;
}

function has(command: string): boolean {
  return (
    spawnSync('sh', ['-c', `command -v ${command}`], { env: { PATH: `${process.env.PATH}:/usr/sbin:/sbin` } })
      .status === 0
  );
}

function sayWhatIsSkipped(): void {
  const { INCUS_ROOT, DEBIAN_IMAGE, DEBIAN_PACKAGE, VM_IMAGE, OCI_IMAGE, ENGINE_OUTAGE_SECONDS } = process.env;
  if (!ENGINE_OUTAGE_SECONDS) console.log('Skipped: outages of an engine. Set ENGINE_OUTAGE_SECONDS to their length.');
  if (!INCUS_ROOT) console.log('Skipped: Incus. Set INCUS_ROOT to a folder of test/engine/incus-root.sh.');
  if (!VM_IMAGE) console.log('Skipped: virtual machines. Set VM_IMAGE to a file of test/engine/vm/image.sh.');
  if (!DEBIAN_PACKAGE || !DEBIAN_IMAGE)
    console.log('Skipped: the Debian package. Set DEBIAN_PACKAGE to a file of npm run package:deb, and DEBIAN_IMAGE.');
  if (!OCI_IMAGE) console.log('Skipped: the image for containers. Set OCI_IMAGE to a file of npm run package:oci.');
  if (!DEBIAN_IMAGE) console.log('Skipped: a real Debian. Set DEBIAN_IMAGE to a file of test/engine/debian-image.sh.');
}

/** @returns the exit code */
function run(files: string[]): number {
  const folder = mkdtempSync(join(tmpdir(), 'freehold-engine-'));
  chmodSync(folder, 0o755);
  try {
    execFileSync(join(HERE, 'tiny-image.sh'), [join(folder, 'tiny.tar.gz')]);
    const vitest = join(HERE, '../../node_modules/vitest/vitest.mjs');
    const given = files[0]?.endsWith('.ts') && !files[0].includes('.engine') ? files : undefined;
    if (!given) sayWhatIsSkipped();
    const command = given ?? [
      vitest,
      'run',
      '--config',
      join(HERE, 'vitest.config.ts'),
      '--root',
      join(HERE, '../..'),
      ...files,
    ];
    const { status } = spawnSync(join(HERE, 'namespace.sh'), [folder, process.execPath, ...command], {
      stdio: 'inherit',
      env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
    });
    return status ?? 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
