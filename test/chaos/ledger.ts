/**
 * The ledger of a chaos run: what clients asked for, and what the server promised by answering 2xx.
 * A request is entered as `unknown` before it is sent; the answer makes it `acknowledged` or
 * `refused`, and without a conclusive answer it stays unknown: it may have happened or not. What two
 * answers alone prove wrong is noted at once, the rest is for `invariants.ts` to find in the rows.
 */

import type { InstanceCreated, InstanceResult } from '../../schema/instance.js';
import type { SignalAnswer } from '../../schema/signal.js';
import { type InstanceState, isEnded, isTerminal } from '../../schema/states.js';
import { entryOf } from '../helpers/entry.js';
import type { ShapeName } from './shapes.js';

/** What became of a request, as far as its sender knows. */
export type Op = { certainty: 'unknown' | 'acknowledged' | 'refused' };

export interface Creation extends Op {
  /** Unique; stored in the instance's metadata. */
  readonly token: string;
  readonly shape: ShapeName;
  readonly key: string | undefined;
  /** Nothing was created: the instance that the answer named instead. */
  skippedFor?: string;
  /** It was collected: the instance that starts from it. Not if it only repeated the key of another one. */
  collectedIn?: string;
}

export interface Batch extends Op {
  readonly tokens: readonly string[];
}

/** A number that replaces the one before it, by PATCH context or by the signal update_context. */
export interface Write extends Op {
  readonly number: number;
}

export interface Signal extends Op {
  readonly type: string;
  /** In its payload, of those that are sent to a step. */
  readonly number: number | undefined;
  id?: string;
  /** Of a sender who waited until a step took it. */
  answer?: SignalAnswer;
}

/** One to the trigger of the run, about an instance: sent again with the same id, as providers do it. */
export interface Delivery {
  readonly id: string;
  readonly attempts: Op[];
  /** Of the event that answers named. */
  eventId?: string;
  freshReplies: number;
}

export type ControlKind =
  | 'pause'
  | 'resume'
  | 'cancel'
  | 'withdraw'
  | `patch.${'paused' | 'scheduled' | 'cancelled'}`;

export interface Control extends Op {
  readonly kind: ControlKind;
}

/** Signals, writes and controls are in the order of sending: an instance has one client that sends. */
export interface InstanceRecord {
  readonly id: string;
  readonly shape: ShapeName;
  readonly key: string | undefined;
  /** Of the creation that made it, when a reply said so. */
  token: string | undefined;
  readonly patches: Write[];
  readonly notes: Write[];
  readonly signals: Signal[];
  readonly controls: Control[];
  readonly deliveries: Delivery[];
  /** What creations that waited for the end were answered. */
  readonly results: InstanceResult[];
  /** What GET showed when the instance had ended. */
  terminal?: { readonly state: InstanceState; readonly body: Record<string, unknown> };
}

export interface TaskEnd extends Op {
  readonly kind: 'complete' | 'fail';
  readonly epoch: number;
  readonly isRetryable: boolean;
  /** Stands in the output; a failure has none. */
  readonly mark?: string;
  /** When it was sent, by the clock of the run. */
  readonly at: number;
}

/** The part of a claimed task that the ledger keeps. */
export interface ClaimedTask {
  readonly id: string;
  readonly instance_id: string;
  readonly block_id: string;
  readonly attempt: number;
  readonly claim_epoch: number;
}

export interface TaskRecord {
  readonly id: string;
  readonly instanceId: string;
  readonly blockId: string;
  readonly attempt: number;
  /** The epochs at which polls returned it, or deliveries brought it, and when by the clock of the run. */
  readonly epochs: Map<number, number>;
  readonly ends: TaskEnd[];
  /** The highest number that a heartbeat's reply gave. */
  checkpointSeq: number;
}

type KeyEntry = { id: string; freshReplies: number };

/** More than this is no longer read by anybody. */
const VIOLATIONS_MAX = 200;

/** All requests of one run. Every method that enters a request returns it, still unknown. */
export class Ledger {
  /** Every creation that was sent, by its token; also the items of batches. */
  readonly creations = new Map<string, Creation>();
  readonly batches: Batch[] = [];
  readonly instances = new Map<string, InstanceRecord>();
  /** Idempotency keys that were answered at least once, and the id that they stand for. */
  readonly keys = new Map<string, KeyEntry>();
  /** Every task that a poll returned. */
  readonly tasks = new Map<string, TaskRecord>();
  /** What replies alone prove wrong. */
  readonly violations: string[] = [];
  /** Requests by what became of them. */
  readonly counts = { acknowledged: 0, unknown: 0, refused: 0 };
  /** About how many instances wait for a worker: made and not yet claimed. */
  openWork = 0;

  complain(violation: string): void {
    const isFull = this.violations.length >= VIOLATIONS_MAX;
    if (!isFull && !this.violations.includes(violation)) this.violations.push(violation);
  }

  settle(op: Op, certainty: Op['certainty']): void {
    this.counts[op.certainty] -= 1;
    op.certainty = certainty;
    this.counts[certainty] += 1;
  }

  create(token: string, shape: ShapeName, key?: string): Creation {
    const creation: Creation = this.#enter({ token, shape, key, certainty: 'unknown' });
    this.creations.set(token, creation);
    return creation;
  }

  /** An acknowledged creation; returns the record of the instance that the reply named. */
  created(creation: Creation, reply: InstanceCreated): InstanceRecord {
    const { key, shape, token } = creation;
    const { id, deduplicated } = reply;
    const known = this.instances.get(id);
    if (known !== undefined && (key === undefined || known.key !== key)) {
      this.complain(`instance ${id} was the answer to two different creations`);
    }
    if (key === undefined && deduplicated) this.complain(`${id} was deduplicated without a key`);
    if (key !== undefined) this.#enterKey(key, id, deduplicated);
    const record = known ?? newRecord(id, shape, key);
    if (!deduplicated) record.token = token;
    this.instances.set(id, record);
    return record;
  }

  /** The answer was that all slots were taken. */
  skipped(creation: Creation, { id }: InstanceCreated): void {
    creation.skippedFor = id;
  }

  /** The answer was that it starts later, with others. */
  collected(creation: Creation, { id, deduplicated }: InstanceCreated): void {
    if (creation.key !== undefined) this.#enterKey(creation.key, id, deduplicated);
    else if (deduplicated) this.complain(`${id} was deduplicated without a key`);
    if (!deduplicated) creation.collectedIn = id;
  }

  /** The answer of a creation that waited for the end. */
  resulted(record: InstanceRecord, result: InstanceResult): void {
    const { state } = result;
    if (state === undefined || !isEnded(state)) {
      this.complain(`the result of instance ${record.id} was answered while it was ${state}`);
    }
    record.results.push(result);
  }

  createBatch(tokens: readonly string[], shape: ShapeName): Batch {
    for (const token of tokens) {
      this.creations.set(token, { token, shape, key: undefined, certainty: 'unknown' });
    }
    return this.#enter({ tokens, certainty: 'unknown' }, this.batches);
  }

  patch(record: InstanceRecord, number: number): Write {
    return this.#enter({ number, certainty: 'unknown' }, record.patches);
  }

  note(record: InstanceRecord, number: number): Write {
    return this.#enter({ number, certainty: 'unknown' }, record.notes);
  }

  signal(record: InstanceRecord, type: string, number?: number): Signal {
    return this.#enter({ type, number, certainty: 'unknown' }, record.signals);
  }

  deliver(record: InstanceRecord, id: string): Delivery {
    const delivery = { id, attempts: [], freshReplies: 0 };
    record.deliveries.push(delivery);
    return delivery;
  }

  attempt({ attempts }: Delivery): Op {
    return this.#enter({ certainty: 'unknown' }, attempts);
  }

  /** An acknowledged attempt: all of them are the same event, and one of them published it. */
  delivered(delivery: Delivery, eventId: string, isFresh: boolean): void {
    const { id, eventId: known = eventId } = delivery;
    if (known !== eventId) this.complain(`delivery ${id} published ${known} and ${eventId}`);
    delivery.eventId = eventId;
    if (isFresh) delivery.freshReplies += 1;
    if (delivery.freshReplies > 1) this.complain(`delivery ${id} was twice answered as new`);
  }

  control(record: InstanceRecord, kind: ControlKind): Control {
    return this.#enter({ kind, certainty: 'unknown' }, record.controls);
  }

  /** Enters what GET showed; the first sight of a terminal state is what later ones must equal. */
  seen(record: InstanceRecord, state: InstanceState, body: Record<string, unknown>): void {
    if (record.terminal !== undefined) {
      const change = terminalChange(record, state, body);
      if (change !== undefined) this.complain(change);
    } else if (isTerminal(state)) {
      record.terminal = { state, body };
    }
  }

  /** By the answer of a poll, or by a delivery. */
  claimed(task: ClaimedTask): void {
    const record = this.tasks.get(task.id) ?? newTask(task);
    this.tasks.set(task.id, record);
    if (record.epochs.has(task.claim_epoch)) {
      this.complain(`task ${task.id} was claimed twice at epoch ${task.claim_epoch}`);
    }
    record.epochs.set(task.claim_epoch, performance.now());
    this.openWork = Math.max(0, this.openWork - 1);
  }

  /** @param taskId of a task that was claimed */
  end(taskId: string, end: Omit<TaskEnd, 'certainty' | 'at'>): TaskEnd {
    const entered = { ...end, certainty: 'unknown', at: performance.now() } as const;
    return this.#enter<TaskEnd>(entered, this.tasks.get(taskId)!.ends);
  }

  /** The response to a delivery, which is never acknowledged, and not a request of the run. */
  responded(taskId: string, end: Omit<TaskEnd, 'certainty' | 'at'>): void {
    const entered = { ...end, certainty: 'unknown', at: performance.now() } as const;
    this.tasks.get(taskId)!.ends.push(entered);
  }

  /** An acknowledged end, after which no other one of the same task may be accepted. */
  ended(taskId: string, end: TaskEnd): void {
    this.settle(end, 'acknowledged');
    const accepted = this.tasks.get(taskId)!.ends.filter(isAcknowledged);
    if (accepted.length > 1) {
      const list = accepted.map(({ kind, epoch }) => `${kind} at epoch ${epoch}`).join(', ');
      this.complain(`task ${taskId} ended more than once: ${list}`);
    }
  }

  checkpointed(taskId: string, seq: number): void {
    const task = this.tasks.get(taskId)!;
    task.checkpointSeq = Math.max(task.checkpointSeq, seq);
  }

  #enter<T extends Op>(op: T, list?: T[]): T {
    this.counts.unknown += 1;
    list?.push(op);
    return op;
  }

  #enterKey(key: string, id: string, deduplicated: boolean): void {
    const entry = entryOf(this.keys, key, () => ({ id, freshReplies: 0 }));
    if (entry.id !== id) this.complain(`key ${key} was answered with ${entry.id} and with ${id}`);
    if (!deduplicated) entry.freshReplies += 1;
    if (entry.freshReplies > 1) this.complain(`key ${key} was twice answered as new`);
  }
}

/** What its events, payments and withdrawals name. */
export const orderOf = ({ key, token }: Pick<InstanceRecord, 'key' | 'token'>): string =>
  key ?? (token as string);

export const isAcknowledged = (op: Op): boolean => op.certainty === 'acknowledged';
/** It happened, or may have happened. */
export const isPossible = (op: Op): boolean => op.certainty !== 'refused';

/** How a terminal instance differs from what GET showed before; undefined when it does not. */
export function terminalChange(
  record: InstanceRecord,
  state: InstanceState,
  body: Record<string, unknown>,
): string | undefined {
  const before = record.terminal;
  if (before === undefined) return undefined;
  if (before.state !== state) {
    return `instance ${record.id} was ${before.state} for good and became ${state}`;
  }
  // The context of a terminal instance may still be written, and only by PATCH.
  const isWritable = record.patches.some(isPossible);
  const shown = comparable(before.body, isWritable);
  const now = comparable(body, isWritable);
  if (shown === now) return undefined;
  return `terminal instance ${record.id} changed from ${shown} to ${now}`;
}

/** Which numbers a value may have, when each write replaces the one before it. */
export function allowedNumbers(writes: readonly Write[]): ReadonlySet<number | null> {
  let allowed = new Set<number | null>([null]);
  for (const { number, certainty } of writes) {
    if (certainty === 'acknowledged') allowed = new Set([number]);
    else if (certainty === 'unknown') allowed.add(number);
  }
  return allowed;
}

function newRecord(id: string, shape: ShapeName, key: string | undefined): InstanceRecord {
  const sent = { patches: [], notes: [], signals: [], controls: [], deliveries: [] };
  return { id, shape, key, token: undefined, ...sent, results: [] };
}

function newTask(task: ClaimedTask): TaskRecord {
  return {
    id: task.id,
    instanceId: task.instance_id,
    blockId: task.block_id,
    attempt: task.attempt,
    epochs: new Map(),
    ends: [],
    checkpointSeq: 0,
  };
}

function comparable(body: Record<string, unknown>, isWritable: boolean): string {
  if (!isWritable) return JSON.stringify(body);
  const { context: _context, updated_at: _updatedAt, ...rest } = body;
  return JSON.stringify(rest);
}
