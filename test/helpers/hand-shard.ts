/**
 * One real shard whose ports, rows and turns are in the hands of the test: nothing happens until
 * `run`, units wait for `ack`, and rows are what the test says they are.
 */

import { setImmediate as nextTick } from 'node:timers/promises';
import type { ContinuityRows } from '../../actors/continuity/rows.js';
import type { PeerMessage, Reply } from '../../actors/runtime/protocol.js';
import { Versions } from '../../actors/runtime/versions.js';
import type { Loads } from '../../actors/shard/loads.js';
import { Shard } from '../../actors/shard/shard.js';
import { createLogger } from '../../src/base/log.js';
import type { Ack, UnitEnvelope } from '../../src/db/units.js';
import type { Json } from './api.js';
import { HandClock } from './hand-clock.js';
import { NO_PUSHES, NO_WEBHOOKS, SHARD_SETTINGS } from './shard-settings.js';
import { MUTATION_KINDS } from './store.js';
import { words } from './table.js';
import { readRow } from './unit-rows.js';

export const TENANT = 'tenant';
export const SEQUENCE = '0195ffff-0000-7000-8000-000000000001';

export class HandShard {
  readonly clock = new HandClock(1_700_000_000_000);
  readonly replies = new Map<number, Reply>();
  /** What was posted to the writer and has no outcome yet. */
  units: UnitEnvelope[] = [];
  /** Log lines at `error`. */
  readonly errors: Json[] = [];
  readonly versions = new Versions();
  readonly shard: Shard;
  readonly #turns: (() => void)[] = [];
  #requests = 0;

  /** @param rows what is found; everything else is empty */
  constructor(
    rows: Partial<Loads> = {},
    toFront: (replies: readonly Reply[]) => void = () => undefined,
  ) {
    this.shard = new Shard({
      settings: SHARD_SETTINGS,
      clock: this.clock,
      random: Math.random,
      log: createLogger('error', 'test', { write: (line) => this.errors.push(JSON.parse(line)) }),
      loader: new Proxy(rows, {
        get: (own, name) => own[name as keyof Loads] ?? EMPTY(name),
      }) as Loads,
      continuityRows: {} as ContinuityRows,
      handlers: new Map(),
      pushSender: NO_PUSHES,
      webhookSender: { ...NO_WEBHOOKS, send: () => new Promise(() => undefined) },
      setImmediate: (fn) => void this.#turns.push(fn),
      versions: this.versions,
      ports: {
        toFront: (replies) => {
          toFront(replies);
          for (const reply of replies) this.replies.set(reply.request, reply);
        },
        toWriter: (units) => void this.units.push(...units),
        toPeer: () => undefined,
        drainPeers: () => [],
      },
    });
  }

  get now(): number {
    return this.clock.ms;
  }

  async start(): Promise<void> {
    const started = this.shard.start();
    await this.run();
    await started;
    await this.run();
  }

  /** @returns the number of the request */
  ask(operation: string, target: string, body: Json = {}, tenant = TENANT): number {
    this.#requests += 1;
    const request = { id: this.#requests, operation, tenant, target, body: JSON.stringify(body) };
    this.shard.receiveRequests({ requests: [request], aborted: [] });
    return this.#requests;
  }

  /** Creates an instance of `SEQUENCE`. @returns the number of the request */
  create(more: Json = {}): number {
    const body = { sequence_id: SEQUENCE, tenant_id: TENANT, namespace: 'n', ...more };
    return this.ask('instances.create', '', body);
  }

  hint(...messages: PeerMessage[]): void {
    this.shard.receivePeer(messages);
  }

  /** Runs turns and what they read until nothing happens any more. */
  async run(): Promise<void> {
    for (let idle = 0; idle < 3; idle += 1) {
      await nextTick();
      for (const turn of this.#turns.splice(0)) {
        turn();
        idle = 0;
      }
    }
  }

  /** Puts the clock forward. */
  async pass(ms: number): Promise<void> {
    this.clock.jump(ms);
    await this.run();
  }

  /** Settles the units that were posted so far, as the outcome says. */
  async ack(
    outcomeOf: (unit: UnitEnvelope) => Ack = ({ seq }) => ({ seq, outcome: 'committed' }),
  ): Promise<void> {
    this.shard.receiveAcks(this.units.splice(0).map(outcomeOf));
    await this.run();
  }

  /** The status of an answer, or its code if it is an error. */
  answer(request: number): number | string | undefined {
    const reply = this.replies.get(request);
    if (reply === undefined) return undefined;
    return 'error' in reply ? reply.error.code : reply.status;
  }
}

/** What is found of sequences: the one that is asked for, with these blocks. */
export function sequenceOf(blocks: readonly Json[]): Pick<Loads, 'sequence'> {
  const definition = JSON.stringify({ blocks });
  const row = { tenant_id: TENANT, namespace: 'n', name: 's', version: 1, deprecated: false };
  return { sequence: async (id) => ({ id, ...row, definition }) };
}

/** What every statement finds that is not given. */
const EMPTY = (name: string | symbol) => {
  const isMap = MAPS.has(String(name));
  return async () => (isMap ? new Map() : ONES.has(String(name)) ? undefined : []);
};
const MAPS = new Set(['instances', 'outputs', 'taskOwners', 'schedules']);
const ONES = new Set(
  words(`
    rateLimit sequence release task webhook oldestAction oldestActivity oldestRetry oldestSteps oldestQueueMinutes
    oldestDelivery oldestEndedEvent storedEvent
  `),
);

/** The rows of one kind that a unit puts. */
export function rowsOf(units: readonly UnitEnvelope[], kind: string): Json[] {
  const rows: Json[] = [];
  for (const { mutations } of units) {
    for (let i = 0; i < mutations.length; i += 3) {
      if (MUTATION_KINDS[mutations[i] as number] !== kind) continue;
      rows.push(readRow(kind as string, mutations[i + 2] as string) as Json);
    }
  }
  return rows;
}
