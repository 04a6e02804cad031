/** The operator brings images to engines, refreshes them, and withdraws them. */
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  type ImportedImage,
  importImage,
  listEngineImages,
  refreshImage,
  withdrawImage,
} from '../../../resolvers/catalog/engine-images.ts';
import { removeEngine, setEngineState } from '../../../resolvers/servers/engines.ts';
import { removeHost } from '../../../resolvers/servers/hosts.ts';
import { openEngines } from '../placement/engine-world.ts';
import { serve, sha256 } from './source.ts';

const IMAGE = Buffer.from('an image of AlmaLinux');
const KEY = { engine: 'north', code: 'alma-9', virtualMachine: false };

/** One engine that sells, `north`, and a server of images. */
async function open() {
  const shop = await openEngines(onTestFinished);
  await shop.add('north');
  await shop.look();
  await setEngineState(shop.operator, 'lxc', 'DRAINED');
  const served = { body: IMAGE };
  const url = await serve(onTestFinished, (_, response) => response.end(served.body));
  const worker = shop.provisioning.newWorker();
  const read = async () => (await listEngineImages(shop.operator))[0];
  return {
    ...{ ...shop, north: shop.engine('north'), served, url, read },
    import: (more: Partial<ImportedImage> = {}) =>
      importImage(shop.operator, { ...KEY, url, sha256: sha256(IMAGE), ...more }),
    /** Runs the tasks of images, also those that rest. */
    carryOut: async () => {
      await shop.db.query(`update task set run_at = now() where process = 'image'`);
      await worker.drain('images');
      return read();
    },
    tasks: () => shop.db.query(`select subject from task where process = 'image' and state <> 'DEAD'`),
  };
}

describe('An import', () => {
  it('brings an image to its engine, and orders of it need no look', async () => {
    const shop = await open();
    await expect(shop.order('zrh', 'alma-9')).rejects.toMatchObject({ code: 'unknown_os' });
    expect(await shop.import()).toMatchObject({ state: 'IMPORTING', fingerprint: null });
    expect(await shop.carryOut()).toMatchObject({ state: 'READY', fingerprint: sha256(IMAGE), trouble: null });
    expect(shop.north.brought.get('alma-9')).toBe(sha256(IMAGE));
    expect(await shop.placeOf(await shop.order('zrh', 'alma-9'))).toEqual(['north', 'north-1']);
    expect(await shop.tasks()).toEqual([]);
    expect(await shop.events('north')).toContain('engine.updated');
  });

  it('has a name of its own for virtual machines', async () => {
    const shop = await open();
    await shop.import({ virtualMachine: true });
    await shop.carryOut();
    expect([...shop.north.brought.keys()]).toEqual(['alma-9-vm']);
  });

  it('can come from an image server', async () => {
    const shop = await open();
    const server = 'https://images.example.org';
    await shop.import({ url: null, sha256: null, server, serverAlias: 'almalinux/9/cloud' });
    expect(await shop.carryOut()).toMatchObject({ fingerprint: `${server} almalinux/9/cloud false` });
  });

  it('fails for good with another checksum, and sells nothing', async () => {
    const shop = await open();
    await shop.import({ sha256: sha256(Buffer.from('another')) });
    const image = await shop.carryOut();
    expect(image).toMatchObject({ state: 'FAILED', fingerprint: null });
    expect(image!.trouble).toMatch(/its SHA-256 is \w{64}, and not \w{64}/);
    expect(shop.north.brought.size).toBe(0);
    expect(await shop.tasks()).toEqual([]);
    await expect(shop.order('zrh', 'alma-9')).rejects.toMatchObject({ code: 'unknown_os' });
  });

  it('waits for a silent engine without end, with its words', async () => {
    const shop = await open();
    shop.north.down = true;
    await shop.import();
    for (let i = 0; i < 10; i++) await shop.carryOut();
    expect(await shop.read()).toMatchObject({ state: 'IMPORTING', trouble: 'north does not answer.' });
    shop.north.down = false;
    expect(await shop.carryOut()).toMatchObject({ state: 'READY', trouble: null, troubleAt: null });
  });

  it('gives up a source that keeps failing, and another import begins anew', async () => {
    const shop = await open();
    const gone = await serve(onTestFinished, (_, response) => response.writeHead(503).end());
    await shop.import({ url: gone });
    for (let i = 0; i < 5; i++)
      expect(await shop.carryOut()).toMatchObject({ state: 'IMPORTING', trouble: `${gone}: HTTP 503` });
    expect(await shop.carryOut()).toMatchObject({ state: 'FAILED', trouble: `${gone}: HTTP 503` });
    expect(await shop.carryOut()).toMatchObject({ state: 'FAILED' });
    expect(await shop.tasks()).toEqual([]);
    expect(await shop.import()).toMatchObject({ state: 'IMPORTING', trouble: null });
    expect(await shop.carryOut()).toMatchObject({ state: 'READY' });
  });

  it('is carried out again after the death of its worker', async () => {
    const shop = await open();
    shop.north.imageFault = new Error('killed');
    await shop.import();
    expect(await shop.carryOut()).toMatchObject({ state: 'IMPORTING', fingerprint: null });
    shop.north.imageFault = undefined;
    expect(await shop.carryOut()).toMatchObject({ state: 'READY' });
  });

  it.each([
    ['an unknown engine', { engine: 'south' }, 'not_found'],
    ['an engine that no look has reached', { engine: 'bmc' }, 'validation_failed'],
    ['an image that the catalog lacks', { code: 'alma-7' }, 'validation_failed'],
    ['a file of the machine', { url: 'file:///etc/passwd' }, 'validation_failed'],
    ['a URL with a password', { url: 'https://a:b@example.org/' }, 'validation_failed'],
    ['a URL without a checksum', { sha256: null }, 'validation_failed'],
    ['a checksum of another kind', { sha256: 'd41d8cd98f00b204e9800998ecf8427e' }, 'validation_failed'],
    ['two origins', { server: 'https://example.org', serverAlias: 'a' }, 'validation_failed'],
    ['an image server without an alias', { url: null, server: 'https://example.org' }, 'validation_failed'],
  ])('is refused for %s', async (_, more, code) => {
    const shop = await open();
    await shop.db.query(
      `insert into engine (name, kinds, needs_hosts, simulated) values ('bmc', '{DEDICATED}', true, false)`,
    );
    await expect(shop.import(more)).rejects.toMatchObject({ code });
    expect(await shop.read()).toBeUndefined();
  });
});

it('An import says why its engine cannot take it, and when to try again', async () => {
  const shop = await open();
  await shop.db.query(`insert into engine (name, kinds, needs_hosts, simulated) values ('new', '{VPS}', false, false)`);
  const refusal = () =>
    shop.import({ engine: 'new' }).then(
      () => undefined,
      ({ message }: Error) => message,
    );
  expect(await refusal()).toBe('No worker has looked at new yet. Try again in a minute.');
  await shop.db.query(`update engine set trouble = 'It burns.', trouble_at = now() where name = 'new'`);
  expect(await refusal()).toMatch(/because the last look failed: It burns\.$/);
  await shop.db.query(`update engine set trouble = null, trouble_at = null, seen_at = now() where name = 'new'`);
  expect(await refusal()).toBe('The engine new has no images of its own.');
});

describe('A refresh', () => {
  it('keeps the image before on sale until the new one is there', async () => {
    const shop = await open();
    await shop.import();
    await shop.carryOut();
    shop.served.body = Buffer.from('a newer image');
    await shop.import({ sha256: sha256(shop.served.body) });
    expect(await shop.read()).toMatchObject({ state: 'IMPORTING', fingerprint: sha256(IMAGE) });
    await shop.order('zrh', 'alma-9');
    expect(await shop.carryOut()).toMatchObject({ state: 'READY', fingerprint: sha256(shop.served.body) });
  });

  it('keeps the image before if it fails', async () => {
    const shop = await open();
    await shop.import();
    await shop.carryOut();
    shop.served.body = Buffer.from('half');
    expect(await refreshImage(shop.operator, KEY)).toMatchObject({ state: 'IMPORTING' });
    expect(await shop.carryOut()).toMatchObject({ state: 'FAILED', fingerprint: sha256(IMAGE) });
    await shop.order('zrh', 'alma-9');
  });

  it('needs an import', async () => {
    const shop = await open();
    await expect(refreshImage(shop.operator, KEY)).rejects.toMatchObject({ code: 'not_found' });
  });
});

describe('A withdrawal', () => {
  it('stops orders at once, also while its engine is silent and a look still sees the image', async () => {
    const shop = await open();
    await shop.import();
    await shop.carryOut();
    await withdrawImage(shop.operator, KEY);
    await expect(shop.order('zrh', 'alma-9')).rejects.toMatchObject({ code: 'unknown_os' });
    await shop.look();
    await expect(shop.order('zrh', 'alma-9')).rejects.toMatchObject({ code: 'unknown_os' });
    shop.north.down = true;
    expect(await shop.carryOut()).toMatchObject({ state: 'WITHDRAWING', trouble: 'north does not answer.' });
    shop.north.down = false;
    expect(await shop.carryOut()).toBeUndefined();
    expect(shop.north.brought.size).toBe(0);
    expect(await shop.tasks()).toEqual([]);
  });

  it('goes on without end after the death of its workers', async () => {
    const shop = await open();
    await shop.import();
    await shop.carryOut();
    await withdrawImage(shop.operator, KEY);
    shop.north.imageFault = new Error('killed');
    for (let i = 0; i < 10; i++)
      expect(await shop.carryOut()).toMatchObject({ state: 'WITHDRAWING', trouble: 'killed' });
    shop.north.imageFault = undefined;
    expect(await shop.carryOut()).toBeUndefined();
  });

  it('ends an import, and an import ends a withdrawal', async () => {
    const shop = await open();
    await shop.import();
    await withdrawImage(shop.operator, KEY);
    await shop.import();
    expect(await shop.carryOut()).toMatchObject({ state: 'READY' });
    await shop.import();
    await withdrawImage(shop.operator, KEY);
    expect(await shop.carryOut()).toBeUndefined();
    await expect(withdrawImage(shop.operator, KEY)).rejects.toMatchObject({ code: 'not_found' });
  });

  it('needs no engine that the operator has removed', async () => {
    const shop = await open();
    await shop.import();
    await removeHost(shop.operator, 'north-1');
    await removeEngine(shop.operator, 'north');
    expect(await shop.carryOut()).toBeUndefined();
    expect(await shop.tasks()).toEqual([]);
  });
});
