/** A writer in this thread with what tests ask of it, and rows to write. */

import type pg from 'pg';
import { STORE } from '../../actors/shard/store.js';
import { Writer, type WriterOptions } from '../../actors/writer/writer.js';
import { realClock } from '../../src/base/real-clock.js';
import type { UnitGate } from '../../src/core/unit.js';
import type { LeaseOptions } from '../../src/db/lease.js';
import { rowText } from '../../src/db/lines.js';
import { createClient, type DbLog } from '../../src/db/pool.js';
import type { DatabaseTrouble } from '../../src/db/trouble.js';
import type { Ack, UnitEnvelope } from '../../src/db/units.js';
import { MUTATION_KINDS, MUTATIONS } from './store.js';

/** One mutation of a test's unit. */
export type Put = readonly [kind: string, key: string, row: object];

export interface WriterHarness {
  readonly writer: Writer;
  /** Every acknowledgement of shard 0, in the order of arrival. */
  readonly acks: Ack[];
  readonly events: string[];
  /** What was wrong with the database, each time that this was told. */
  readonly troubles: DatabaseTrouble[];
  /** Submits a unit of shard 0 and resolves with what became of it. */
  put(actor: string, puts: readonly Put[], gate?: UnitGate, incarnation?: number): Promise<Ack>;
  /** Resolves when the event has happened, or has happened already. */
  event(name: string): Promise<void>;
  stop(): Promise<void>;
}

export interface HarnessOptions
  extends Partial<
    Pick<WriterOptions, 'lanes' | 'isLastForBatches' | 'limits' | 'epoch' | 'ledger' | 'meter'>
  > {
  readonly connectionString: string;
  readonly applicationName?: string;
}

/** Writers of one test file run beside each other and must not end each other's sessions. */
let names = 0;

const running = new Set<WriterHarness>();

/** Lanes 0 to 3 of epoch 1, which `harness` writes with unless told otherwise. */
export async function prepareLanes(client: pg.Client): Promise<void> {
  await client.query(
    `insert into lanes (lane, epoch) select lane, 1 from generate_series(0, 3) as lane
     on conflict (lane) do update set epoch = 1`,
  );
}

/** A started writer; `event` names are up, down, fenced. */
export async function harness(options: HarnessOptions): Promise<WriterHarness> {
  const made = createHarness(options);
  await made.writer.start();
  return made;
}

/** The same, not yet started. */
export function createHarness(options: HarnessOptions): WriterHarness {
  const acks: Ack[] = [];
  const events: string[] = [];
  const troubles: DatabaseTrouble[] = [];
  const ackWaiters = new Map<number, (ack: Ack) => void>();
  const eventWaiters: { readonly name: string; readonly resolve: () => void }[] = [];
  const applicationName = options.applicationName ?? `test writer ${process.pid} ${names++}`;
  let seq = 0;
  const happen = (name: string) => {
    events.push(name);
    for (const waiter of eventWaiters) if (waiter.name === name) waiter.resolve();
  };
  const writer = new Writer({
    store: STORE,
    connect: () =>
      createClient({
        connectionString: options.connectionString,
        applicationName,
        statementTimeoutMs: 0,
      }),
    applicationName,
    epoch: options.epoch ?? 1,
    lanes: options.lanes ?? 1,
    ...(options.isLastForBatches && { isLastForBatches: true }),
    ...(options.limits && { limits: options.limits }),
    ...(options.ledger && { ledger: options.ledger }),
    ...(options.meter && { meter: options.meter }),
    clock: realClock,
    log: silent,
    onAcks(shard, _incarnation, list) {
      if (shard !== 0) return;
      for (const ack of list) {
        acks.push(ack);
        ackWaiters.get(ack.seq)?.(ack);
      }
    },
    onFenced: () => happen('fenced'),
    onDatabase(trouble) {
      if (trouble !== undefined) troubles.push(trouble);
      happen(trouble === undefined ? 'up' : 'down');
    },
  });
  const made: WriterHarness = {
    writer,
    acks,
    events,
    troubles,
    put(actor, puts, gate = 'none', incarnation = 0) {
      seq += 1;
      const settled = new Promise<Ack>((resolve) => ackWaiters.set(seq, resolve));
      writer.submit(0, 0, [envelope(seq, actor, puts, gate, incarnation)]);
      return settled;
    },
    event(name) {
      if (events.includes(name)) return Promise.resolve();
      return new Promise((resolve) => eventWaiters.push({ name, resolve }));
    },
    stop: () => writer.stop(),
  };
  running.add(made);
  return made;
}

/** Stops every writer that a test has left running, also when it failed. */
export async function stopHarnesses(): Promise<void> {
  for (const one of running) await one.stop();
  running.clear();
}

export function envelope(
  seq: number,
  actor: string,
  puts: readonly Put[],
  gate: UnitGate = 'none',
  incarnation = 0,
): UnitEnvelope {
  const mutations = puts.flatMap(([kind, key, row]) => [
    MUTATION_KINDS.indexOf(kind),
    key,
    rowText(MUTATIONS[kind]!, row),
  ]);
  return { seq, actor, incarnation, gate, mutations };
}

/** With its code, when it is a refusal. */
export const outcomeOf = (ack: Ack): string[] =>
  ack.outcome === 'refused' ? [ack.outcome, ack.sqlState] : [ack.outcome];

/** The n-th id of a test; its text is as Postgres writes it. */
export const uuid = (n: number) => `01950000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`;

export const NOW = '2025-06-01T12:00:00.000Z';

export function sequencePut(n: number, name = `sequence ${n}`): Put {
  const id = uuid(n);
  const row = { id, tenant_id: 't', namespace: 'default', name, version: 1, created_at: NOW };
  return ['sequence.insert', id, { ...row, definition: { blocks: [] } }];
}

export function instancePut(n: number, columns: object = {}): Put {
  const id = uuid(n);
  const row = {
    ...{ id, sequence_id: uuid(0), tenant_id: 't', namespace: 'default', state: 'scheduled' },
    ...{ next_fire_at: NOW, priority: 5, timezone: 'UTC', metadata: {} },
    data: { n },
    ...{ config: {}, context_audit: [], runtime: {}, execution: {}, concurrency_key: null },
    ...{ max_concurrency: null, idempotency_key: null, parent_instance_id: null, signal_count: 0 },
    ...{ audit_count: 0, created_at: NOW, updated_at: NOW },
    ...columns,
  };
  return ['instance.insert', id, row];
}

export function instanceUpdate(n: number, state: string, signalCount = 0): Put {
  const id = uuid(n);
  const row = { id, state, next_fire_at: null, runtime: {}, execution: { done: true } };
  return [
    'instance.update',
    id,
    { ...row, signal_count: signalCount, audit_count: 1, updated_at: NOW },
  ];
}

export function outputPut(n: number, attempt: number, output: unknown = { ok: true }): Put {
  const row = {
    id: uuid(1_000_000 + n),
    ...{ instance_id: uuid(n), block_id: 'a', iteration: '', attempt, try: attempt, output },
    ...{ output_ref: null, output_size: 11, created_at: NOW },
  };
  return ['output.insert', row.id, row];
}

export function auditPut(n: number, seq: number): Put {
  const row = { instance_id: uuid(n), seq, tenant_id: 't', entries: [{ seq }], created_at: NOW };
  return ['audit.insert', `${uuid(n)}:${seq}`, row];
}

export function timerPut(n: number, recover = false): Put {
  return ['timer.set', uuid(n), { instance_id: uuid(n), fire_at: NOW, recover }];
}

/** A row whose text Postgres cannot store: 22P05. */
export function poisonPut(n: number): Put {
  const [kind, key, row] = auditPut(n, 9);
  return [kind, key, { ...row, tenant_id: 'no \u0000 in text' }];
}

const silent: DbLog = { info: () => {}, warn: () => {}, error: () => {} };

/** What a lease is asked for with, where a test says nothing else. */
export function leaseOptions(
  connectionString: string,
  owner: string,
  more: Partial<LeaseOptions> = {},
): LeaseOptions {
  return {
    ...{ connectionString, owner, applicationName: `${owner} writer`, laneCount: 2 },
    clock: realClock,
    log: silent,
    onStandby: () => undefined,
    signal: new AbortController().signal,
    ...more,
  };
}
