/**
 * The result of one message to an actor: mutations that are committed together, and effects that are
 * released after the commit. An actor fills a Turn and performs nothing itself.
 */

import type { SignalAnswer } from '../../schema/signal.js';
import type { EngineError } from '../../src/base/errors.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import type { UnixMs } from '../../src/base/time.js';
import type { ChildStart, EndedBlock, StepTry } from '../../src/core/progress.js';
import type { UnitGate } from '../../src/core/unit.js';
import type { WebhookRow } from '../../src/core/webhook.js';
import { rowText } from '../../src/db/lines.js';
import type { Mutation } from '../../src/db/mutation.js';
import { COUNTER_INDEX, COUNTER_NAMES, type CounterName } from '../../src/metrics/catalog.js';
import type { UnitCounts } from '../../src/metrics/ledger.js';
import type { FamilyMessage, NamedSecrets, OneOf, PeerMessage, SuccessReply } from './protocol.js';
import type { SequenceName } from './sequence-name.js';

/** A step that runs in the process; its outcome returns as a message. */
export interface InProcessStep {
  readonly node: number;
  readonly iteration: string;
  readonly attempt: number;
  /** Tenants share the slots for calls. */
  readonly tenant: string;
  readonly handler: string;
  readonly params: JsonValue;
  /** The same for every repetition of this attempt. */
  readonly idempotencyKey: string;
  /** The `timeout` of the step; absent: none. */
  readonly timeoutMs?: number;
  /** Absent: the limit of the server. */
  readonly maxMs?: number;
  readonly traceparent?: string | undefined;
  readonly secrets?: NamedSecrets | undefined;
}

/** `skipped`: not applicable. `failed`: the database refused it, was unavailable, or may have done it. */
export type ChangeResult = 'applied' | 'skipped' | 'failed';

/** `unused`: not committed. `unknown`: the rows have the outcome. */
export type SlotOutcome = 'taken' | 'unused' | 'unknown';

/** By kind. One room performs each kind, when the unit is committed. */
interface Effects {
  reply: SuccessReply;
  error: { request: number; error: EngineError };
  peer: { shard: number; message: PeerMessage };
  perform: { instance: string; step: InProcessStep };
  abort: { instance: string; step: Omit<StepTry, 'attempt'> };
  timer: { instance: string; at: UnixMs; rank: number };
  reap: { instance: string; task: string; at: UnixMs };
  continue: { instance: string; rank: number };
  changed: {
    group: number;
    instance: string;
    result: ChangeResult | 'suspended';
    error?: string | undefined;
  };
  /** The unit that took a slot for a new instance is settled. */
  'slot.settled': { key: string; instance: string; outcome: SlotOutcome };
  audited: { tenant: string };
  webhook: { row: WebhookRow };
  log: { instance: string; blockId: string; level: 'debug' | 'info' | 'warn' };
  /** The child's sequence has to be read before the child can be created. */
  'child.find': {
    instance: string;
    start: ChildStart;
    name: SequenceName;
    /** It could not be created before. */
    isLater: boolean;
  };
  /** Checks whether a child has ended. */
  'child.look': { instance: string; child: string; step: StepTry };
  'family.undelivered': { message: FamilyMessage };
  /** The instance has carried out the order of an event to cancel it, or cannot. */
  'event.cancelled': { instance: string; event: string };
  'release.ended': { release: string };
  completed: { sequence: string };
  /** For statistics over time; `durationMs` of an instance that was not cancelled. */
  counted: {
    tenant: string;
    change: 'created' | 'completed' | 'failed' | 'cancelled';
    durationMs?: number;
  };
  /** For statistics of queues. `waitedMs`: of a task that was taken, since it was created; else 0. */
  tasked: {
    tenant: string;
    handler: string;
    queue: string;
    change: TaskChange;
    waitedMs: number;
  };
  /** For statistics of blocks. */
  ended: { tenant: string; sequence: string; blocks: readonly EndedBlock[] };
  /** The instance has become a dead letter. */
  failed: {
    instance: string;
    tenant: string;
    sequence: string;
    blockId: string | undefined;
    cause: string;
  };
  count: { counter: CounterName; by: number };
  /** A step has taken or refused a signal, whose sender may wait for that. */
  'signal.taken': {
    instance: string;
    seq: number;
    answer: Omit<SignalAnswer, 'signal_id'>;
  };
}

/**
 * A task came to its queue, also a second time; was taken from it by a worker, or withdrawn before that; ended, having
 * been taken.
 */
export type TaskChange = 'arrived' | 'taken' | 'withdrawn' | 'ended';

export type Effect = OneOf<Effects>;

export interface LoggedLine {
  readonly block_id: string;
  /** RFC 3339 in UTC with milliseconds, which sorts by time. */
  readonly ts: string;
  readonly level: string;
  readonly message: string;
}

const NO_COUNTS: UnitCounts = [];

export class Turn {
  /** As `UnitCounts`, with one entry for each counter. */
  #counts: number[] | undefined;
  /** Flat: index of the kind, key, row, … */
  readonly mutations: (string | number)[] = [];
  readonly effects: Effect[] = [];
  /** Lines logged by steps, stored as one row. */
  lines: LoggedLine[] | undefined;
  gate: UnitGate = 'none';
  /** The tenant whose rows change. Undefined: rows of many tenants or of the cell, or the host sets it. */
  tenant: string | undefined;
  /** The request whose effect the unit is. Absent: that of its reply, if it has one. */
  request: number | undefined;
  /** What the action of the request shows besides members of the request. */
  actionDetails: JsonObject | undefined;
  /** The step whose data the unit stores, and which fails if the database refuses the data. */
  origin: StepTry | undefined;

  constructor(tenant?: string, request?: number) {
    this.tenant = tenant;
    this.request = request;
  }

  /** @param row its columns, or their text (`db/lines.ts`) */
  put<Row extends object>(mutation: Mutation<Row>, key: string, row: NoInfer<Row> | string): void {
    if (mutation.place < 0) throw new Error(`${mutation.kind} is in no store`);
    const text = typeof row === 'string' ? row : rowText(mutation, row);
    this.mutations.push(mutation.place, key, text);
  }

  join(other: Turn): void {
    for (const part of other.mutations) this.mutations.push(part);
    for (const effect of other.effects) this.effects.push(effect);
    const counts = other.takeCounts();
    for (let i = 0; i < counts.length; i += 2) this.#add(counts[i]!, counts[i + 1]!);
  }

  addLine(line: LoggedLine): void {
    this.lines ??= [];
    this.lines.push(line);
  }

  reply(request: number, status: number, body: string): void {
    this.effects.push({ kind: 'reply', request, status, body });
  }

  fail(request: number, error: EngineError): void {
    this.effects.push({ kind: 'error', request, error });
  }

  /** Counted when the turn is committed; without a unit, when its effects are released. */
  count(counter: CounterName, by = 1): void {
    if (by > 0) this.#add(COUNTER_INDEX[counter], by);
  }

  /** Counts are posted with their unit (docs/decisions/0038-counters-logs-and-traces.md). */
  takeCounts(): UnitCounts {
    const counts = this.#counts ?? NO_COUNTS;
    this.#counts = undefined;
    return counts;
  }

  /** The effects of a turn without a unit, including its counts. */
  effectsAlone(): Effect[] {
    const counts = this.takeCounts();
    for (let i = 0; i < counts.length; i += 2) {
      const counter = COUNTER_NAMES[counts[i]!]!;
      this.effects.push({ kind: 'count', counter, by: counts[i + 1]! });
    }
    return this.effects;
  }

  /** Merged: a unit of many instances counts the same for each of them. */
  #add(counter: number, by: number): void {
    this.#counts ??= [];
    const counts = this.#counts;
    for (let i = 0; i < counts.length; i += 2) {
      if (counts[i] !== counter) continue;
      counts[i + 1]! += by;
      return;
    }
    counts.push(counter, by);
  }
}
