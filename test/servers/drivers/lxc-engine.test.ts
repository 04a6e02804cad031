/** The LXC driver and an engine that is busy, or answers oddly. */
import { expect, it } from 'vitest';
import { turns } from '../../../provisioning/servers/drivers/driver.ts';
import { send } from '../../../provisioning/servers/drivers/lxc/endpoint.ts';
import { nameOf } from '../../../provisioning/servers/drivers/lxc/instance.ts';
import { LxcDriver } from '../../../provisioning/servers/drivers/lxc/lxc.ts';
import { newSpec } from '../../engine/machine.ts';
import { codeOf } from './contract.ts';
import { listen } from './engine-socket.ts';

const NEVER = new AbortController().signal;

/** An engine with one machine that is off, and that the engine moves until the second question. It refuses the first calls for its power. */
async function openBusy(type = 'container', refusals = 0) {
  const spec = newSpec();
  const path = `/1.0/instances/${nameOf(spec)}`;
  const config = {
    ...{ 'user.freehold-order': spec.order, 'user.freehold-generation': '1', 'user.freehold-ready': '1' },
  };
  const asked: string[] = [];
  const changes: object[] = [];
  const operations = [{ class: 'task', resources: { instances: [path] } }];
  const answers: Record<string, () => unknown> = {
    'GET /1.0': () => ({ auth: 'trusted', environment: { server: 'lxd', server_clustered: false, server_name: 'n1' } }),
    'GET /1.0/projects/freehold': () => ({ config: {} }),
    'GET /1.0/networks/br0': () => ({ managed: false, config: {} }),
    [`GET ${path}`]: () => ({ name: nameOf(spec), type, status: 'Stopped', location: 'none', config, devices: {} }),
    'GET /1.0/operations': () => {
      const running = operations.splice(0, 1);
      return { running: [...running, { class: 'websocket', resources: { instances: [path] } }] };
    },
    [`PUT ${path}/state`]: () => ({}),
    [`PATCH ${path}`]: () => ({}),
  };
  const socketPath = await listen((request, response, body) => {
    const found = answers[request];
    if (request.startsWith('PATCH')) changes.push(JSON.parse(body).config);
    if (found && !/networks|projects|GET \/1.0$/.test(request)) asked.push(request.replace(path, 'machine'));
    const metadata = found?.();
    const error = 'Instance is busy running a "stop" operation';
    if (request.endsWith('/state') && refusals-- > 0)
      return response.end(JSON.stringify({ type: 'error', error_code: 400, error }));
    response.end(JSON.stringify(found ? { type: 'sync', metadata } : { type: 'error', error_code: 404 }));
  });
  const place = { project: 'freehold', pool: 'p', network: 'br0', nameservers: [] };
  return { spec, asked, changes, driver: new LxcDriver({ endpoints: [{ socketPath }], ...place }) };
}

it('A start and a resize wait until the engine has moved the machine', async () => {
  for (const change of ['start', 'resize'] as const) {
    const { spec, asked, driver } = await openBusy();
    if (change === 'start') await driver.power(spec, 'on', 'change-1', NEVER);
    else await driver.resize(spec, 'change-1', NEVER);
    const act = asked.findIndex((one) => /^(PUT|PATCH)/.test(one));
    expect(act).toBeGreaterThan(0);
    expect(asked.slice(0, act).filter((one) => one === 'GET /1.0/operations')).toHaveLength(2);
  }
});

it('A start takes the counters of an older virtual machine from its host, and not from its agent', async () => {
  for (const [type, wanted] of [
    ['virtual-machine', [{ 'security.agent.metrics': 'false' }]],
    ['container', []],
  ] as const) {
    const { spec, changes, driver } = await openBusy(type);
    await driver.power(spec, 'on', 'change-1', NEVER);
    expect(changes).toEqual(wanted);
  }
});

/** An engine with one machine that is off. It answers a move by this status, or else never; the machine stays. */
async function openStaying(status?: number) {
  const spec = newSpec();
  const path = `/1.0/instances/${nameOf(spec)}`;
  const config: Record<string, string> = {
    ...{ 'user.freehold-order': spec.order, 'user.freehold-generation': '1', 'user.freehold-ready': '1' },
  };
  let moves = 0;
  const instance = { name: nameOf(spec), status: 'Stopped', location: 'n1', config, devices: {} };
  const answers: Record<string, (body: string) => unknown> = {
    'GET /1.0': () => ({ auth: 'trusted', environment: { server: 'lxd', server_clustered: false, server_name: 'n1' } }),
    'GET /1.0/projects/freehold': () => ({ config: {} }),
    'GET /1.0/networks/br0': () => ({ managed: false, config: {} }),
    'GET /1.0/operations': () => ({}),
    'GET /1.0/instances': () => [instance],
    [`GET ${path}`]: () => instance,
    [`PATCH ${path}`]: (body) => void Object.assign(config, JSON.parse(body).config),
  };
  const socketPath = await listen((request, response, body) => {
    const isMove = request === `POST ${path}`;
    if (isMove) moves++;
    if (isMove && !status) return response.destroy();
    const code = isMove ? status! : answers[request] ? 200 : 404;
    const metadata = answers[request]?.(body) ?? {};
    response.end(JSON.stringify(code < 400 ? { type: 'sync', metadata } : { type: 'error', error_code: code }));
  });
  const place = { project: 'freehold', pool: 'p', network: 'br0', nameservers: [] };
  const driver = new LxcDriver({ endpoints: [{ socketPath }], ...place });
  return { move: () => codeOf(driver.move(spec, 'n2', NEVER)), moves: () => moves };
}

it('A move that failed unseen counts as a failure before the next one begins', async () => {
  const { move, moves } = await openStaying();
  expect([await move(), await move(), moves()]).toEqual(['unreachable', 'failed', 1]);
  expect([await move(), moves()]).toEqual(['unreachable', 2]);
});

it('A move that the engine forbids is a failure, and no outage', async () => {
  const { move, moves } = await openStaying(403);
  expect([await move(), await move(), moves()]).toEqual(['failed', 'failed', 2]);
});

it('A host tells the free space of its pool in whole GB, by the request that tells its size', async () => {
  const asked: string[] = [];
  const space = { total: 100 * 2 ** 30, used: 60 * 2 ** 30 + 1 };
  const answers: Record<string, unknown> = {
    'GET /1.0': { auth: 'trusted', environment: { server: 'lxd', server_clustered: false, server_name: 'n1' } },
    'GET /1.0/projects/freehold': { config: {} },
    'GET /1.0/networks/br0': { managed: false, config: {} },
    'GET /1.0/resources': { cpu: { total: 4 }, memory: { total: 8 * 2 ** 30 } },
    'GET /1.0/storage-pools/p/resources': { space },
  };
  const socketPath = await listen((request, response) => {
    if (request.endsWith('/resources')) asked.push(request);
    response.end(JSON.stringify({ type: 'sync', metadata: answers[request] ?? {} }));
  });
  const place = { project: 'freehold', pool: 'p', network: 'br0', nameservers: [] };
  const driver = new LxcDriver({ endpoints: [{ socketPath }], ...place });
  const size = { vcpus: 4, memoryMb: 8192, diskGb: 100 };
  expect(await driver.capacity(NEVER)).toEqual([{ name: 'n1', state: 'online', size, diskFreeGb: 39 }]);
  expect(asked).toEqual(['GET /1.0/resources', 'GET /1.0/storage-pools/p/resources']);
});

it('A removal waits for the start of another worker, and turns the machine off again', async () => {
  const spec = newSpec();
  const path = `/1.0/instances/${nameOf(spec)}`;
  const config = {
    ...{ 'user.freehold-order': spec.order, 'user.freehold-generation': '1', 'user.freehold-ready': '1' },
  };
  let status: 'Starting' | 'Running' | 'Stopped' | 'gone' = 'Starting';
  const asked: string[] = [];
  const refused = (error: string) => ({ type: 'error', error_code: 400, error });
  const done = (metadata: unknown = {}) => ({ type: 'sync', metadata });
  const shown = () => ({ name: nameOf(spec), status, location: 'none', config, devices: { eth0: {} } });
  const answers: Record<string, () => object> = {
    'GET /1.0': () => done({ auth: 'trusted', environment: { server: 'lxd', server_clustered: false } }),
    'GET /1.0/projects/freehold': () => done({ config: {} }),
    'GET /1.0/networks/br0': () => done({ managed: false, config: {} }),
    'GET /1.0/instances': () => done([]),
    [`GET ${path}`]: () => done(shown()),
    [`PUT ${path}/state`]: () => {
      if (status === 'Starting') return refused('Instance is busy running a "start" operation');
      status = 'Stopped';
      return done();
    },
    [`DELETE ${path}`]: () => {
      const before = status;
      if (before === 'Starting') status = 'Running';
      if (before === 'Stopped') status = 'gone';
      if (before === 'Running') return refused('Instance is running');
      return before === 'Starting' ? refused('Instance is busy running a "start" operation') : done();
    },
    [`PUT ${path}`]: () => done(),
  };
  const socketPath = await listen((request, response) => {
    asked.push(request);
    const answer = answers[request]?.() ?? { type: 'error', error_code: 404 };
    response.end(
      JSON.stringify(status === 'gone' && request === `GET ${path}` ? { type: 'error', error_code: 404 } : answer),
    );
  });
  const place = { project: 'freehold', pool: 'p', network: 'br0', nameservers: [] };
  const driver = new LxcDriver({ endpoints: [{ socketPath }], ...place, probe: async () => false });
  expect(await driver.destroy(spec, NEVER)).toMatchObject({ phase: 'absent' });
  expect(asked).not.toContain(`PUT ${path}`);
});

it.each([
  [503, 'LXD daemon setup in progress'],
  [503, 'Daemon setup in progress'],
  [502, 'Bad Gateway'],
  [504, 'Gateway Timeout'],
  [500, 'Failed to begin transaction: sql: database is closed'],
  [500, 'Failed to fetch from "instances" table: driver: bad connection'],
])(
  'An engine that answers %i "%s" starts, ends, or is behind a proxy: an outage, and no failure',
  async (code, error) => {
    const socketPath = await listen((_, response) => {
      response.writeHead(code).end(JSON.stringify({ type: 'error', error_code: code, error }));
    });
    const place = { project: 'freehold', pool: 'p', network: 'br0', nameservers: [] };
    const driver = new LxcDriver({ endpoints: [{ socketPath }], ...place });
    const spec = newSpec();
    for (const call of [driver.observe(spec, NEVER), driver.create(spec, NEVER), driver.destroy(spec, NEVER)])
      expect(await codeOf(call)).toBe('unreachable');
  },
);

it('An answer of an engine without an end is refused', async () => {
  const socketPath = await listen((_, response) => {
    const more = () => {
      while (response.write(Buffer.alloc(2 ** 20, ' ')));
    };
    response.on('drain', more);
    more();
  });
  const asked = send({ socketPath }, { method: 'GET', path: '/', silentMs: 20_000, signal: NEVER });
  await expect(asked).rejects.toThrow('The answer is too long.');
});

it('A start waits for the late stop of an earlier call', async () => {
  const { spec, asked, driver } = await openBusy('container', 1);
  expect(await codeOf(driver.power(spec, 'on', 'change-1', NEVER))).toBeUndefined();
  expect(asked.filter((one) => one === 'PUT machine/state')).toHaveLength(2);
});

it('A call that waits for its turn ends with its signal, and the next one has its turn', async () => {
  const inTurn = turns();
  const machine = { order: 'SRV-1', generation: 1 };
  const { promise: first, resolve: finish } = Promise.withResolvers<string>();
  const running = inTurn(machine, NEVER, () => first);
  const over = new AbortController();
  const waiting = inTurn(machine, over.signal, async () => 'second');
  const next = inTurn(machine, NEVER, async () => 'third');
  over.abort(new Error('over'));
  await expect(waiting).rejects.toThrow('over');
  finish('first');
  expect(await Promise.all([running, next])).toEqual(['first', 'third']);
});

it.each(['off', 'restart'] as const)('A machine that another call turned off meanwhile fails no %s', async (want) => {
  const spec = newSpec();
  const path = `/1.0/instances/${nameOf(spec)}`;
  const config = {
    ...{ 'user.freehold-order': spec.order, 'user.freehold-generation': '1', 'user.freehold-ready': '1' },
  };
  let status = 'Running';
  const answers: Record<string, (body: string) => unknown> = {
    'GET /1.0': () => ({ auth: 'trusted', environment: { server: 'lxd', server_clustered: false, server_name: 'n1' } }),
    'GET /1.0/projects/freehold': () => ({ config: {} }),
    'GET /1.0/networks/br0': () => ({ managed: false, config: {} }),
    'GET /1.0/operations': () => ({}),
    [`GET ${path}`]: () => ({ name: nameOf(spec), status, location: 'none', config, devices: {} }),
    [`GET ${path}/state`]: () => ({ pid: status === 'Running' ? 7 : 0 }),
    [`PATCH ${path}`]: () => ({}),
    [`PUT ${path}/state`]: (body) => {
      const { action } = JSON.parse(body);
      status = action === 'start' ? 'Running' : 'Stopped';
      return action === 'start' ? {} : undefined;
    },
  };
  const socketPath = await listen((request, response, body) => {
    const metadata = answers[request]?.(body);
    const refused = { type: 'error', error_code: request.startsWith('PUT') ? 400 : 404, error: 'already stopped' };
    response.end(JSON.stringify(metadata ? { type: 'sync', metadata } : refused));
  });
  const place = { project: 'freehold', pool: 'p', network: 'br0', nameservers: [] };
  const driver = new LxcDriver({ endpoints: [{ socketPath }], ...place, probe: async () => true });
  expect(await driver.power(spec, want, 'change-1', NEVER)).toMatchObject({ power: want === 'off' ? 'off' : 'on' });
});
