/**
 * The writer makes every durable change. Units of the shards are spread over the lanes by actor and return
 * as outcomes. It drops units that must not be written: those behind a refused one of the same actor, and
 * those of a dead shard. Independent of threads.
 */

import type { LRUCache } from 'lru-cache';
import type pg from 'pg';
import type { Clock } from '../../src/base/clock.js';
import { lastUsed } from '../../src/base/quota/last-used.js';
import { within } from '../../src/base/real-clock.js';
import {
  type BatchLimits,
  type BatchUnit,
  committedAck,
  type InsertedIds,
  readUnit,
} from '../../src/db/batch.js';
import type { DbLog } from '../../src/db/pool.js';
import type { Store } from '../../src/db/store.js';
import { type DatabaseTrouble, troubleOf } from '../../src/db/trouble.js';
import { type Ack, BATCH_ACTOR, type UnitEnvelope } from '../../src/db/units.js';
import { WriterSession } from '../../src/db/writer-session.js';
import { CommitLedger } from '../../src/metrics/ledger.js';
import { Meter } from '../../src/metrics/meter.js';
import { Lane } from './lane.js';
import { cutAfter } from './link.js';

/** More than 1,000 rows are slower per row; a larger text keeps the thread busy. */
export const WRITER_LIMITS: BatchLimits = { rowsMax: 1_000, bytesMax: 4 * 1024 * 1024 };

export interface WriterOptions {
  readonly store: Store;
  readonly connect: () => pg.Client;
  readonly epoch: number;
  readonly clock: Clock;
  readonly log: DbLog;
  /** Used by the clients of `connect` only. */
  readonly applicationName: string;
  /** Connections, each with one transaction in flight; `lanes` has rows 0 … lanes - 1. */
  readonly lanes: number;
  /** The last lane takes only units of many instances, so that no others wait for them. */
  readonly isLastForBatches?: true;
  readonly limits?: BatchLimits;
  /** Counts of committed units per lane; absent: not counted. */
  readonly ledger?: CommitLedger;
  readonly meter?: Meter;
  /** Outcomes of one flush for one shard, each after all earlier ones of the same actor. */
  readonly onAcks: (shard: number, incarnation: number, acks: readonly Ack[]) => void;
  /** Called once: another owner has the database. No further unit is acknowledged. */
  readonly onFenced: () => void;
  /** Called when the reason changes why nothing can be written; undefined: writes are possible. */
  readonly onDatabase: (trouble: DatabaseTrouble | undefined) => void;
}

const STOP_MS_MAX = 1_000;
const STEP_MS_MAX = 5_000;
const START_RETRY_MS = 250;

/** Limits the remembered actors per shard: one is forgotten when its next incarnation sends a unit. */
const REFUSED_ACTORS_MAX = 10_000;

interface Source {
  readonly shard: number;
  readonly incarnation: number;
  isDead: boolean;
  readonly refusedActors: LRUCache<string, number>;
  acks: Ack[];
}

export type WriterUnit = BatchUnit<Source>;

export class Writer {
  readonly options: WriterOptions & Required<Pick<WriterOptions, 'limits' | 'ledger' | 'meter'>>;
  /** Of batches that are not settled, in all lanes: two transactions with the same key never overlap. */
  readonly gateKeys = new Set<string>();
  /** Lanes whose next unit has one of these keys, the longest waiting first. */
  readonly waiting = new Set<Lane>();
  readonly #lanes: readonly Lane[];
  readonly #batches: Lane | undefined;
  readonly #usualCount: number;
  readonly #sources = new Map<number, Source>();
  readonly #discarded = new Map<number, number>();
  readonly #outbox = new Set<Source>();
  readonly #troubles = new Map<number, DatabaseTrouble>();
  #reported: DatabaseTrouble | undefined;
  #state: 'running' | 'fenced' | 'stopped' = 'running';
  #backlogUnits = 0;
  #backlogBytes = 0;
  #drained: { resolve: () => void; reject: (error: Error) => void }[] = [];

  constructor(options: WriterOptions) {
    this.options = {
      ...options,
      limits: options.limits ?? WRITER_LIMITS,
      ledger: options.ledger ?? new CommitLedger(options.lanes),
      meter: options.meter ?? new Meter(),
    };
    this.#lanes = Array.from({ length: options.lanes }, (_, index) => new Lane(index, this));
    this.#batches = options.isLastForBatches ? this.#lanes.at(-1) : undefined;
    this.#usualCount = options.lanes - (this.#batches === undefined ? 0 : 1);
  }

  /**
   * Terminates the sessions of an earlier writer of this name, then connects, however long that takes.
   * Units may be submitted before.
   * @throws Error when fenced or stopped meanwhile
   */
  async start(): Promise<void> {
    while (this.#state === 'running' && !(await this.#evict())) {
      await new Promise<void>((resolve) => this.options.clock.setTimeout(resolve, START_RETRY_MS));
    }
    this.#expectRunning();
    await Promise.all(this.#lanes.map((lane) => lane.start()));
    this.#expectRunning();
  }

  /** The shards limit unacknowledged units. @throws Error on a unit that no actor may send */
  submit(shard: number, incarnation: number, units: readonly UnitEnvelope[]): void {
    const source = this.#sourceOf(shard, incarnation);
    if (source === undefined || this.#state !== 'running') return;
    for (const envelope of units) {
      const unit = readUnit(this.options.store.kinds, envelope, source);
      this.#backlogUnits += 1;
      this.#backlogBytes += unit.bytes;
      this.#laneOf(unit.actor).push(unit);
    }
    for (const lane of this.#lanes) lane.kick();
    this.#post();
  }

  /** When it resolves, nothing of this incarnation or an earlier one can be committed any more. */
  async discard(shard: number, incarnation: number): Promise<void> {
    const last = this.#discarded.get(shard);
    if (last === undefined || last < incarnation) this.#discarded.set(shard, incarnation);
    const source = this.#sources.get(shard);
    if (source !== undefined && source.incarnation <= incarnation) {
      source.isDead = true;
      source.refusedActors.clear();
      this.#sources.delete(shard);
    }
    for (const lane of this.#lanes) lane.prune();
    const isItsUnit = ({ source }: WriterUnit) =>
      source.shard === shard && source.incarnation <= incarnation;
    await Promise.all(this.#lanes.map((lane) => lane.settled(isItsUnit)));
  }

  /** Resolves when no unit is left. @throws Error when fenced or stopped meanwhile */
  async drain(): Promise<void> {
    this.#expectRunning();
    if (this.#backlogUnits === 0) return;
    await new Promise<void>((resolve, reject) => this.#drained.push({ resolve, reject }));
  }

  /** Waits shortly for flushes in flight, then closes everything; queued units are not written. */
  async stop(): Promise<void> {
    if (this.#state === 'running') {
      this.#end('stopped');
      const finished = Promise.all(this.#lanes.map((lane) => lane.finish()));
      await within(this.options.clock.monotonic() + STOP_MS_MAX, finished, this.options.clock);
    }
    await Promise.all(this.#lanes.map((lane) => lane.close()));
  }

  /** Whether the unit must not be sent. If so, it is answered or no longer counted. */
  drops(unit: WriterUnit): boolean {
    const { source, actor, incarnation } = unit;
    if (source.isDead) {
      this.#account(unit);
      return true;
    }
    const refused = source.refusedActors.get(actor);
    if (refused === undefined) return false;
    if (incarnation > refused) {
      source.refusedActors.delete(actor);
      return false;
    }
    this.#answer(unit, { seq: unit.seq, outcome: 'suffix' });
    return true;
  }

  committed(units: readonly WriterUnit[], inserted: InsertedIds | undefined): void {
    for (const unit of units) this.#answer(unit, committedAck(unit, inserted));
    this.settle();
  }

  /** The database refuses the data of this unit even when it is alone. */
  refused(unit: WriterUnit, sqlState: string, reason: string): void {
    const { actor, incarnation, seq } = unit;
    const { refusedActors, shard } = unit.source;
    this.options.log.warn({ shard, actor, seq, sqlState }, 'a unit was refused for its data');
    refusedActors.set(actor, incarnation);
    this.#answer(unit, { seq, outcome: 'refused', sqlState, reason });
    this.settle();
  }

  /** @param trouble undefined: the lane can write */
  troubled(lane: number, trouble: DatabaseTrouble | undefined): void {
    if (this.#state !== 'running') return;
    if (trouble === undefined) this.#troubles.delete(lane);
    else this.#troubles.set(lane, trouble);
    const [now] = this.#troubles.values();
    const before = this.#reported;
    if (now?.kind === before?.kind && now?.sqlState === before?.sqlState) return;
    this.#reported = now;
    if (now === undefined) this.options.log.info({}, 'the writer is connected');
    else {
      const { kind, sqlState, message } = now;
      this.options.log.warn({ lane, kind, sqlState, reason: message }, 'the writer cannot write');
    }
    this.options.onDatabase(now);
  }

  fenced(): void {
    if (this.#state !== 'running') return;
    this.#end('fenced');
    for (const lane of this.#lanes) void lane.close();
    this.options.onFenced();
  }

  /** Limits connecting, terminating a predecessor and reading a lane; closes the client on timeout. */
  within<T>(client: pg.Client, work: Promise<T>): Promise<T> {
    return cutAfter(this.options.clock, STEP_MS_MAX, client, work);
  }

  async #evict(): Promise<boolean> {
    const client = this.options.connect();
    try {
      const { statements } = this.options.store;
      const opening = WriterSession.open(client, statements, () => undefined);
      const session = await this.within(client, opening);
      try {
        // A fenced writer must not touch the connections of its successor.
        const lane = await this.within(client, session.readLane(0));
        if (lane?.epoch !== this.options.epoch) {
          const facts = { epoch: this.options.epoch, lane };
          this.options.log.error(facts, 'the lanes belong to another owner');
          this.fenced();
          return true;
        }
        // Repeats until none remains; a session that does not end within the limit fails the attempt.
        while (!(await this.within(client, session.terminateAll(this.options.applicationName))));
        return true;
      } finally {
        session.destroy();
      }
    } catch (error) {
      this.troubled(0, troubleOf(error));
      return false;
    }
  }

  /** Undefined for a discarded incarnation, whose last posts may arrive later. */
  #sourceOf(shard: number, incarnation: number): Source | undefined {
    const last = this.#discarded.get(shard);
    if (last !== undefined && incarnation <= last) return undefined;
    const source = this.#sources.get(shard);
    if (source?.incarnation === incarnation) return source;
    const made: Source = {
      shard,
      incarnation,
      isDead: false,
      refusedActors: lastUsed(REFUSED_ACTORS_MAX),
      acks: [],
    };
    this.#sources.set(shard, made);
    return made;
  }

  #laneOf(actor: string): Lane {
    if (this.#batches !== undefined && actor.startsWith(BATCH_ACTOR)) return this.#batches;
    const count = this.#usualCount;
    return this.#lanes[count === 1 ? 0 : hashOf(actor) % count]!;
  }

  #answer(unit: WriterUnit, ack: Ack): void {
    this.#account(unit);
    const { source } = unit;
    if (source.isDead) return;
    source.acks.push(ack);
    this.#outbox.add(source);
  }

  #account(unit: WriterUnit): void {
    this.#backlogUnits -= 1;
    this.#backlogBytes -= unit.bytes;
  }

  /** Called after units were answered or dropped. */
  settle(): void {
    this.#post();
    if (this.#backlogUnits > 0) return;
    for (const { resolve } of this.#drained.splice(0)) resolve();
  }

  #post(): void {
    this.options.meter.set('engine_writer_backlog_units', this.#backlogUnits);
    this.options.meter.set('engine_writer_backlog_bytes', this.#backlogBytes);
    for (const source of this.#outbox) {
      this.#outbox.delete(source);
      const { shard, incarnation, acks } = source;
      source.acks = [];
      if (!source.isDead) this.options.onAcks(shard, incarnation, acks);
    }
  }

  #end(state: 'fenced' | 'stopped'): void {
    this.#state = state;
    for (const { reject } of this.#drained.splice(0)) reject(new Error(`the writer is ${state}`));
  }

  #expectRunning(): void {
    if (this.#state !== 'running') throw new Error(`the writer is ${this.#state}`);
  }
}

/** FNV-1a over UTF-16 units. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}
