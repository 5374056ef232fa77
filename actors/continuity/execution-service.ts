/**
 * The executions of one shard: the service owns what hangs on those whose ids lead here (who owns
 * them, at which epoch, their handoffs, migrations and provenance). Requests about one execution are
 * handled one after the other, each in three steps: read the rows, decide, commit one unit. Nothing is
 * kept between requests. Where an instance has to change too, the unit is the instance's: it is given
 * an order (`instance/orders.ts`).
 *
 * Each unit raises the execution's version, and one that was decided on an older version commits
 * nothing: so a unit that is still under way when a shard is replaced can do no harm.
 */

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
import type { Env } from '../../src/core/progress.js';
import type { Keyring } from '../../src/core/sealing/keys.js';
import type { Plans } from '../catalog/plans.js';
import type { Order, OrderAnswer, OrderView } from '../instance/orders.js';
import type { CommitLog } from '../runtime/commit-log.js';
import type { PeerMessage } from '../runtime/protocol.js';
import { Service } from '../runtime/service.js';
import { type Effect, Turn } from '../runtime/turn.js';
import type { ContinuityRows } from './rows.js';

export interface ExecutionServiceDeps {
  readonly shard: number;
  readonly shards: number;
  readonly commits: CommitLog;
  readonly rows: ContinuityRows;
  readonly plans: Plans;
  /** Undefined without an encryption key. */
  readonly keyring: Keyring | undefined;
  /** As instances have it here. */
  readonly unpoliciedRetry: Env['unpoliciedRetry'];
  /** Of an instance that comes in; 0: no limit. */
  readonly maxContextBytes: number;
  readonly log: Logger;
  readonly offload: Offload;
  readonly now: () => UnixMs;
  /** Of an id with the routing bits of another one. */
  readonly newIdLike: (id: string) => string;
  readonly release: (effects: readonly Effect[]) => void;
  readonly schedule: (work: () => void) => void;
  /** Runs the function when rows can be trusted: not while a dead writer's units are unsettled. */
  readonly whenWriterKnown: (then: () => void) => void;
}

/** Far more orders than are given. */
const TICKETS_PER_MS = 1_000;

interface Asked {
  /** The shard of the instance. */
  readonly shard: number;
  readonly resolve: (view: OrderView) => void;
  readonly reject: (error: EngineError) => void;
}

export class ExecutionService {
  readonly rows: ContinuityRows;
  readonly plans: Plans;
  readonly keyring: Keyring | undefined;
  readonly unpoliciedRetry: Env['unpoliciedRetry'];
  readonly maxContextBytes: number;
  readonly log: Logger;
  readonly offload: Offload;
  readonly #deps: ExecutionServiceDeps;
  readonly #service: Service;
  readonly #asked = new Map<number, Asked>();
  /** Never one of a service that was here before: its answers may still come in. */
  #tickets: number;

  constructor(deps: ExecutionServiceDeps) {
    this.#deps = deps;
    this.#service = new Service('continuity', deps);
    this.rows = deps.rows;
    this.plans = deps.plans;
    this.keyring = deps.keyring;
    this.unpoliciedRetry = deps.unpoliciedRetry;
    this.maxContextBytes = deps.maxContextBytes;
    this.log = deps.log;
    this.offload = deps.offload;
    this.#tickets = Math.floor(deps.now()) * TICKETS_PER_MS;
  }

  get now(): UnixMs {
    return this.#deps.now();
  }

  /** With the routing bits of another id. */
  newIdLike(id: string): string {
    return this.#deps.newIdLike(id);
  }

  /**
   * Handles one request in its turn and answers it.
   *
   * @param lineOf finds the id of the execution that the request is about, once rows can be trusted;
   *   rejects like `work`
   * @param work rejects with the EngineError that is the answer; anything else is a defect, or the
   *   database is away
   */
  serve(
    request: number,
    status: number,
    lineOf: () => Promise<string>,
    work: () => Promise<object>,
  ): void {
    const line = this.#whenWriterKnown().then(lineOf);
    const served = line.then((execution) => this.inLine(execution, work));
    this.#service.reply(
      request,
      status,
      served.catch((error: unknown) => Promise.reject(this.#errorOf(error))),
    );
  }

  /** Does in its turn what nobody waits for; it is asked for again should it fail. */
  runInBackground(line: string, work: () => Promise<void>): void {
    this.inLine(line, work).catch((error: unknown) => {
      const { code, message } = this.#errorOf(error);
      this.#deps.log.info({ execution: line, code, message }, 'an execution is put in order later');
    });
  }

  /**
   * Begins the work when everything that was asked before about the same execution has ended.
   * Rejects with 503 when too much waits for that.
   */
  inLine<Result>(line: string, work: () => Promise<Result>): Promise<Result> {
    return this.#service.inLine(line, () => this.#whenWriterKnown().then(work));
  }

  /**
   * Rejects with 409 when the execution has changed since it was read, 503 when nobody can tell.
   *
   * @param check what is looked at in the very turn in which the unit is made; throws the refusal
   */
  commit(turn: Turn, check?: () => void): Promise<void> {
    return this.#service.commit(turn, check && { check });
  }

  /**
   * Has an instance check and change itself, together with the mutations of the execution in `turn`.
   *
   * @param expect what the instance must still be, else 409
   */
  order(
    instance: string,
    tenant: string,
    { expect, changes }: Pick<Order, 'expect' | 'changes'>,
    turn: Turn = new Turn(),
  ): Promise<OrderView> {
    this.#tickets += 1;
    const ticket = this.#tickets;
    const shard = shardOf(routeOf(instance), this.#deps.shards);
    const { shard: replyTo } = this.#deps;
    const order: Order = { ticket, replyTo, tenant, expect, changes, mutations: turn.mutations };
    const text = JSON.stringify(order);
    const message: PeerMessage = { kind: 'continuity.order', instance, order: text };
    return new Promise((resolve, reject) => {
      this.#asked.set(ticket, { shard, resolve, reject });
      this.#deps.schedule(() => this.#deps.release([{ kind: 'peer', shard, message }]));
    });
  }

  answered(ticket: number, answer: OrderAnswer): void {
    const asked = this.#asked.get(ticket);
    if (asked === undefined) return;
    this.#asked.delete(ticket);
    if (answer.ok) asked.resolve(answer.view);
    else asked.reject(fromErrorData(answer.error));
  }

  /** The shard was replaced: its units are settled, and what became of its orders is in the rows. */
  shardBack(shard: number): void {
    for (const [ticket, asked] of this.#asked) {
      if (asked.shard !== shard) continue;
      this.#asked.delete(ticket);
      asked.reject(UNKNOWN_OUTCOME);
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
