/**
 * Schedules in virtual time: a simulated cluster whose faults are drawn from a seed, or which fails
 * only where a test says so, and everything that is seen of its commits. At every commit it is
 * checked that a fire and the schedule's next fire time belong together.
 */

import assert from 'node:assert/strict';
import { EngineError } from '../../src/base/errors.js';
import { firedInstanceId } from '../../src/base/ids.js';
import type { ShardReply } from '../../src/http/shards.js';
import { createRandom } from '../chaos/random.js';
import { NO_PUSHES, NO_WEBHOOKS, SHARD_SETTINGS } from '../helpers/shard-settings.js';
import { Cluster } from './cluster.js';
import { Counts, type Fault, Faults } from './faults.js';
import { MemoryServer } from './memory-server.js';
import { type Change, MemoryTables, type Row } from './memory-tables.js';
import { World } from './world.js';

export const TENANT = 'north';
export const SEQUENCE = '00000000-0000-7000-8000-000000000001';

/** Longer than any fault lasts. */
const TRIES_MAX = 1_000;
/** Where faults keep every engine from starting for so long, they end: what is not served shows nothing. */
const FAULTY_TRIES_MAX = 500;

export interface CronWorldOptions {
  /** The virtual time at which it begins. */
  readonly start: string;
  readonly blocks?: readonly object[];
  /** Faults are drawn from it; without one there are none but those that are asked for. */
  readonly seed?: number;
  readonly cronTickMs?: number;
}

/** Never strikes but where it is armed, once each time. */
class ArmedFaults extends Faults {
  readonly armed = new Set<Fault>();

  constructor() {
    super({ ...createRandom(1), next: () => 0 }, new Counts());
  }

  override hits(fault: Fault): boolean {
    return this.armed.delete(fault);
  }

  override hitsWithin(): boolean {
    return false;
  }
}

export class CronWorld {
  readonly world: World;
  readonly tables = new MemoryTables();
  /** The instances that schedules created, as they were committed first. */
  readonly fired: Row[] = [];
  /** What to do at the next commit with a fire in it, at once. */
  atNextFire: (() => void) | undefined;
  readonly cluster: Cluster;
  readonly #options: CronWorldOptions;
  readonly #armed = new ArmedFaults();
  readonly #faults: Faults;
  readonly #server: MemoryServer;
  #isOver = false;

  constructor(options: CronWorldOptions) {
    this.#options = options;
    const { seed } = options;
    this.world = new World(seed ?? 1, { isInstant: seed === undefined });
    this.world.now = Date.parse(options.start);
    this.#faults =
      seed === undefined ? this.#armed : new Faults(createRandom(seed, 2), new Counts());
    this.#server = new MemoryServer({
      world: this.world,
      tables: this.tables,
      faults: this.#faults,
      onBroken: (text) => assert.fail(text),
      onCommit: (changes, name) => {
        this.#look(changes);
        this.cluster.committed(name);
      },
    });
    this.cluster = new Cluster({
      world: this.world,
      server: this.#server,
      faults: this.#faults,
      settings: {
        ...SHARD_SETTINGS,
        shards: 2,
        tickIntervalMs: 5_000,
        cronTickMs: options.cronTickMs ?? SHARD_SETTINGS.cronTickMs,
      },
      lanes: 2,
      handlersOf: () => new Map(),
      webhookSenderOf: () => NO_WEBHOOKS,
      pushSenderOf: () => NO_PUSHES,
      onDefect: (text) => assert.fail(text),
    });
  }

  /** Runs the scenario to its end, and the world with it. */
  async run(scenario: () => Promise<void>): Promise<void> {
    const story = this.#tell(scenario).finally(() => {
      this.#isOver = true;
    });
    story.catch(() => undefined);
    assert.equal(await this.world.run(() => this.#isOver), 'over');
    await story;
  }

  async #tell(scenario: () => Promise<void>): Promise<void> {
    await this.ask('sequences.create', '', {
      id: SEQUENCE,
      tenant_id: TENANT,
      namespace: 'n',
      name: 'scheduled',
      version: 1,
      blocks: this.#options.blocks ?? [{ type: 'step', id: 'a', handler: 'noop' }],
    });
    await scenario();
  }

  /** Resolves with the body of a success; asks again while there is no answer or a 503. */
  async ask(operation: string, target: string, body?: object): Promise<Row> {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const reply = await this.#send(operation, target, body);
      if ('status' in reply) return (reply.body === '' ? {} : JSON.parse(reply.body)) as Row;
      // What was asked before may have been done.
      const { status } = reply.error;
      if (status === 409 || (status === 404 && operation.endsWith('.delete'))) return {};
      assert.ok(status === 503 || status === 400, `${operation}: ${reply.error.message}`);
      if (tries === FAULTY_TRIES_MAX) this.endFaults();
      await this.world.sleep(200);
    }
    return assert.fail(`${operation} is not answered`);
  }

  #send(operation: string, target: string, body?: object): Promise<ShardReply> {
    const engine = this.cluster.pick();
    const away = new EngineError('ENG_STARTING', 'nobody serves');
    if (engine === undefined) return Promise.resolve({ error: away });
    const { client } = engine;
    const isCatalog = /^(?:catalog|sequences)\./.test(operation);
    return new Promise((resolve) => {
      engine.front.whenDead(() => resolve({ error: away }));
      try {
        const shard = target === '' || isCatalog ? 0 : client.shardOf(target);
        const text = body === undefined ? '' : JSON.stringify(body);
        client.send(shard, { operation, tenant: TENANT, target, body: text }, resolve);
      } catch (error) {
        resolve({ error: error as EngineError });
      }
    });
  }

  /** Resolves with the schedule's id. */
  async schedule(cron_expr: string, more: object = {}): Promise<string> {
    const place = { tenant_id: TENANT, namespace: 'n', sequence_id: SEQUENCE };
    return String((await this.ask('cron.create', '', { ...place, cron_expr, ...more })).id);
  }

  /** The committed row. */
  row(id: string): Row | undefined {
    return this.tables.row('cron_schedules', id);
  }

  /** When the schedule's instances were created, as `HH:MM:SS`, with milliseconds if there are any. */
  times(id: string): string[] {
    return this.fired
      .filter((row) => row.cron_schedule_id === id)
      .map((row) => String(row.created_at).slice(11, -1).replace('.000', ''));
  }

  /** The states of the schedule's instances, oldest first. */
  states(id: string): string[] {
    return this.fired
      .filter((row) => row.cron_schedule_id === id)
      .map((row) => String(this.tables.row('instances', String(row.id))?.state));
  }

  async until(time: string): Promise<void> {
    await this.world.sleep(Date.parse(time) - this.world.now);
  }

  arm(fault: Fault): void {
    this.#armed.armed.add(fault);
  }

  awayFor(ms: number): void {
    this.#server.goAway(ms);
  }

  endFaults(): void {
    this.#faults.isOver = true;
  }

  /** The schedule's other runs that have not ended. */
  #unended(id: string, run: string): string[] {
    return [...this.tables.rows('instances')]
      .filter(([key, row]) => key !== run && row.cron_schedule_id === id)
      .filter(([, row]) =>
        ['scheduled', 'running', 'waiting', 'paused'].includes(String(row.state)),
      )
      .map(([key]) => key);
  }

  /** A fire is committed with the next fire time, which is later, and under the id of its time. */
  #look(changes: readonly Change[]): void {
    for (const { table, before, after } of changes) {
      if (table !== 'instances' || before !== undefined || after?.cron_schedule_id == null)
        continue;
      const id = String(after.cron_schedule_id);
      const at = Date.parse(String(after.idempotency_key).slice(`cron:${id}:`.length));
      assert.equal(after.id, firedInstanceId(id, at));
      assert.ok(at <= Date.parse(String(after.created_at)), 'a fire came early');
      const schedule = changes.find(
        (change) => change.table === 'cron_schedules' && change.key === id,
      );
      assert.equal(schedule?.before?.next_fire_at, new Date(at).toISOString());
      assert.ok(String(schedule?.after?.next_fire_at) > String(after.created_at));
      if (
        schedule?.after?.overlap_policy === 'skip' ||
        schedule?.after?.overlap_policy === 'buffer_one'
      ) {
        assert.deepEqual(this.#unended(id, String(after.id)), []);
      }
      this.fired.push(after);
      const then = this.atNextFire;
      this.atNextFire = undefined;
      then?.();
    }
  }
}
