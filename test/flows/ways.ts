/** Every way of a server as data: its requests, its steps, and its end. The flow tests are generated from it. */
import type { ServerChange, ServerStatus } from '../../entities/servers/server.ts';
import { deleteServer } from '../../resolvers/servers/delete.ts';
import { orderServer } from '../../resolvers/servers/order.ts';
import type { Call } from '../servers/drivers/faulty-driver.ts';
import { type CustomerShop, finish } from '../setup/customer-shop.ts';
import { type Ask, DUE, keptOff, paid, released, resize, resume, stop, suspendFrom, tick, update } from './asks.ts';

export interface Way {
  /** `process:step`, or just the step for the server process, and which run of it. Together the ways have all steps. */
  steps: string[];
  /** The driver calls after the last request. Together the ways have all calls that change machines. */
  calls: Call[];
  /** The status of the server after the last request. */
  via: ServerStatus;
  refuse?: string;
  /** The requests, each with the status that the server must reach first. */
  asks?: Ask[];
  ends: ServerStatus;
  transfers: string[];
  events: string[];
  /** The calls that had an effect on machines. */
  journal: string[];
  /** The least balance at the end, in USD. */
  leavesUsd: number;
}
const ORDERED = ['created', 'provisioning', 'running'];
export const WAYS: Record<string, Way> = {
  'an order': {
    steps: ['reconcile'],
    calls: ['create', 'observe'],
    via: 'PENDING',
    ends: 'RUNNING',
    transfers: ['hold', 'capture'],
    events: ORDERED,
    journal: ['create'],
    leavesUsd: 14,
  },
  'an order that the driver refuses': {
    steps: ['reconcile', 'undo'],
    calls: ['create', 'observe', 'destroy'],
    via: 'PENDING',
    refuse: 'create',
    ends: 'FAILED',
    transfers: ['hold', 'release'],
    events: ['created', 'provisioning', 'failed'],
    journal: [],
    leavesUsd: 20,
  },
  'an order whose first machine never gives proof': {
    // On a slow machine, the second one has booted by the look in the step that makes it. Then there is no fourth step.
    steps: ['reconcile 2', 'reconcile 3'],
    calls: ['create', 'observe', 'destroy'],
    via: 'PENDING',
    refuse: 'silent',
    ends: 'RUNNING',
    transfers: ['hold', 'capture'],
    events: ORDERED,
    journal: ['create', 'destroy', 'create'],
    leavesUsd: 14,
  },
  'an order whose first machine is stuck': {
    steps: ['reconcile', 'reconcile 2', 'reconcile 3'],
    calls: ['create', 'destroy', 'observe', 'power'],
    via: 'PENDING',
    refuse: 'stuck',
    ends: 'RUNNING',
    transfers: ['hold', 'capture'],
    events: ORDERED,
    journal: ['create', 'off', 'create'],
    leavesUsd: 14,
  },
  'a deletion': {
    steps: ['reconcile'],
    calls: ['destroy'],
    via: 'DELETING',
    asks: [['RUNNING', ({ context }, orderNumber) => deleteServer(context, orderNumber)]],
    ends: 'DELETED',
    transfers: ['hold', 'capture', 'refund'],
    events: [...ORDERED, 'updated', 'deleted'],
    journal: ['create', 'destroy'],
    leavesUsd: 19,
  },
  'a stop': {
    steps: ['reconcile'],
    calls: ['power', 'observe'],
    via: 'STOPPING',
    asks: [stop],
    ends: 'STOPPED',
    transfers: ['hold', 'capture'],
    events: [...ORDERED, 'updated', 'stopped'],
    journal: ['create', 'off'],
    leavesUsd: 14,
  },
  'a start': {
    steps: ['reconcile'],
    calls: ['power', 'observe'],
    via: 'STARTING',
    asks: [stop, update('STOPPED', { powerState: 'ON' })],
    ends: 'RUNNING',
    transfers: ['hold', 'capture'],
    events: [...ORDERED, 'updated', 'stopped', 'updated', 'running'],
    journal: ['create', 'off', 'on'],
    leavesUsd: 14,
  },
  'a reboot': {
    steps: ['reconcile'],
    calls: ['power', 'observe'],
    via: 'REBOOTING',
    asks: [update('RUNNING', { action: 'REBOOT' })],
    ends: 'RUNNING',
    transfers: ['hold', 'capture'],
    events: [...ORDERED, 'updated', 'running'],
    journal: ['create', 'restart'],
    leavesUsd: 14,
  },
  'a reset': {
    steps: ['reconcile'],
    calls: ['power', 'observe'],
    via: 'REBOOTING',
    asks: [update('RUNNING', { action: 'RESET' })],
    ends: 'RUNNING',
    transfers: ['hold', 'capture'],
    events: [...ORDERED, 'updated', 'running'],
    journal: ['create', 'reset'],
    leavesUsd: 14,
  },
  'a rebuild': {
    steps: ['reconcile'],
    calls: ['rebuild', 'observe'],
    via: 'REBUILDING',
    asks: [update('RUNNING', { action: 'REBUILD' })],
    ends: 'RUNNING',
    transfers: ['hold', 'capture'],
    events: [...ORDERED, 'updated', 'updated'],
    journal: ['create', 'rebuild'],
    leavesUsd: 14,
  },
  'a resize': {
    steps: ['reconcile'],
    calls: ['resize', 'observe'],
    via: 'RESIZING',
    asks: [stop, resize],
    ends: 'STOPPED',
    transfers: ['hold', 'capture', 'hold', 'capture'],
    events: [...ORDERED, 'updated', 'stopped', 'updated', 'updated'],
    journal: ['create', 'off', 'resize'],
    leavesUsd: 8,
  },
  'a resize that the driver refuses': {
    steps: ['reconcile', 'undo'],
    calls: ['resize', 'observe'],
    via: 'RESIZING',
    refuse: 'resize',
    asks: [stop, resize],
    ends: 'STOPPED',
    transfers: ['hold', 'capture', 'hold', 'release'],
    events: [...ORDERED, 'updated', 'stopped', 'updated', 'action_failed'],
    journal: ['create', 'off'],
    leavesUsd: 14,
  },
  'a suspension': {
    steps: ['reconcile'],
    calls: ['power', 'observe'],
    via: 'SUSPENDED',
    asks: [suspendFrom('RUNNING')],
    ends: 'SUSPENDED',
    transfers: ['hold', 'capture'],
    events: [...ORDERED, 'suspended'],
    journal: ['create', 'off'],
    leavesUsd: 14,
  },
  'the suspension of an account with its servers': {
    steps: ['renewals:follow'],
    calls: ['power', 'observe'],
    via: 'RUNNING',
    asks: [keptOff],
    ends: 'STOPPED',
    transfers: ['hold', 'capture'],
    events: [...ORDERED, 'updated', 'stopped'],
    journal: ['create', 'off'],
    leavesUsd: 14,
  },
  'the resumption of a server that ran': {
    steps: ['reconcile'],
    calls: ['power', 'observe'],
    via: 'SUSPENDED',
    asks: [suspendFrom('RUNNING'), resume],
    ends: 'RUNNING',
    transfers: ['hold', 'capture', 'renewal', 'capture'],
    events: [...ORDERED, 'suspended', 'running', 'renewed'],
    journal: ['create', 'off', 'on'],
    leavesUsd: 8,
  },
  'the resumption of a server that was stopped': {
    steps: ['reconcile'],
    calls: ['observe'],
    via: 'SUSPENDED',
    asks: [stop, suspendFrom('STOPPED'), resume],
    ends: 'STOPPED',
    transfers: ['hold', 'capture', 'renewal', 'capture'],
    events: [...ORDERED, 'updated', 'stopped', 'suspended', 'stopped', 'renewed'],
    journal: ['create', 'off'],
    leavesUsd: 8,
  },
  'a renewal': {
    steps: ['renewals:start', 'renewals:resume', 'renewals:expire'],
    calls: [],
    via: 'RUNNING',
    asks: [tick('RUNNING', DUE)],
    ends: 'RUNNING',
    transfers: ['hold', 'capture', 'renewal'],
    events: [...ORDERED, 'renewed'],
    journal: ['create'],
    leavesUsd: 8,
  },
  'a month without automatic renewal': {
    steps: ['renewals:start'],
    calls: ['power', 'observe'],
    via: 'RUNNING',
    asks: [tick('RUNNING', `${DUE}, auto_renew = false`)],
    ends: 'SUSPENDED',
    transfers: ['hold', 'capture'],
    events: [...ORDERED, 'suspended'],
    journal: ['create', 'off'],
    leavesUsd: 14,
  },
  'the end of a long suspension': {
    steps: ['renewals:expire'],
    calls: ['destroy'],
    via: 'SUSPENDED',
    asks: [suspendFrom('RUNNING'), tick('SUSPENDED', `suspended_at = now() - interval '8 days', auto_renew = false`)],
    ends: 'DELETED',
    transfers: ['hold', 'capture'],
    events: [...ORDERED, 'suspended', 'updated', 'deleted'],
    journal: ['create', 'off', 'destroy'],
    leavesUsd: 14,
  },
  'a suspension that the balance can pay for': {
    steps: ['renewals:resume'],
    calls: ['power', 'observe'],
    via: 'SUSPENDED',
    asks: [suspendFrom('RUNNING'), tick('SUSPENDED', DUE)],
    ends: 'RUNNING',
    transfers: ['hold', 'capture', 'renewal', 'capture'],
    events: [...ORDERED, 'suspended', 'running', 'renewed'],
    journal: ['create', 'off', 'on'],
    leavesUsd: 8,
  },
  'a top-up of an account with a suspended server': {
    steps: ['renewals:resume-account'],
    calls: ['power', 'observe'],
    via: 'SUSPENDED',
    asks: [suspendFrom('RUNNING'), paid],
    ends: 'RUNNING',
    transfers: ['hold', 'capture', 'renewal', 'capture'],
    events: [...ORDERED, 'suspended', 'running', 'renewed'],
    journal: ['create', 'off', 'on'],
    leavesUsd: 8,
  },
  'a final payment behind the refunds of an account with a suspended server': {
    steps: ['renewals:release', 'renewals:resume-account'],
    calls: ['power', 'observe'],
    via: 'SUSPENDED',
    asks: [suspendFrom('RUNNING'), released],
    ends: 'RUNNING',
    transfers: ['hold', 'capture', 'renewal', 'capture'],
    events: [...ORDERED, 'suspended', 'running', 'renewed'],
    journal: ['create', 'off', 'on'],
    leavesUsd: 8,
  },
};

/** The way of each change. A change without one is a type error. */
export const WAY_OF: Record<ServerChange['operation'], keyof typeof WAYS> = {
  start: 'a start',
  stop: 'a stop',
  reboot: 'a reboot',
  reset: 'a reset',
  rebuild: 'a rebuild',
  resize: 'a resize',
  resume: 'the resumption of a server that ran',
};

const ORDER = { serviceCode: 'vps-1', os: 'debian-13', labels: {}, autoRenew: true };

/** Orders a server, and makes all requests of the way. The worker has not carried out the last one. @returns the order number */
export async function setOut(shop: CustomerShop, { asks = [] }: Way): Promise<string> {
  const { orderNumber } = (await orderServer(shop.context, ORDER)).server;
  for (const [from, ask] of asks) {
    await finish(shop, orderNumber, from);
    await ask(shop, orderNumber);
  }
  return orderNumber;
}
