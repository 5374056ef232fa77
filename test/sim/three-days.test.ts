/**
 * A workflow of three days, from a Friday morning to the next Monday, in virtual time: every step of
 * it begins at exactly the time that its definition says, and nobody waits for it.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ContinuityRows } from '../../actors/continuity/rows.js';
import type { Reply } from '../../actors/runtime/protocol.js';
import { openLoads } from '../../actors/shard/loads.js';
import { Shard } from '../../actors/shard/shard.js';
import { STORE } from '../../actors/shard/store.js';
import { Writer } from '../../actors/writer/writer.js';
import type { Clock } from '../../src/base/clock.js';
import type { Logger } from '../../src/base/log.js';
import type { EffectHandler } from '../../src/handlers/registry.js';
import { createRandom } from '../chaos/random.js';
import { NO_PUSHES, NO_WEBHOOKS, SHARD_SETTINGS } from '../helpers/shard-settings.js';
import { Counts, Faults } from './faults.js';
import { memoryClient } from './memory-connection.js';
import { memoryPool } from './memory-pool.js';
import { MemoryServer } from './memory-server.js';
import { MemoryTables, type Row } from './memory-tables.js';
import { Thread, World } from './world.js';

const START = '2031-03-07T09:00:00.000Z';
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const TENANT = 'north';
const SEQUENCE = '00000000-0000-7000-8000-000000000001';

const BLOCKS = [
  {
    type: 'step',
    id: 'order',
    handler: 'supplier',
    retry: { max_attempts: 4, initial_backoff: 4 * HOUR_MS, max_backoff: 24 * HOUR_MS },
  },
  {
    type: 'step',
    id: 'wait',
    handler: 'noop',
    delay: { duration: 11 * HOUR_MS, business_days_only: true },
  },
  {
    type: 'loop',
    id: 'rounds',
    condition: 'true',
    max_iterations: 3,
    body: [
      { type: 'step', id: 'nap', handler: 'sleep', params: { duration_ms: 20 * MINUTE_MS } },
      { type: 'step', id: 'look', handler: 'noop' },
    ],
  },
  {
    type: 'step',
    id: 'invoice',
    handler: 'http_request',
    params: { url: 'https://simulated.example/' },
    retry: { max_attempts: 2, initial_backoff: HOUR_MS, max_backoff: HOUR_MS },
  },
];

/** The supplier fails twice, with four and eight hours between; the weekend is no time to wait for. */
const EXPECTED = [
  ['task', 'order', '2031-03-07T09:00:00.000Z'],
  ['task', 'order', '2031-03-07T13:00:00.000Z'],
  ['task', 'order', '2031-03-07T21:00:00.000Z'],
  ['output', 'order', '2031-03-07T21:00:00.000Z'],
  ['output', 'wait', '2031-03-10T08:00:00.000Z'],
  ['output', 'nap', '2031-03-10T08:20:00.000Z'],
  ['output', 'look', '2031-03-10T08:20:00.000Z'],
  ['output', 'nap', '2031-03-10T08:40:00.000Z'],
  ['output', 'look', '2031-03-10T08:40:00.000Z'],
  ['output', 'nap', '2031-03-10T09:00:00.000Z'],
  ['output', 'look', '2031-03-10T09:00:00.000Z'],
  ['call', 'invoice', '2031-03-10T09:00:00.000Z'],
  ['call', 'invoice', '2031-03-10T10:00:00.000Z'],
  ['state', 'completed', '2031-03-10T10:00:00.000Z'],
  ['output', 'invoice', '2031-03-10T10:00:00.000Z'],
];

/** They are 108,344, on every machine: one more look in every five seconds would be too many. */
const EVENTS_MAX = 150_000;

test('a workflow of three days takes few events, and each step its exact time', async (t) => {
  const days = new Days();
  await days.run();
  assert.deepEqual(days.seen, EXPECTED);
  t.diagnostic(`${days.virtualMs / HOUR_MS} hours in ${days.events} events`);
  assert.ok(days.events <= EVENTS_MAX, `${days.events} events`);
});

/** One shard and one writer on a simulated database; whatever is not waited for takes no time. */
class Days {
  /** What was seen to begin or end, with its time. */
  readonly seen: [what: string, name: string, at: string][] = [];
  readonly #world = new World(1, { isInstant: true });
  readonly #thread = new Thread('shard');
  readonly #server: MemoryServer;
  readonly #shard: Shard;
  readonly #writer;
  readonly #waiting = new Map<number, (reply: Reply) => void>();
  #requests = 0;
  #calls = 0;
  #isOver = false;

  constructor() {
    const world = this.#world;
    world.now = Date.parse(START);
    this.#server = new MemoryServer({
      world,
      tables: new MemoryTables(),
      faults: new Faults({ ...createRandom(1), next: () => 0 }, new Counts()),
      onBroken: (text) => assert.fail(text),
      onCommit: (changes) => {
        for (const { table, before, after } of changes) this.#look(table, before, after);
      },
    });
    this.#server.tryRaiseEpoch(1);
    this.#writer = new Writer({
      store: STORE,
      connect: () => memoryClient(this.#server, this.#thread, 'writer'),
      applicationName: 'writer',
      epoch: 1,
      lanes: 1,
      clock: this.#clock(),
      log: SILENT,
      onAcks: (_shard, _incarnation, acks) => this.#shard.receiveAcks(acks),
      onFenced: () => assert.fail('fenced'),
      onDatabase: () => undefined,
    });
    this.#shard = this.#newShard();
  }

  get virtualMs(): number {
    return this.#world.now - Date.parse(START);
  }

  get events(): number {
    return this.#world.eventCount;
  }

  async run(): Promise<void> {
    const scenario = this.#scenario();
    scenario.catch(() => {
      this.#isOver = true;
    });
    assert.equal(await this.#world.run(() => this.#isOver), 'over');
    await scenario;
  }

  async #scenario(): Promise<void> {
    await this.#writer.start();
    await this.#shard.start();
    const common = { tenant_id: TENANT, namespace: 'days' };
    await this.#ask('sequences.create', '', {
      ...common,
      id: SEQUENCE,
      name: 'three days',
      version: 1,
      blocks: BLOCKS,
    });
    await this.#ask('instances.create', '', { ...common, sequence_id: SEQUENCE });
  }

  #newShard(): Shard {
    const world = this.#world;
    const random = createRandom(1);
    return new Shard({
      settings: {
        ...SHARD_SETTINGS,
        tickIntervalMs: MINUTE_MS,
        cronTickMs: HOUR_MS,
        workerReaperTickMs: MINUTE_MS,
        requireClaimEpoch: true,
        unpoliciedRetry: 'fail',
      },
      clock: this.#clock(),
      random: random.next,
      log: SILENT as unknown as Logger,
      loader: openLoads(memoryPool(this.#server, this.#thread), { shard: 0, shards: 1 }),
      handlers: new Map([['http_request', this.#call]]),
      continuityRows: new ContinuityRows(memoryPool(this.#server, this.#thread)),
      pushSender: NO_PUSHES,
      webhookSender: NO_WEBHOOKS,
      setImmediate: (fn) => world.soon(fn, this.#thread),
      ports: {
        toFront: (replies) => {
          for (const reply of replies) this.#waiting.get(reply.request)?.(reply);
        },
        toWriter: (units) => this.#writer.submit(0, 0, units),
        toPeer: () => undefined,
        drainPeers: () => [],
      },
    });
  }

  /** The periodic look after lost words would be most of what happens, and finds nothing here. */
  #clock(): Clock {
    const clock = this.#world.clockOf(this.#thread);
    const rescans = [5_000, 30_000];
    return {
      ...clock,
      setTimeout: (fn, ms) => clock.setTimeout(fn, rescans.includes(ms) ? HOUR_MS : ms),
    };
  }

  /** @throws AssertionError when it is answered with an error */
  async #ask(operation: string, target: string, body: object): Promise<unknown> {
    this.#requests += 1;
    const id = this.#requests;
    const reply = await new Promise<Reply>((resolve) => {
      this.#waiting.set(id, resolve);
      const text = JSON.stringify(body);
      const request = { id, operation, tenant: TENANT, target, body: text };
      this.#shard.receiveRequests({ requests: [request], aborted: [] });
    });
    if ('error' in reply) assert.fail(`${operation}: ${JSON.stringify(reply)}`);
    return JSON.parse(reply.body);
  }

  // -------------------------------------------------------------- the world outside

  #look(table: string, before: Row | undefined, after: Row | undefined): void {
    if (after === undefined) return;
    if (table === 'worker_tasks' && before === undefined) {
      this.#note('task', String(after.block_id), after.created_at);
      void this.#work(Number(after.attempt) < 2);
    }
    if (table === 'block_outputs' && after.output_ref === null && after.block_id !== 'rounds') {
      this.#note('output', String(after.block_id), after.created_at);
    }
    if (table === 'instances' && after.state === 'completed') {
      this.#note('state', 'completed', after.updated_at);
      this.#isOver = true;
    }
  }

  #note(what: string, name: string, at: unknown): void {
    this.seen.push([what, name, String(at)]);
  }

  async #work(isFailing: boolean): Promise<void> {
    const worker = { worker_id: 'worker', handler_name: 'supplier', wait_ms: 1_000 };
    const [task] = (await this.#ask('workers.poll', '', worker)) as Row[];
    const claim = { worker_id: 'worker', claim_epoch: task?.claim_epoch };
    const id = String(task?.id);
    if (isFailing) {
      await this.#ask('workers.fail', id, { ...claim, message: 'out of stock', retryable: true });
    } else await this.#ask('workers.complete', id, { ...claim, output: { order: 42 } });
  }

  readonly #call: EffectHandler = async (_params, { now }) => {
    this.#note('call', 'invoice', new Date(now()).toISOString());
    this.#calls += 1;
    return this.#calls === 1
      ? { kind: 'failure', retryable: true, message: 'try later' }
      : { kind: 'success', output: { status: 200 } };
  };
}

const silent = () => undefined;
const SILENT = { debug: silent, info: silent, warn: silent, error: silent };
