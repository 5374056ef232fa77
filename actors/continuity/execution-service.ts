/**
 * Serves the executions of one shard: owners and epochs, handoffs, migrations and provenance. Requests
 * about one execution run one after the other, each in three steps: read the rows, decide, commit one
 * unit. Each unit raises the version of the execution and fails on an older one, so that a unit that
 * outlives its shard does no harm. Instances are changed by orders (`instance/orders.ts`).
 */

import type { Execution, ProvenanceEntry } from '../../schema/continuity.js';
import {
  type HandoffState,
  mayMoveHandoff,
  type ProvenanceKind,
} from '../../schema/continuity-words.js';
import {
  conflict,
  DATABASE_AWAY,
  EngineError,
  fromErrorData,
  UNKNOWN_OUTCOME,
} from '../../src/base/errors.js';
import { routeOf, shardOf } from '../../src/base/ids.js';
import type { Logger } from '../../src/base/log.js';
import type { Offload } from '../../src/base/offload.js';
import { isoTime, type UnixMs } from '../../src/base/time.js';
import { canonicalSha256 } from '../../src/core/sealing/canonical-json.js';
import type { Keyring } from '../../src/core/sealing/keys.js';
import type { Plans } from '../catalog/plans.js';
import type { Order, OrderAnswer, OrderView } from '../instance/orders.js';
import type { ShardSettings } from '../runtime/kernel.js';
import type { PeerMessage } from '../runtime/protocol.js';
import { Service, type ServiceDeps } from '../runtime/service.js';
import { Turn } from '../runtime/turn.js';
import { handoffTerms } from './core/handoff.js';
import { nextProvenanceEntry } from './core/provenance.js';
import type { ContinuityRows, ExecutionRow, HandoffRow } from './rows.js';
import { EXECUTION, HANDOFF, LOCATION, PROVENANCE } from './tables.js';

export interface ExecutionServiceDeps extends ServiceDeps {
  readonly shard: number;
  readonly shards: number;
  readonly settings: Pick<ShardSettings, 'unpoliciedRetry' | 'maxContextBytes'>;
  readonly rows: ContinuityRows;
  readonly plans: Plans;
  readonly keyring: Keyring | undefined;
  readonly offload: Offload;
  readonly now: () => UnixMs;
  /** A new id with the routing bits of another one. */
  readonly newIdLike: (id: string) => string;
}

/** More than a service issues. */
const TICKETS_PER_MS = 1_000;

interface PendingOrder {
  readonly shard: number;
  readonly resolve: (view: OrderView) => void;
  readonly reject: (error: EngineError) => void;
}

export class ExecutionService {
  readonly settings: ExecutionServiceDeps['settings'];
  readonly rows: ContinuityRows;
  readonly plans: Plans;
  readonly keyring: Keyring | undefined;
  readonly log: Logger;
  readonly offload: Offload;
  readonly newIdLike: (id: string) => string;
  readonly #deps: ExecutionServiceDeps;
  readonly #service: Service;
  readonly #pending = new Map<number, PendingOrder>();
  /** Unlike those of an earlier service of this shard, whose answers may still arrive. */
  #tickets: number;

  constructor(deps: ExecutionServiceDeps) {
    this.#deps = deps;
    this.#service = new Service('continuity', deps);
    ({ settings: this.settings, rows: this.rows, plans: this.plans, log: this.log } = deps);
    ({ keyring: this.keyring, offload: this.offload, newIdLike: this.newIdLike } = deps);
    this.#tickets = Math.floor(deps.now()) * TICKETS_PER_MS;
  }

  get now(): UnixMs {
    return this.#deps.now();
  }

  /**
   * Rejects with the EngineError of `lineOf`, which finds the execution, or `work`; other errors
   * are defects, or the database is unavailable.
   */
  serve(
    request: number,
    status: number,
    lineOf: () => Promise<string>,
    work: () => Promise<object>,
  ): void {
    const served = this.#whenWriterKnown()
      .then(lineOf)
      .then((execution) => this.inLine(execution, work))
      .catch((error: unknown) => Promise.reject(this.#errorOf(error)));
    this.#service.reply(request, status, served);
  }

  /** Runs work without a request; a later request retries it if it fails. */
  runInBackground(line: string, work: () => Promise<void>): void {
    this.inLine(line, work).catch((error: unknown) => {
      const { code, message } = this.#errorOf(error);
      this.#deps.log.info({ execution: line, code, message }, 'an execution is put in order later');
    });
  }

  /** Runs after all earlier work on the execution. Rejects with 503 when the queue is full. */
  inLine<Result>(line: string, work: () => Promise<Result>): Promise<Result> {
    return this.#service.inLine(line, () => this.#whenWriterKnown().then(work));
  }

  /**
   * Rejects with 409 when the execution has changed since it was read, 503 when the outcome is
   * unknown. @param check runs in the turn that submits the unit; throws the refusal
   */
  commit(turn: Turn, check?: () => void): Promise<void> {
    return this.#service.commit(turn, check && { check });
  }

  /** Changes the current instance in one unit with `turn`. Rejects with 409 unless it meets `expect`. */
  order(
    execution: Pick<Execution, 'current_instance_id' | 'tenant_id'>,
    { expect, changes }: Pick<Order, 'expect' | 'changes'>,
    turn: Turn = new Turn(),
  ): Promise<OrderView> {
    this.#tickets += 1;
    const ticket = this.#tickets;
    const { current_instance_id: instance, tenant_id: tenant } = execution;
    const { shard: replyTo, shards, schedule, release } = this.#deps;
    const shard = shardOf(routeOf(instance), shards);
    this.#deps.commits.record?.(turn);
    const order: Order = { ticket, replyTo, tenant, expect, changes, mutations: turn.mutations };
    const text = JSON.stringify(order);
    const message: PeerMessage = { kind: 'continuity.order', instance, order: text };
    return new Promise((resolve, reject) => {
      this.#pending.set(ticket, { shard, resolve, reject });
      schedule(() => release([{ kind: 'peer', shard, message }]));
    });
  }

  answered(ticket: number, answer: OrderAnswer): void {
    const order = this.#pending.get(ticket);
    this.#pending.delete(ticket);
    if (answer.ok) order?.resolve(answer.view);
    else order?.reject(fromErrorData(answer.error));
  }

  /** The shard was replaced and its units are settled: rows show the outcome of its orders. */
  shardBack(shard: number): void {
    for (const [ticket, order] of this.#pending) {
      if (order.shard !== shard) continue;
      this.#pending.delete(ticket);
      order.reject(UNKNOWN_OUTCOME);
    }
  }

  #whenWriterKnown(): Promise<void> {
    return new Promise((resolve) => {
      this.#deps.schedule(() => this.#deps.whenWriterKnown(resolve));
    });
  }

  #errorOf(error: unknown): EngineError {
    if (error instanceof EngineError) return error;
    if (error instanceof Error && 'code' in error) {
      this.#deps.log.warn({ err: error }, 'rows of an execution could not be read');
      return DATABASE_AWAY;
    }
    return this.#service.errorOf(error);
  }
}

export interface NewEntry {
  readonly kind: ProvenanceKind;
  /** Below 500 characters, without data of the instance. */
  readonly summary?: string;
  /** Stored as its hash. */
  readonly evidence: object | { readonly sha256: string };
}

/** Without a version while it has no row. */
export type ExecutionBefore = Execution & Partial<Pick<ExecutionRow, 'version'>>;

type Changes = Partial<
  Pick<Execution, 'current_instance_id' | 'owner_runtime_id' | 'epoch' | 'state'>
>;

export function shownExecution({ version: _, ...execution }: ExecutionBefore): Execution {
  return execution;
}

/**
 * The unit of a change: the execution and its dependent rows, such as its location, the state of a
 * handoff, and a provenance entry. Commits nothing if the execution has changed since it was read.
 */
export class ExecutionUnit extends Turn {
  /** After the commit. */
  readonly execution: Execution;
  readonly #service: ExecutionService;
  readonly #before: ExecutionBefore;
  /** The last entry that this unit has added. */
  #head: { readonly entry_sha256: string; readonly seq: number } | undefined;

  constructor(service: ExecutionService, before: ExecutionBefore, changes?: Changes) {
    super();
    const updated_at = changes === undefined ? before.updated_at : isoTime(service.now);
    const row = { ...before, ...changes, updated_at };
    const { continuity_id, version } = row;
    if (version === undefined) this.put(EXECUTION.insert, continuity_id, row);
    else this.put(EXECUTION.update, continuity_id, { ...row, version });
    this.#service = service;
    this.#before = before;
    this.execution = shownExecution(row);
  }

  /** Creates an execution, with its first location and entry. */
  static begin(service: ExecutionService, before: Execution, changes?: Changes): ExecutionUnit {
    const unit = new ExecutionUnit(service, before, changes);
    unit.locate(null, before);
    const entry = { kind: 'execution_created', summary: 'execution created' } as const;
    unit.#enter(before, { ...entry, evidence: before });
    return unit;
  }

  get row(): ExecutionRow {
    return { ...this.execution, version: (this.#before.version ?? -1) + 1 };
  }

  locate(handoff_id: string | null, execution = this.execution): void {
    const { continuity_id, tenant_id, epoch, owner_runtime_id, current_instance_id } = execution;
    this.put(LOCATION.insert, `${continuity_id}:${epoch}`, {
      continuity_id,
      tenant_id,
      epoch,
      runtime_id: owner_runtime_id,
      instance_id: current_instance_id,
      handoff_id,
      entered_at: execution.updated_at,
    });
  }

  /** Chains are written in the line of their execution only, so the head is current. */
  async enter(entry: NewEntry): Promise<ProvenanceEntry> {
    const { continuity_id } = this.execution;
    this.#head ??= await this.#service.rows.one('provenanceHead', continuity_id);
    return this.#enter(this.execution, entry);
  }

  #enter(
    { continuity_id, tenant_id, epoch }: Execution,
    { kind, summary, evidence }: NewEntry,
  ): ProvenanceEntry {
    const { newIdLike, now, keyring } = this.#service;
    const previous = this.#head ?? null;
    const sha256 = (evidence as { sha256?: unknown }).sha256;
    const facts = {
      id: newIdLike(continuity_id),
      continuity_id,
      tenant_id,
      epoch,
      kind,
      ...(summary === undefined ? {} : { redacted_summary: summary }),
      payload_sha256: typeof sha256 === 'string' ? sha256 : canonicalSha256(evidence),
      created_at: isoTime(now),
    };
    const entry = nextProvenanceEntry(previous, facts, keyring?.signing);
    const seq = previous === null ? 0 : previous.seq + 1;
    this.put(PROVENANCE.insert, `${continuity_id}:${seq}`, { ...entry, seq });
    this.#head = { entry_sha256: entry.entry_sha256, seq };
    return entry;
  }

  putHandoff(row: HandoffRow): void {
    this.put(HANDOFF.set, row.id, { ...row, terms: handoffTerms(row) });
  }

  moveHandoff(
    before: HandoffRow,
    state: HandoffState,
    changes: Partial<Pick<HandoffRow, 'capsule_id' | 'capsule_expires_at' | 'failure_code'>> = {},
  ): HandoffRow {
    if (!mayMoveHandoff(before.state, state)) {
      throw conflict(`handoff ${before.id} is ${before.state} and cannot become ${state}`);
    }
    const version = before.version + 1;
    const updated_at = isoTime(this.#service.now);
    const after = { ...before, ...changes, state, version, updated_at };
    this.putHandoff(after);
    return after;
  }

  /** @param order for the instance, sent if the instance is in this database */
  async commit(order?: Pick<Order, 'expect' | 'changes'>): Promise<void> {
    const service = this.#service;
    const { current_instance_id } = this.#before;
    if (order !== undefined && (await service.rows.isHere(current_instance_id))) {
      await service.order(this.#before, order, this);
    } else await service.commit(this);
  }

  /** Commits and lifts the fence of the imported instance. */
  async commitImported(): Promise<void> {
    const expect = { states: ['paused'], fence: 'imported' } as const;
    const own = { kind: 'own', epoch: this.execution.epoch } as const;
    await this.#service.order(this.execution, { expect, changes: [own] }, this);
  }
}
