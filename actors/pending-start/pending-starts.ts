/**
 * The keys of one shard whose creations are collected, each an actor (`start-key.ts`). Starts that are due soon have
 * timers; a periodic scan reads ahead, and finds overdue starts.
 */

import { BackgroundJob } from '../../src/base/background-job.js';
import {
  DATABASE_AWAY,
  EngineError,
  type ErrorData,
  fromErrorData,
} from '../../src/base/errors.js';
import { eventNameId } from '../../src/base/ids.js';
import type { JsonObject } from '../../src/base/json.js';
import { owned } from '../../src/base/tenancy.js';
import { isoTime, type UnixMs } from '../../src/base/time.js';
import { sequenceNotFound } from '../../src/core/sequence-not-found.js';
import type { StoredSequence } from '../catalog/plans.js';
import { COLLECTED_CANCEL, EVENT_CANCEL } from '../event/tables.js';
import type { Collected } from '../instance/collected.js';
import {
  cancelProblem,
  type Found,
  findPlace,
  type PlaceDeps,
  placed,
  repeatedReply,
} from '../instance/creation.js';
import type { InstanceLoads } from '../instance/loads.js';
import { ReceivedCreations } from '../instance/received-creations.js';
import { givenContext, keysOf, type NewInstance, nameIn } from '../instance/record.js';
import { ActorHost } from '../runtime/host.js';
import type { InternalAnswer } from '../runtime/internal-requests.js';
import type { Kernel } from '../runtime/kernel.js';
import type { HostedMessage } from '../runtime/kind.js';
import type { Call, RouteOperations } from '../runtime/operation.js';
import { NO_ID } from '../runtime/queries.js';
import type { Messages, Room, Timers } from '../runtime/room.js';
import { Service } from '../runtime/service.js';
import { Turn } from '../runtime/turn.js';
import {
  EARLIEST,
  type Item,
  type LoadedStart,
  type PendingStartLoads,
  type StartOrder,
} from './loads.js';
import { type Start, StartKey, type StoredCreation } from './start-key.js';

export type PendingStartNeededLoads = PendingStartLoads & Pick<InstanceLoads, 'keyedInstance'>;

export interface PendingStartsDeps extends Kernel<PendingStartNeededLoads>, PlaceDeps {
  readonly plans: PlaceDeps['plans'] & { isBlocked(sequence: string): boolean };
}

const KEYS_MAX = 10_000;
const SCAN_MS = 30_000;
/** Later starts are read by the next scan. */
const AHEAD_MS = 2 * SCAN_MS;
const PAGE_ROWS = 1_000;

/** The rows of a start, and where its creation leads. */
interface ReadStart {
  readonly instance: NewInstance;
  readonly orders: readonly StartOrder[];
  readonly items: readonly Item[];
  readonly found: Found;
}

interface KeyMessage extends HostedMessage {
  readonly take: (key: StartKey, turn: Turn) => void;
}

const DUE: KeyMessage = { kind: 'due', take: (key) => key.due() };

export class PendingStarts implements Room {
  readonly #deps: PendingStartsDeps;
  readonly #host: ActorHost<StartKey, KeyMessage, readonly LoadedStart[]>;
  readonly #service: Service;
  readonly #scanning: BackgroundJob;
  readonly #ordering: BackgroundJob;
  readonly #received = new ReceivedCreations();
  /** Starts up to here have timers. */
  #horizon: UnixMs = Number.NEGATIVE_INFINITY;

  readonly messages = {
    collect: ({ request, creation, replyTo }) => {
      const collected = JSON.parse(creation) as Collected;
      if (this.#received.isSecond(collected.instance)) return;
      const own = replyTo === undefined ? request : this.#forward(request, replyTo);
      this.#collect(own, collected);
    },
    'start.cancels': () => this.#ordering.wake(),
    'collect.answer': ({ request, answer }) =>
      this.#deps.internalRequests.answered(request, answerOf(JSON.parse(answer))),
  } satisfies Messages;

  readonly timers = {
    start: ({ key }) => this.#host.tell(key, DUE),
  } satisfies Timers;

  readonly operations = {
    'pendingStarts.start': {
      serve: (call) => this.#tell(call, (key, turn) => key.startNow(turn, ...argumentsOf(call))),
    },
    'pendingStarts.drop': {
      serve: (call) => this.#tell(call, (key, turn) => key.drop(turn, ...argumentsOf(call))),
    },
  } satisfies RouteOperations;

  constructor(deps: PendingStartsDeps) {
    this.#deps = deps;
    const { clock, log, settings, timers } = deps;
    const keyDeps = {
      ...deps,
      maxContextBytes: settings.maxContextBytes,
      wakeAt: (key: string, at: UnixMs) => {
        if (at <= this.#horizon) timers.push(at, { kind: 'start', key });
      },
      read: (key: string, start: Start) => this.#read(key, start),
    };
    this.#host = new ActorHost<StartKey, KeyMessage, readonly LoadedStart[]>(
      {
        noun: 'key of collected creations',
        keyOf: (id) => `start:${id}`,
        nameOf: (id) => ({ actor: `start:${id}` }),
        tenantOf: ({ tenant }) => tenant,
        residentMax: KEYS_MAX,
        load: async (ids) =>
          new Map(
            await Promise.all(
              ids.map(async (id) => [id, await deps.loader.startsOfKey(id)] as const),
            ),
          ),
        restore: (id, rows) => new StartKey(id, keyDeps, rows ?? []),
        awake: ({ state }) => state.arm(),
        handle: (resident, message) =>
          this.#host.run(resident, message, (turn) => message.take(resident.state, turn)),
        decided: (resident, unit) => {
          // What follows depends on whether its idempotency key is new.
          if (resident.state?.decided(unit) === 'gated') resident.phase = 'blocked';
        },
        committed: (resident, unit) => {
          if (resident.state?.committed(unit) === 'gated') resident.phase = 'ready';
        },
        existed: ({ state }, unit) => {
          const repeated = state?.failed(unit)?.repeated;
          if (repeated !== undefined) this.#repeat(repeated.request, repeated.instance);
        },
        refused: ({ state }, unit, reason) => {
          const started = state?.failed(unit)?.started;
          if (started === undefined) return undefined;
          return { kind: 'refused', take: (key, turn) => key.refused(turn, started, reason) };
        },
        // The scan tells overdue keys again.
        givesUp: (_key, message) => message.request === undefined,
        isIdle: (key) => key.isIdle,
      },
      deps,
    );
    this.#service = new Service('pending starts', deps);
    this.#scanning = new BackgroundJob({
      ...{ clock, log, name: 'pending starts', everyMs: SCAN_MS },
      run: () => this.#scan(),
    });
    this.#ordering = new BackgroundJob({
      ...{ clock, log, name: 'cancellations of pending starts', everyMs: SCAN_MS },
      run: () => this.#sendOrders(),
    });
  }

  start(): void {
    this.#scanning.wake();
    this.#ordering.wake();
  }

  stop(): void {
    this.#scanning.stop();
    this.#ordering.stop();
  }

  tenantSuspended(): void {
    this.#host.dropSuspended();
  }

  /** The tenant has rows without timers. */
  tenantBack(): void {
    this.#host.reloadOwnerless();
    this.start();
  }

  endTurn(): void {
    this.#host.endTurn();
  }

  /** An internal request whose answer is that of the other shard's request. */
  #forward(request: number, shard: number): number {
    const { internalRequests, release } = this.#deps;
    return internalRequests.open((given) => {
      const answer = JSON.stringify('error' in given ? { error: given.error.toData() } : given);
      const message = { kind: 'collect.answer', request, answer } as const;
      release([{ kind: 'peer', shard, message }]);
    });
  }

  /** The key may have been used before: looking first spares the actor a refused unit. */
  #collect(request: number, collected: Collected): void {
    const { instance, isKeyed, key_id } = collected;
    const take: KeyMessage['take'] = (key, turn) => key.collect(turn, request, collected);
    const tell = () => this.#host.tell(key_id, { kind: 'collect', request, take });
    if (isKeyed) this.#repeat(request, instance, tell);
    else tell();
  }

  /** Answers a creation whose idempotency key has been used. */
  #repeat(request: number, instance: NewInstance, otherwise?: () => void): void {
    const { loader, release, schedule } = this.#deps;
    this.#service
      .read(() => loader.keyedInstance(instance.id))
      .then(
        (known) =>
          schedule(() => {
            if (known !== undefined) release([repeatedReply(request, instance, known, this.#deps)]);
            else if (otherwise !== undefined) otherwise();
            // Its instance was deleted meanwhile.
            else this.#service.fail(request, DATABASE_AWAY);
          }),
        () => schedule(() => this.#service.fail(request, DATABASE_AWAY)),
      );
  }

  #tell({ request, tenant, target: id }: Call, take: KeyMessage['take']): void {
    const { loader, schedule } = this.#deps;
    this.#service
      .read(() => loader.keyOfStart(id))
      .then(
        (row) =>
          schedule(() =>
            this.#service.serve(request, () => {
              const { key_id } = owned(row, tenant, `pending start ${id}`);
              this.#host.tell(key_id, { kind: 'request', request, take });
            }),
          ),
        (error: unknown) =>
          schedule(() => this.#service.fail(request, this.#service.errorOf(error))),
      );
  }

  /** Reads the orders and the creation of a start, and where it leads. */
  #read(key: string, start: Start): void {
    const { schedule, log } = this.#deps;
    const send = (take: KeyMessage['take']) =>
      schedule(() => this.#host.tell(key, { kind: 'read', take }));
    this.#creationOf(start).then(
      (read) => send((state, turn) => this.#begin(state, turn, start, read)),
      (error: unknown) => {
        log.debug({ actor: `start:${key}`, err: error }, 'a start is put off');
        send((state, turn) => {
          if (state.isReading(start)) state.later(turn, start);
        });
      },
    );
  }

  /** Orders are read first, so that every creation that has one is read, too. */
  async #creationOf({ row: { id, kind }, isAwaiting }: Start): Promise<ReadStart> {
    const { loader } = this.#deps;
    const orders = isAwaiting ? await this.#service.read(() => loader.ordersOfStart(id)) : [];
    const [text, items] = await this.#service.read(() =>
      Promise.all([loader.creationOfStart(id), kind === 'batch' ? loader.itemsOfStart(id) : []]),
    );
    if (text === undefined) throw DATABASE_AWAY;
    const { body, traceparent } = JSON.parse(text) as StoredCreation;
    if (kind === 'debounce') return await this.#found({ id, body, traceparent }, orders, items);
    const data = { items: items.map((item) => JSON.parse(item.data) as JsonObject) };
    const context = { ...body.context, data };
    return await this.#found({ id, body: { ...body, context }, traceparent }, orders, items);
  }

  async #found(
    instance: NewInstance,
    orders: readonly StartOrder[],
    items: readonly Item[],
  ): Promise<ReadStart> {
    return { instance, orders, items, found: await findPlace(this.#deps, instance) };
  }

  /** The rows of a start that is due do not change after they were read for it, but names, routes and sequences may. */
  #begin(key: StartKey, turn: Turn, start: Start, read: ReadStart): void {
    const { instance: requested, orders, items, found } = read;
    if (!key.isReading(start)) return;
    const isCancelled = key.isCancelledBy(start, orders, items);
    if (!isCancelled && orders.length > 0) {
      key.withdraw(turn, start, orders, items);
      return;
    }
    if (!isCancelled && !key.isStarting(start)) return;
    const place = placedOrNot(this.#deps, requested, found);
    const { sequence, instance = requested } = place ?? {};
    const { body, named } = instance;
    if (place === undefined) key.later(turn, start);
    else if (sequence === undefined || sequence.tenantId !== body.tenant_id) {
      key.later(
        turn,
        start,
        `not found: ${sequenceNotFound(body.sequence_id, nameIn(body), named)}`,
      );
    } else if (this.#deps.plans.isBlocked(sequence.id)) key.later(turn, start);
    else {
      const problem = keyProblem(instance, sequence);
      if (problem !== undefined) key.later(turn, start, problem);
      else if (isCancelled) key.cancelled(turn, start, instance, sequence.plan, orders);
      else key.started(turn, start, instance, sequence.plan);
    }
  }

  /** Those of starts that are gone concern their instances. */
  async #sendOrders(): Promise<void> {
    const { loader, schedule } = this.#deps;
    for (let after = NO_ID; ; ) {
      const page = await loader.orderedStarts(after, PAGE_ROWS);
      const last = page.at(-1);
      if (last === undefined || this.#ordering.isStopped) return;
      const starts = new Map(page.map(({ pending_id, key_id }) => [pending_id, key_id]));
      schedule(() => {
        for (const [id, key_id] of starts) {
          if (key_id === null) continue;
          this.#host.tell(key_id, { kind: 'ordered', take: (key, turn) => key.ordered(turn, id) });
        }
      });
      for (const [id, key_id] of starts) if (key_id === null) await this.#handOver(id);
      if (page.length < PAGE_ROWS) return;
      after = last.pending_id;
    }
  }

  async #handOver(start: string): Promise<void> {
    const { loader, now, release, schedule, shard } = this.#deps;
    const orders = await this.#service.read(() => loader.lateOrders(start));
    if (orders.length === 0) return;
    const turn = new Turn(orders[0]?.tenant_id);
    for (const { pending_id, event_id, seq, tenant_id, key_id, event_name } of orders) {
      const order = { pending_id, event_id, seq };
      turn.put(COLLECTED_CANCEL.clear, `${pending_id}:${event_id}:${seq}`, order);
      if (key_id === null) continue;
      const name_id = eventNameId(tenant_id, event_name ?? '');
      const row = { instance_id: start, event_id, key_id, name_id, taken_at: isoTime(now()) };
      turn.put(EVENT_CANCEL.handOver, `${start}:${event_id}`, row);
    }
    await this.#service.commit(turn);
    const message = { kind: 'event.cancels' } as const;
    schedule(() => release([{ kind: 'peer', shard, message }]));
  }

  /** Raises the horizon first, so that what is decided meanwhile has a timer. */
  async #scan(): Promise<void> {
    const { loader, schedule, timers, now } = this.#deps;
    const horizon = now() + AHEAD_MS;
    this.#horizon = horizon;
    for (let after = { starts_at: EARLIEST, id: NO_ID }; ; ) {
      const page = await loader.dueStarts(after, horizon, PAGE_ROWS);
      if (this.#scanning.isStopped) return;
      schedule(() => {
        for (const { key_id: key, starts_at } of page) {
          timers.push(Date.parse(starts_at), { kind: 'start', key });
        }
      });
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE_ROWS) return;
      after = last;
    }
  }
}

/** Why keys of the sequence cannot be rendered: another version than that of the creations may start. */
function keyProblem(instance: NewInstance, sequence: StoredSequence): string | undefined {
  const keys = keysOf(instance, sequence.plan);
  if (!keys.ok) return keys.message;
  return cancelProblem(sequence, { id: instance.id, ...givenContext(instance.body) });
}

/** Undefined while names and routes are not known. */
function placedOrNot(deps: PlaceDeps, requested: NewInstance, found: Found) {
  try {
    return placed(deps, requested, found);
  } catch (error) {
    if (error instanceof EngineError) return undefined;
    throw error;
  }
}

function answerOf(sent: { readonly body: string } | { readonly error: ErrorData }): InternalAnswer {
  return 'error' in sent ? { error: fromErrorData(sent.error) } : sent;
}

const argumentsOf = ({ request, tenant, target }: Call) => [request, tenant, target] as const;
