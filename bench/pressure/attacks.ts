/**
 * The attacks of one tenant on what all tenants share: each has preparations, which are not measured, and a load that
 * goes on until it is stopped. What is refused is asked again after a pause, which keeps the attacker's own work off
 * the cores that the server needs.
 */

import { setTimeout as pause } from 'node:timers/promises';
import {
  COMPOSITES,
  deepest,
  endless,
  type Giant,
  heaviest,
  longest,
  widest,
} from '../../test/helpers/giants.js';
import { NAMESPACE } from '../base/fixtures.js';
import type { Attacker } from './attacker.js';

export interface Attack {
  readonly what: string;
  /** All requests, those of the others too, go through the documented HAProxy where it is installed. */
  readonly isProxied?: true;
  /** Resolves when the load goes on; it ends by the signal. */
  readonly begin: (attacker: Attacker) => Promise<void>;
}

const WORKER_STEP = 'attacked';

export const ATTACKS: Readonly<Record<string, Attack>> = {
  http: {
    what: '`http_request` slots: 2,000 instances whose step calls a server that never answers',
    begin: async (a) => {
      const params = { url: a.place.slowUrl, method: 'GET' };
      const id = await a.sequence([{ type: 'step', id: 's', handler: 'http_request', params }]);
      const body = { instances: fill(a.size(200), () => a.creation(id)) };
      for (let batch = 0; batch < 10; batch += 1) await a.post('/instances/batch', body);
    },
  },
  streams: {
    what: 'event streams: 300 of a waiting instance, opened again whenever one ends',
    begin: async (a) => {
      const id = await a.instance(
        await a.sequence([{ type: 'step', id: 's', handler: WORKER_STEP }]),
      );
      a.repeat(a.size(300), () => a.hold('GET', `/instances/${id}/stream`));
    },
  },
  polls: {
    what: 'parked polls: 1,000 of 60 s, of 50 handlers',
    begin: async (a) => {
      let next = 0;
      a.repeat(a.size(1_000), () => {
        next += 1;
        const poll = { handler_name: `none-${next % 50}`, worker_id: `w${next}`, wait_ms: 60_000 };
        return a.hold('POST', '/workers/tasks/poll', JSON.stringify(poll));
      });
    },
  },
  lists: {
    what: 'lists: 16 connections whose filters match nothing among 20,000 instances',
    begin: async (a) => {
      const id = await a.sequence([{ type: 'step', id: 's', handler: 'noop' }]);
      const body = { instances: fill(a.size(1_000), () => a.creation(id)) };
      for (let batch = 0; batch < 20; batch += 1) await a.post('/instances/batch', body);
      a.repeat(16, () => a.get('/instances?failure=nothing'));
    },
  },
  bodies: {
    what: 'hostile bodies: 2 connections with 10 MB of `[[],[],…`',
    begin: async (a) => {
      const raw = Buffer.from(`{"instances":[${'[],'.repeat(a.size(3_300_000))}[]]}`);
      a.repeat(2, () => a.raw('/instances/batch', raw));
    },
  },
  large: {
    what: 'large bodies: 8 connections with contexts of 200 KB',
    begin: async (a) => {
      const id = await a.sequence([{ type: 'step', id: 's', handler: WORKER_STEP }]);
      const context = { data: { text: 'x'.repeat(a.size(200_000)) } };
      const raw = Buffer.from(JSON.stringify({ ...a.creation(id), context }));
      a.repeat(8, () => a.raw('/instances', raw));
    },
  },
  batches: {
    what: 'batches: 8 connections with 1,000 instances each',
    begin: async (a) => {
      const id = await a.sequence([{ type: 'step', id: 's', handler: 'noop' }]);
      const raw = Buffer.from(
        JSON.stringify({ instances: fill(a.size(1_000), () => a.creation(id)) }),
      );
      a.repeat(8, () => a.raw('/instances/batch', raw));
    },
  },
  definitions: {
    what: 'validations and diffs: 4 connections with definitions of 4,000 blocks, 4 that compare two of them',
    begin: async (a) => {
      const blocks = fill(a.size(4_000), (at) => ({
        type: 'step',
        id: `s${at}`,
        handler: 'noop',
        when: `data.n${at} > 1 && data.text == "x"`,
      }));
      const body = { tenant_id: a.place.tenant, namespace: NAMESPACE, name: 'large', blocks };
      const sides = {
        tenant_id: a.place.tenant,
        baseline_sequence_id: await a.store({ ...body, version: 1 }),
        candidate_sequence_id: await a.store({ ...body, version: 2, blocks: blocks.toReversed() }),
      };
      const raw = Buffer.from(JSON.stringify({ ...body, version: 3 }));
      a.repeat(4, () => a.raw('/sequences/validate', raw));
      a.repeat(4, () => a.raw('/sequences/releases/diff', Buffer.from(JSON.stringify(sides))));
    },
  },
  webhooks: {
    what: 'webhooks: 4 batches of 500 ends, each sent to 5 subscribers that never answer',
    begin: async (a) => {
      for (let at = 0; at < 5; at += 1) {
        await a.post('/webhooks', { url: `${a.place.slowUrl}${at}` });
      }
      const id = await a.sequence([{ type: 'step', id: 's', handler: 'noop' }]);
      const body = { instances: fill(a.size(500), () => a.creation(id)) };
      for (let batch = 0; batch < 4; batch += 1) await a.post('/instances/batch', body);
    },
  },
  timers: {
    what: 'timers: 20,000 instances that are due at the same moment',
    begin: async (a) => {
      const id = await a.sequence([{ type: 'step', id: 's', handler: 'noop' }]);
      // The time of the batches is a part of it: the first of them must not be due before the last one is there.
      const next_fire_at = new Date(Date.now() + a.place.leadMs).toISOString();
      const body = { instances: fill(a.size(1_000), () => ({ ...a.creation(id), next_fire_at })) };
      for (let batch = 0; batch < 20; batch += 1) await a.post('/instances/batch', body);
      await pause(Math.max(0, Date.parse(next_fire_at) - Date.now() - DUE_AFTER_BEGIN_MS));
    },
  },
  flood: {
    what: 'creations: 256 connections without a pause',
    begin: async (a) => {
      const id = await a.sequence([{ type: 'step', id: 's', handler: 'noop' }]);
      const raw = Buffer.from(JSON.stringify(a.creation(id)));
      a.repeat(a.size(256), () => a.raw('/instances', raw));
    },
  },
  stalled: {
    what: 'bodies that stall, without a key: 7,600 connections of one address, whose bound is 7,500',
    begin: async (a) => {
      a.repeat(a.size(7_600), () => a.stall('/instances'));
    },
  },
  slow: {
    what: 'slow bodies, without a key, through HAProxy: 60 of one address, a byte each second',
    isProxied: true,
    begin: async (a) => {
      a.repeat(a.size(60), () => a.stall('/instances', 1_000));
    },
  },
  deep: giant('64 levels of all kinds', () => deepest(COMPOSITES)),
  long: giant('5,000 blocks in a list', longest),
  wide: giant('5,000 blocks in 256 branches', widest),
  tasks: giant('5,000 tasks in 256 branches, a worker', () => widest(WORKER_STEP)),
  endless: giant('a loop of 100,000 iterations', endless),
  heavy: giant('a context of 256 KiB, a worker', () => heaviest(WORKER_STEP)),
};

/** One instance as large as the limits allow, started again whenever it has ended. */
function giant(what: string, make: () => Giant): Attack {
  return {
    what: `a giant: ${what}`,
    begin: async (a) => {
      const { blocks, data = {}, handler } = make();
      const id = await a.sequence(blocks);
      a.repeat(1, () => a.complete(id, data));
      if (handler !== undefined) a.repeat(1, () => a.workOn(handler));
    },
  };
}

/** How long measuring has gone on when the timers of the attack are due. */
const DUE_AFTER_BEGIN_MS = 500;

function fill<T>(count: number, make: (at: number) => T): T[] {
  return Array.from({ length: count }, (_, at) => make(at));
}
