/** The traces that a collector gets from a service by OTLP. It may be away or slow. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import own from '../../package.json' with { type: 'json' };
import { newDatabaseUrl } from '../setup/database.ts';
import { eventually } from '../setup/freehold.ts';
import { startReceiver } from '../setup/receiver.ts';
import { graphqlClient, type RunningService, restClient, spawnService } from '../setup/spawn.ts';

const PERSON = { email: 'heron@example.org', password: 'a heron on the roof' };
const HOSTNAME = 'web-of-the-heron';
const STRANGE_TRACE = '0af7651916cd43dd8448eb211c80319c';

interface Span {
  name: string;
  kind: number;
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  status: { code?: number };
  attributes: Record<string, string | number>;
}

/** The values of OTLP as plain ones. */
const plain = (attributes: { key: string; value: { stringValue?: string; intValue?: number } }[]) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue)]));

/** Starts a collector, which takes OTLP as JSON over HTTP. */
async function startCollector() {
  const texts: string[] = [];
  const headers: Record<string, unknown>[] = [];
  const paths = new Set<string>();
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    texts.push(Buffer.concat(chunks).toString());
    headers.push(request.headers);
    paths.add(`${request.method} ${request.url}`);
    collector.answer(() => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const messages = () => texts.flatMap((text) => JSON.parse(text).resourceSpans);
  const collector = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    texts,
    headers,
    paths,
    /** Answers a message. */
    answer: (send: () => void) => send(),
    resources: () => messages().map(({ resource }) => plain(resource.attributes)),
    spans: (): Span[] =>
      messages()
        .flatMap(({ scopeSpans }) => scopeSpans)
        .flatMap(({ spans }) => spans)
        .map((span) => ({ ...span, attributes: plain(span.attributes) })),
  };
  return collector;
}

const start = async (environment: Record<string, string>): Promise<RunningService> => {
  const service = await spawnService({
    ...{ DATABASE_URL: await newDatabaseUrl(), SIMULATED_PAYMENT_SECONDS: '0.1', POLL_SECONDS: '0.1' },
    ...{ SIMULATED_PROVISION_SECONDS: '0.1', ...environment },
  });
  onTestFinished(() => service.kill().catch(() => {}));
  return service;
};

/** Registers, pays and orders a server. @returns the client of the customer */
async function order({ url }: RunningService) {
  const { body } = await restClient(url)('POST', '/v1/auth/register', PERSON);
  const rest = restClient(url, body.tokens.access_token);
  await rest('POST', '/v1/billing/topups', { amount_usd: 50, crypto: 'BTC' });
  await eventually(async () => (await rest('GET', '/v1/account/balance')).body.balance_usd === 50);
  const traceparent = `00-${STRANGE_TRACE}-b7ad6b7169203331-01`;
  const ordered = await rest(
    'POST',
    '/v1/servers',
    { service_code: 'vps-1', hostname: HOSTNAME },
    { traceparent, tracestate: 'a=1', baggage: 'user=heron' },
  );
  const { order_number: orderNumber } = ordered.body;
  await eventually(async () => (await rest('GET', `/v1/servers/${orderNumber}`)).body.status === 'running');
  return { rest, orderNumber, requestId: ordered.headers.get('x-request-id')! };
}

describe('An order', () => {
  it('is one trace: its request, the steps of its task, and the calls of the driver', async () => {
    const collector = await startCollector();
    const service = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
    const { requestId } = await order(service);
    expect(await service.stop()).toBe(0);
    const spans = collector.spans();
    const request = spans.find(({ attributes }) => attributes['freehold.request_id'] === requestId)!;
    expect(request).toMatchObject({
      name: 'rest OrderServer',
      kind: 2,
      attributes: {
        'freehold.facade': 'rest',
        'freehold.operation': 'OrderServer',
        'http.response.status_code': 200,
      },
    });
    const trace = spans.filter(({ traceId }) => traceId === request.traceId);
    const steps = trace.filter(({ name }) => name.startsWith('step '));
    const calls = trace.filter(({ attributes }) => attributes['freehold.driver'] === 'simulated');
    expect(steps.length).toBeGreaterThan(1);
    for (const { parentSpanId, attributes } of steps) {
      expect(parentSpanId).toBe(request.spanId);
      expect(attributes).toMatchObject({ 'freehold.lane': 'servers', 'freehold.outcome': expect.any(String) });
    }
    expect(new Set(steps.map(({ attributes }) => attributes['freehold.task_id'])).size).toBe(1);
    expect(calls.map(({ attributes }) => attributes['freehold.call'])).toContain('create');
    const parents = new Set(steps.map(({ spanId }) => spanId));
    expect(calls.filter(({ parentSpanId }) => !parents.has(parentSpanId!))).toEqual([]);
    expect(calls.every(({ kind }) => kind === 3)).toBe(true);
  });

  it('tells of no person, no order, no secret and no address, and nothing of a caller decides its trace', async () => {
    const collector = await startCollector();
    const service = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
    const { rest, orderNumber } = await order(service);
    await rest('GET', `/canary-heron?email=${PERSON.email}`).catch(() => {});
    await fetch(`${service.url}/v1/servers/SRV-CANARY`, { headers: { authorization: 'Bearer svc_key_canary' } });
    await service.stop();
    expect(collector.spans().map(({ traceId }) => traceId)).not.toContain(STRANGE_TRACE);
    const text = collector.texts.join('\n');
    for (const secret of [orderNumber, HOSTNAME, 'heron', 'canary', 'CANARY', 'svc_', 'acct_', '@', '127.0.0.1'])
      expect(text).not.toContain(secret);
  });
});

it('A tool, a query and a webhook have spans, too', async () => {
  const collector = await startCollector();
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  const service = await start({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
  });
  const { body } = await restClient(service.url)('POST', '/v1/auth/register', PERSON);
  const { access_token } = body.tokens;
  const rest = restClient(service.url, access_token);
  await rest('POST', '/v1/webhooks', { url: receiver.url, events: ['topup.confirmed'] });
  await rest('POST', '/v1/billing/topups', { amount_usd: 50, crypto: 'BTC' });
  await eventually(async () => receiver.received.length > 0);
  await fetch(`${service.url}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({
      ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
      params: { name: 'get_balance', arguments: { access_token } },
    }),
  });
  await graphqlClient(service.graphql, service.operatorToken)('{ __typename }');
  await service.stop();
  const spans = collector.spans();
  expect(spans.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['mcp GetBalance', 'graphql __typename', 'webhook POST']),
  );
  const webhook = spans.find(({ name }) => name === 'webhook POST')!;
  expect(webhook.attributes).toEqual({ 'http.response.status_code': 204 });
  expect(spans.find(({ spanId }) => spanId === webhook.parentSpanId)!.name).toMatch(/^step /);
  // Customers learn nothing of our traces.
  expect(Object.keys(receiver.received[0]!.headers).filter((name) => /trace|baggage/.test(name))).toEqual([]);
});

describe('The operator chooses', () => {
  it('the name, the attributes and the credential', async () => {
    const collector = await startCollector();
    const service = await start({
      OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/`,
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20of-the-collector',
      OTEL_SERVICE_NAME: 'shop',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test,place=Zürich%2C%20west',
    });
    await fetch(`${service.url}/v1/catalog`);
    await service.stop();
    expect([...collector.paths]).toEqual(['POST /v1/traces']);
    expect(collector.headers[0]).toMatchObject({ authorization: 'Bearer of-the-collector' });
    expect(collector.resources()[0]).toEqual({
      'service.name': 'shop',
      'service.version': own.version,
      'service.instance.id': expect.stringMatching(/^[0-9a-f-]{36}$/),
      'freehold.roles': 'api,worker',
      'deployment.environment.name': 'test',
      place: 'Zürich, west',
      'telemetry.sdk.language': 'nodejs',
      'telemetry.sdk.name': 'opentelemetry',
      'telemetry.sdk.version': expect.any(String),
    });
  });

  it('the part of the traces that the service sends', async () => {
    const collector = await startCollector();
    const service = await start({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0',
    });
    await order(service);
    await service.stop();
    expect(collector.spans()).toEqual([]);
  });
});

describe('A service', () => {
  it('loses only spans while its collector is away', async () => {
    const service = await start({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
      OTEL_EXPORTER_OTLP_TIMEOUT: '500',
    });
    await order(service);
    await expect.poll(service.output, { timeout: 20_000 }).toContain('Spans did not reach the collector');
    expect((await fetch(`${service.url}/v1/catalog`)).status).toBe(200);
    expect(await service.stop()).toBe(0);
    expect(service.output().match(/Spans did not reach/g)).toHaveLength(1);
  });

  it('answers as ever while its collector hangs, and stops within seconds', async () => {
    const collector = await startCollector();
    collector.answer = () => {};
    const service = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
    await order(service);
    await expect.poll(() => collector.texts.length, { timeout: 20_000 }).toBeGreaterThan(0);
    const startedAt = performance.now();
    expect((await fetch(`${service.url}/v1/catalog`)).status).toBe(200);
    expect(performance.now() - startedAt).toBeLessThan(1_000);
    expect(await service.stop()).toBe(0);
    expect(performance.now() - startedAt).toBeLessThan(10_000);
  });
});
