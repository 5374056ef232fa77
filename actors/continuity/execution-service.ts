/**
 * The executions of one shard: their owners and epochs, handoffs, migrations and provenance. Requests
 * about one execution run one after the other, each in three steps: read the rows, decide, commit one
 * unit; nothing is kept between requests. A change of an instance is an order to it
 * (`instance/orders.ts`). Each unit raises the execution's version and commits nothing if it was
 * decided on an older one, so a unit that outlives its shard does no harm.
 */

import type { Execution } from '../../schema/continuity.js';
import {
  DATABASE_AWAY,
  EngineError,
  fromErrorData,
  UNKNOWN_OUTCOME,
} from '../../src/base/errors.js';
import { routeOf, shardOf } from '../../src/base/ids.js';
import type { Logger } from '../../src/base/log.js';
import type { Offload } from '../../src/base/offload.js';
import type { UnixMs } from '../../src/base/time.js';
import type { Keyring } from '../../src/core/sealing/keys.js';
import type { Plans } from '../catalog/plans.js';
import type { Order, OrderAnswer, OrderView } from '../instance/orders.js';
import type { ShardSettings } from '../runtime/kernel.js';
import type { PeerMessage } from '../runtime/protocol.js';
import { Service, type ServiceDeps } from '../runtime/service.js';
import { Turn } from '../runtime/turn.js';
import type { ContinuityRows } from './rows.js';

export interface ExecutionServiceDeps extends ServiceDeps {
  readonly shard: number;
  readonly shards: number;
  readonly settings: Pick<ShardSettings, 'unpoliciedRetry' | 'maxContextBytes'>;
  readonly rows: ContinuityRows;
  readonly plans: Plans;
  /** Undefined without an encryption key. */
  readonly keyring: Keyring | undefined;
  readonly offload: Offload;
  readonly now: () => UnixMs;
  /** A new id with the routing bits of another one. */
  readonly newIdLike: (id: string) => string;
}

/** More orders than a service gives. */
const TICKETS_PER_MS = 1_000;

interface PendingOrder {
  /** The shard of the instance. */
  readonly shard: number;
  readonly resolve: (view: OrderView) => void;
  readonly reject: (error: EngineError) => void;
}

type Ordered = Pick<Execution, 'current_instance_id' | 'tenant_id'>;

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
  /** Never one of a previous service of this shard: its answers may still arrive. */
  #tickets: number;

  constructor(deps: ExecutionServiceDeps) {
    this.#deps = deps;
    this.#service = new Service('continuity', deps);
    this.settings = deps.settings;
    this.rows = deps.rows;
    this.plans = deps.plans;
    this.keyring = deps.keyring;
    this.log = deps.log;
    this.offload = deps.offload;
    this.newIdLike = deps.newIdLike;
    this.#tickets = Math.floor(deps.now()) * TICKETS_PER_MS;
  }

  get now(): UnixMs {
    return this.#deps.now();
  }

  /**
   * @param lineOf finds the id of the execution, once rows are current; rejects like `work`
   * @param work rejects with the EngineError to return; anything else is a defect, or the database
   *   is unavailable
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

  /** Runs work that no request waits for, and that is retried by a later request if it fails. */
  runInBackground(line: string, work: () => Promise<void>): void {
    this.inLine(line, work).catch((error: unknown) => {
      const { code, message } = this.#errorOf(error);
      this.#deps.log.info({ execution: line, code, message }, 'an execution is put in order later');
    });
  }

  /**
   * Starts the work when all earlier work on the same execution has ended. Rejects with 503 when the
   * queue is full.
   */
  inLine<Result>(line: string, work: () => Promise<Result>): Promise<Result> {
    return this.#service.inLine(line, () => this.#whenWriterKnown().then(work));
  }

  /**
   * Rejects with 409 when the execution has changed since it was read, 503 when the outcome is unknown.
   *
   * @param check runs in the turn in which the unit is submitted; throws the refusal
   */
  commit(turn: Turn, check?: () => void): Promise<void> {
    return this.#service.commit(turn, check && { check });
  }

  /**
   * Changes the current instance of an execution, in one unit with the mutations in `turn`.
   *
   * @param expect rejects with 409 unless the instance meets it
   */
  order(
    { current_instance_id: instance, tenant_id: tenant }: Ordered,
    { expect, changes }: Pick<Order, 'expect' | 'changes'>,
    turn: Turn = new Turn(),
  ): Promise<OrderView> {
    this.#tickets += 1;
    const ticket = this.#tickets;
    const { shard: replyTo, shards, schedule, release } = this.#deps;
    const shard = shardOf(routeOf(instance), shards);
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

  /** The shard was replaced and its units are settled: the rows have the outcome of its orders. */
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
