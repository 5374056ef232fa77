/**
 * What a shard does until it has started: while the database is waited for, a twin of it leads instances
 * through their lives, so that the code which every request needs is compiled when the first one comes.
 * The twin has no database, no peers, no timers and a meter of its own: its rows are the two sequences
 * below, each of its units counts as committed at once, and nobody else sees its answers.
 */

import { setImmediate as pause } from 'node:timers/promises';
import type { Block } from '../../schema/blocks.js';
import type { JsonObject } from '../../src/base/json.js';
import { createLogger } from '../../src/base/log.js';
import type { UnitEnvelope } from '../../src/db/units.js';
import { Meter } from '../../src/metrics/meter.js';
import type { Rows } from '../runtime/loader.js';
import type { Reply } from '../runtime/protocol.js';
import type { SequenceRow } from '../runtime/rows.js';
import { Versions } from '../runtime/versions.js';
import type { ShardDeps } from './parts.js';
import { Shard } from './shard.js';

/** Enough for every function to be compiled once: what is run often enough to be optimised optimises itself. */
const LIVES_MAX = 20;
/** On a slow machine the start itself needs the time. */
const MS_MAX = 60;
/** Messages of the supervisor, and rows that the start has asked for, are heard in between. */
const SLICE_MS = 2;
/** Rows are read in a turn of the event loop, and so is what waits for them. */
const PAUSES_MAX = 20;
/** A request takes four of them. */
const TURNS_MAX = 20;

const TENANT = 'rehearsal';
const HANDLER = 'rehearse';

const SEQUENCES = [
  sequence('01932f2e-0000-7000-8000-000000000001', { type: 'step', id: 'only', handler: 'noop' }),
  sequence('01932f2e-0000-7000-8000-000000000002', {
    type: 'step',
    id: 'work',
    handler: HANDLER,
    params: { id: '{{ data.order.id }}' },
  }),
] as const;

/** Whatever the operator allows, its values are small. */
const SETTINGS = {
  shard: 0,
  shards: 1,
  webhookUrls: [],
  maxContextBytes: 2_000,
  maxOutputBytes: 2_000,
};

const POLL = { handler_name: HANDLER, worker_id: TENANT, limit: 1 };

const CONTEXT = {
  data: { order: { id: 'A-1', total: 129.85, items: [{ sku: 'lamp', quantity: 1, price: 79.9 }] } },
};

const ROWS: Partial<Rows> = {
  sequence: async (id) => SEQUENCES.find((row) => row.id === id),
  instances: async () => new Map(),
};

export interface Rehearsal {
  /** Ends it within `SLICE_MS`. */
  stop(): void;
  /** How many instances have ended. Rejects when one does not end as it should. */
  readonly lives: Promise<number>;
}

/** @param deps of the shard that is to start */
export function rehearse(deps: ShardDeps): Rehearsal {
  let isStopped = false;
  const stop = () => {
    isStopped = true;
  };
  return { stop, lives: lead(deps, () => isStopped) };
}

async function lead(deps: ShardDeps, isStopped: () => boolean): Promise<number> {
  const { clock } = deps;
  const until = clock.monotonic() + MS_MAX;
  const stage = new Stage(deps);
  let lives = 0;
  try {
    await stage.open();
    for (let sliceEnd = 0; lives < LIVES_MAX && !isStopped() && clock.monotonic() < until; ) {
      if (clock.monotonic() > sliceEnd) {
        await pause();
        sliceEnd = clock.monotonic() + SLICE_MS;
        if (isStopped()) break;
      }
      for (const { id } of SEQUENCES) await stage.life(id);
      lives += SEQUENCES.length;
    }
  } finally {
    stage.close();
  }
  return lives;
}

/** The twin, with everything that is around a shard. */
class Stage {
  readonly #shard: Shard;
  #turns: (() => void)[] = [];
  #units: UnitEnvelope[] = [];
  readonly #replies = new Map<number, Reply>();
  #asked = 0;

  constructor(deps: ShardDeps) {
    const { clock } = deps;
    this.#shard = new Shard({
      ...deps,
      settings: { ...deps.settings, ...SETTINGS },
      clock: {
        now: () => clock.now(),
        monotonic: () => clock.monotonic(),
        setTimeout: () => undefined,
        clearTimeout: () => undefined,
      },
      log: createLogger('silent', 'rehearsal'),
      // What it asks for beyond that is not there.
      loader: new Proxy(ROWS, {
        get: (rows, name) => rows[name as keyof Rows] ?? (async () => []),
      }) as Rows,
      handlers: new Map(),
      meter: new Meter(),
      versions: new Versions(),
      tracer: undefined,
      setImmediate: (fn) => this.#turns.push(fn),
      ports: {
        toFront: ({ replies }) => {
          for (const reply of replies) this.#replies.set(reply.request, reply);
        },
        toWriter: ({ units }) => this.#units.push(...units),
        toPeer: () => undefined,
        drainPeers: () => [],
      },
    });
  }

  async open(): Promise<void> {
    const started = this.#shard.start();
    for (let pauses = 0; pauses < PAUSES_MAX; pauses++) {
      this.#play();
      await pause();
    }
    await started;
    // From then on the queue is told of tasks; those from before it would look for in the table.
    await this.#ask('workers.poll', '', POLL);
  }

  close(): void {
    this.#shard.stop();
  }

  /** From its creation to its end, by way of a worker if its step is for one; and read afterwards. */
  async life(sequenceId: string): Promise<void> {
    const asked = { sequence_id: sequenceId, tenant_id: TENANT, namespace: 'default' };
    const body = { ...asked, metadata: { source: TENANT }, context: CONTEXT };
    const { id } = await this.#ask<{ id: string }>('instances.create', '', body);
    if (sequenceId === SEQUENCES[1].id) {
      const [task] = await this.#ask<JsonObject[]>('workers.poll', '', POLL);
      const { id: taskId, claim_epoch } = task as JsonObject;
      const done = { worker_id: TENANT, claim_epoch, output: { done: true } };
      await this.#ask('workers.complete', String(taskId), done);
    }
    const { state } = await this.#ask<{ state: string }>('instances.get', id, undefined);
    if (state !== 'completed') throw new Error(`an instance of the rehearsal is ${state}`);
  }

  async #ask<Answer>(operation: string, target: string, body: object | undefined): Promise<Answer> {
    const id = ++this.#asked;
    const text = body === undefined ? '' : JSON.stringify(body);
    const request = { id, operation, tenant: TENANT, target, body: text };
    this.#shard.receiveRequests({ kind: 'requests', requests: [request], aborted: [] });
    this.#play();
    for (let pauses = 0; !this.#replies.has(id) && pauses < PAUSES_MAX; pauses++) {
      await pause();
      this.#play();
    }
    const reply = this.#replies.get(id);
    this.#replies.delete(id);
    if (reply === undefined) throw new Error(`no answer to ${operation}`);
    if ('error' in reply) throw new Error(`${operation}: ${reply.error.message}`);
    return JSON.parse(reply.body) as Answer;
  }

  /** Turn after turn, until nothing is left to be done; what takes longer goes on after a pause. */
  #play(): void {
    const isBusy = () => this.#turns.length > 0 || this.#units.length > 0;
    for (let turns = 0; turns < TURNS_MAX && isBusy(); turns++) {
      for (const turn of this.#turns.splice(0)) turn();
      const acks = this.#units.splice(0).map(({ seq }) => ({ seq, outcome: 'committed' as const }));
      if (acks.length > 0) this.#shard.receiveAcks(acks);
    }
  }
}

function sequence(id: string, step: Block): SequenceRow {
  const definition = JSON.stringify({ blocks: [step] });
  return {
    id,
    tenant_id: TENANT,
    namespace: 'default',
    name: step.id,
    version: 1,
    deprecated: false,
    definition,
  };
}
