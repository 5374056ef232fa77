/**
 * The cron schedules of one shard. Schedules that are due within a horizon are in a heap, and a timer is set for the
 * first. A periodic scan reads ahead, and finds overdue schedules.
 */

import { isDeepStrictEqual } from 'node:util';
import type {
  CreateSchedule,
  CronSchedule,
  RunSchedule,
  ScheduleRun,
  UpdateSchedule,
} from '../../schema/cron.js';
import { BackgroundJob } from '../../src/base/background-job.js';
import type { TimerHandle } from '../../src/base/clock.js';
import { DATABASE_AWAY, EngineError, invalid, notFound } from '../../src/base/errors.js';
import { LIMITS } from '../../src/base/limits.js';
import { checkTenant, seenBy } from '../../src/base/tenancy.js';
import { isoTime, type UnixMs } from '../../src/base/time.js';
import { sequenceNotFound } from '../../src/core/sequence-not-found.js';
import { checkSize } from '../instance/memory.js';
import { givenContext, nameIn } from '../instance/record.js';
import { ActorHost } from '../runtime/host.js';
import type { HostedMessage, Ready } from '../runtime/kind.js';
import type { Call, RouteOperations } from '../runtime/operation.js';
import { boundOf } from '../runtime/queries.js';
import type { Room } from '../runtime/room.js';
import { Service } from '../runtime/service.js';
import { TimerHeap } from '../runtime/timer.js';
import type { Turn } from '../runtime/turn.js';
import { UnknownId } from '../runtime/unknown-id.js';
import {
  type CreatedRun,
  Cron,
  type CronDeps,
  type CronRows,
  type Look,
  type Memo,
} from './cron.js';
import { type DueSchedule, scheduleOf } from './loads.js';
import { findRun, type RequestedRunDeps, type RunsDeps, requestedRun } from './runs.js';
import { firstFireOf, readExpression, settingsOf } from './settings.js';

export interface SchedulesDeps extends RunsDeps {
  /** Takes over a committed instance and starts it. */
  readonly adoptRun: (run: CreatedRun) => void;
}

const SCHEDULES_MAX = 10_000;
/** Maximum fires per turn, so that requests are served during a burst. */
const FIRES_PER_TURN = 250;
const PAGE_ROWS = 1_000;
/** A fire this late was missed by its timer. */
const OVERDUE_MS = 1_000;
/** Delay of a check after an awaited run has changed, because runs change often. */
const CHANGED_MS = 50;
const RELOAD_MS = 1_000;
const BEHIND_MS = 100;
const NOTHING: Memo = {};
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

interface CronMessage extends HostedMessage {
  /** @returns `reload` when the rows have to be read first */
  readonly take: (cron: Cron, turn: Turn) => unknown;
}

const DUE: CronMessage = { kind: 'due', take: (cron, turn) => cron.due(turn) };

type ReadyCron = Ready<Cron, CronMessage>;

export class Schedules implements Room {
  readonly #deps: SchedulesDeps;
  readonly #host: ActorHost<Cron, CronMessage, CronRows>;
  readonly #service: Service;
  readonly #unknownId = new UnknownId();
  readonly #memos = new Map<string, Memo>();
  readonly #heap = new TimerHeap<string>();
  /** All schedules due up to here are in the heap. */
  #horizon: UnixMs = Number.NEGATIVE_INFINITY;
  /** The horizon of the last successful read. */
  #read: UnixMs = Number.NEGATIVE_INFINITY;
  /** Awaited runs, with their schedules. */
  readonly #awaited = new Map<string, string>();
  #wakeHandle: TimerHandle | undefined;
  #sleepsUntil: UnixMs | undefined;
  readonly #scanning: BackgroundJob;

  readonly operations = {
    'cron.create': { serve: (call) => this.#create(call) },
    'cron.update': { serve: (call) => this.#update(call) },
    'cron.run': { serve: (call) => this.#run(call) },
    'cron.delete': { serve: (call) => this.#delete(call) },
  } satisfies RouteOperations;

  constructor(deps: SchedulesDeps) {
    this.#deps = deps;
    const cronDeps: CronDeps = {
      ...deps,
      // A later scan finds times beyond the horizon.
      wakeAt: (id, at) => {
        if (at <= this.#horizon) this.#heap.push(at, id);
      },
      awaitRuns: (id, runs) => {
        for (const run of runs) this.#awaited.set(run, id);
      },
      look: (look) => this.#look(look),
      memo: (id) => this.#memos.get(id) ?? NOTHING,
      remember: (id, changes) => this.#remember(id, changes),
    };
    this.#host = new ActorHost<Cron, CronMessage, CronRows>(
      {
        noun: 'cron schedule',
        keyOf: (id) => `cron:${id}`,
        nameOf: (id) => ({ actor: `cron:${id}` }),
        tenantOf: ({ tenant }) => tenant,
        residentMax: SCHEDULES_MAX,
        load: (ids) => this.#rowsOf(ids),
        restore: (id, rows) => rows && new Cron(id, cronDeps, rows),
        awake: ({ state }) => state.arm(),
        handle: (resident, message) => this.#handle(resident, message),
        decided: ({ state }, unit) => state?.decided(unit),
        committed: ({ state }, unit) => {
          const created = state?.committed(unit);
          if (created !== undefined) deps.adoptRun(created);
          state?.arm();
        },
        existed: ({ state }, unit) => state?.spend(unit, null),
        refused: ({ state }, unit, reason) => {
          state?.spend(unit, reason);
          return undefined;
        },
        abandoned: (id, error) => {
          // After a defect, the scan for overdue schedules retries.
          if (error === DATABASE_AWAY) this.#heap.push(deps.now() + RELOAD_MS, id);
        },
        // The scan retries a schedule, which stays due until it fires.
        givesUp: (_cell, message) => message.request === undefined,
        isIdle: (cron) => cron.isIdle,
      },
      deps,
    );
    this.#service = new Service('schedules', deps);
    const { clock, log } = deps;
    this.#scanning = new BackgroundJob({
      clock,
      log,
      name: 'schedules',
      everyMs: deps.settings.cronTickMs,
      run: () => this.#scan(),
    });
  }

  start(): void {
    this.#scanning.wake();
  }

  tenantSuspended(): void {
    this.#host.dropSuspended();
  }

  /** Reads all schedules again, because those of the admitted tenant were not reported. */
  tenantBack(): void {
    this.#read = Number.NEGATIVE_INFINITY;
    this.#host.reloadOwnerless();
    this.#scanning.wake();
  }

  stop(): void {
    this.#scanning.stop();
    this.#deps.clock.clearTimeout(this.#wakeHandle);
  }

  #create({ request, tenant, body }: Call<CreateSchedule>): void {
    checkTenant(tenant, body.tenant_id);
    this.#checkSize(body);
    const row = this.#newRow(body);
    const { deletions } = this.#deps.plans;
    const take: CronMessage['take'] = (cron, turn) => cron.create(turn, request, row, deletions);
    this.#afterCheck(request, this.#checkTarget(row), () =>
      this.#host.tell(row.id, { kind: 'create', request, take }),
    );
  }

  #newRow(body: CreateSchedule): CronSchedule {
    const now = this.#deps.now();
    const { cron_expr } = body;
    const settings = settingsOf(body);
    return {
      id: this.#deps.newId(),
      tenant_id: body.tenant_id,
      namespace: body.namespace,
      sequence_id: body.sequence_id ?? null,
      sequence: body.sequence ?? null,
      version: body.version ?? null,
      cron_expr,
      ...settings,
      skipped_fires: 0,
      last_skipped_at: null,
      last_triggered_at: null,
      next_fire_at: firstFireOf({ cron_expr, timezone: settings.timezone }, now),
      last_error: null,
      created_at: isoTime(now),
      updated_at: isoTime(now),
    };
  }

  #update({ request, tenant, target: id, body: changes }: Call<UpdateSchedule>): void {
    if (changes.cron_expr !== undefined) readExpression(changes.cron_expr);
    const take: CronMessage['take'] = (cron, turn) => cron.update(turn, request, tenant, changes);
    const send = () => this.#ask(tenant, id, { kind: 'update', request, take });
    if (changes.context === undefined) {
      send();
      return;
    }
    this.#checkSize(changes);
    this.#afterCheck(request, this.#checkContext(tenant, id, changes), send);
  }

  /** An unchanged context is checked only by the fires. */
  async #checkContext(tenant: string, id: string, changes: UpdateSchedule): Promise<void> {
    const row = seenBy(tenant, (await this.#deps.loader.schedules([id])).get(id));
    if (row === undefined) return;
    const before = scheduleOf(row);
    const context = givenContext(changes);
    if (isDeepStrictEqual(before.context, context)) return;
    await this.#checkTarget({ ...before, context });
  }

  #checkSize(body: Pick<CreateSchedule, 'context'>): void {
    const { maxContextBytes } = this.#deps.settings;
    if (maxContextBytes === 0 || body.context == null) return;
    checkSize('context is', givenContext(body), maxContextBytes);
  }

  /** Rejects with 404 or 400 unless the sequence exists and accepts the context. */
  async #checkTarget(row: CronSchedule): Promise<void> {
    const { names, plans } = this.#deps;
    const name = nameIn(row);
    const named = name && (await names.load(name));
    const id = row.sequence_id ?? named;
    const sequence = id == null ? undefined : await plans.seek(id, row.tenant_id);
    if (sequence?.tenantId !== row.tenant_id) {
      throw notFound(sequenceNotFound(row.sequence_id, name, named));
    }
    const problem = sequence.checkInput?.(row.context.data);
    if (problem !== undefined) throw invalid(`context.data ${problem}`);
  }

  /** Continues in a turn unless the check rejects. Any error but an EngineError is a failed read. */
  #afterCheck(request: number, check: Promise<void>, then: () => void): void {
    const { schedule } = this.#deps;
    check.then(
      () => schedule(then),
      (error: unknown) => {
        const reason = error instanceof EngineError ? error : DATABASE_AWAY;
        schedule(() => this.#service.fail(request, reason));
      },
    );
  }

  /** Fires once, beside the scheduled fires. An existing instance with the key is returned. */
  #run({ request, tenant, target: id, body }: Call<RunSchedule>): void {
    const send: RequestedRunDeps['send'] = (own, run) => {
      const take: CronMessage['take'] = (cron, turn) => cron.run(turn, own, tenant, run);
      this.#host.tell(id, { kind: 'run', request: own, take });
    };
    const deps = { ...this.#deps, service: this.#service, send };
    const status = ({ collected }: ScheduleRun) => (collected === true ? 202 : 201);
    this.#service.answer(request, status, id, () =>
      requestedRun(deps, tenant, id, body.idempotency_key || null),
    );
  }

  #delete({ request, tenant, target: id }: Call): void {
    const take: CronMessage['take'] = (cron, turn) => cron.delete(turn, request, tenant);
    this.#ask(tenant, id, { kind: 'delete', request, take });
  }

  /** A missing or foreign schedule takes a read, whether it is in memory or not. */
  #ask(tenant: string, id: string, message: CronMessage & { readonly request: number }): void {
    const { state: cron, unacked = 0 } = this.#host.peek(id) ?? {};
    const isMissing = cron?.isThere === false && unacked === 0;
    if (!isMissing && cron?.isOf(tenant) !== false) {
      this.#host.tell(id, message);
      return;
    }
    this.#service.answer(message.request, 404, undefined, async () => {
      await this.#service.read(() => this.#deps.loader.schedules([this.#unknownId.next()]));
      throw notFound(`cron schedule ${id}`);
    });
  }

  /** Called when the rows of the sequence and of its schedules were deleted. */
  sequenceEvicted(sequenceId: string): void {
    const own = [...this.#host.residents].filter(({ state }) => state?.sequenceId === sequenceId);
    for (const { id } of own) this.#host.reload(id);
  }

  /** Called when a unit of the instance was committed, or it was reloaded. */
  instanceChanged(instance: string): void {
    if (this.#awaited.size === 0) return;
    const id = this.#awaited.get(instance);
    if (id === undefined) return;
    this.#awaited.delete(instance);
    this.#heap.push(this.#deps.now() + CHANGED_MS, id);
  }

  endTurn(): void {
    this.#host.endTurn();
    this.#sleep();
  }

  #handle(resident: ReadyCron, message: CronMessage): void {
    const { state: cron } = resident;
    if (message.kind === 'due' && !cron.isDue) return;
    if (!cron.isFresh) {
      this.#host.rebuild(resident, message);
      return;
    }
    let next: unknown;
    this.#host.run(resident, message, (turn) => {
      next = message.take(cron, turn);
    });
    if (next === 'reload') this.#host.rebuild(resident);
  }

  async #rowsOf(ids: readonly string[]): Promise<Map<string, CronRows>> {
    const { deletions } = this.#deps.plans;
    const rows = await this.#deps.loader.schedules(ids);
    return new Map(ids.map((id) => [id, { row: rows.get(id), deletions }]));
  }

  #remember(id: string, changes: Memo): void {
    const memo = { ...this.#memos.get(id), ...changes };
    if (Object.values(memo).some((value) => value !== undefined)) this.#memos.set(id, memo);
    else this.#memos.delete(id);
  }

  /** Called when the clock was set. The end of the turn sets a new timer. */
  clockSet(): void {
    this.#sleepsUntil = undefined;
  }

  #sleep(): void {
    const { clock, schedule, commits } = this.#deps;
    const at = this.#heap.nextAt;
    if (at === this.#sleepsUntil || this.#scanning.isStopped) return;
    this.#sleepsUntil = at;
    clock.clearTimeout(this.#wakeHandle);
    if (at === undefined) return;
    const isBehind = commits.unackedUnits > LIMITS.unitsPerShardMax;
    const least = isBehind ? BEHIND_MS : 0;
    const wait = Math.min(Math.max(least, at - clock.now()), LIMITS.timerHorizonMs);
    this.#wakeHandle = clock.setTimeout(() => schedule(() => this.#sendDue()), wait);
  }

  #sendDue(): void {
    const { clock, commits } = this.#deps;
    this.#sleepsUntil = undefined;
    const began = clock.monotonic();
    for (let fires = 0; fires < FIRES_PER_TURN; fires++) {
      if (commits.unackedUnits > LIMITS.unitsPerShardMax) return;
      if (clock.monotonic() - began > LIMITS.turnMs / 2) return;
      const id = this.#heap.popDue(clock.now());
      if (id === undefined) return;
      this.#host.tell(id, DUE);
    }
  }

  /** Raises the horizon before the read, so that units push the fires that they set meanwhile. */
  async #scan(): Promise<void> {
    const { clock, settings } = this.#deps;
    const now = clock.now();
    const from = this.#read;
    this.#horizon = Math.max(this.#horizon, now + 2 * settings.cronTickMs);
    const horizon = this.#horizon;
    await this.#pages(from, horizon, (id, at) => this.#heap.push(at, id));
    this.#read = horizon;
    if (from === Number.NEGATIVE_INFINITY) return;
    await this.#pages(Number.NEGATIVE_INFINITY, now - OVERDUE_MS, (id) => this.#host.reload(id));
  }

  async #pages(from: UnixMs, to: UnixMs, each: (id: string, at: UnixMs) => void): Promise<void> {
    const { loader, schedule } = this.#deps;
    let after: DueSchedule = { next_fire_at: boundOf(from), id: LAST_ID };
    for (;;) {
      const page = await loader.dueSchedules(after, to, PAGE_ROWS);
      if (this.#scanning.isStopped) return;
      schedule(() => {
        for (const { id, next_fire_at } of page) each(id, Date.parse(next_fire_at));
      });
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE_ROWS) return;
      after = last;
    }
  }

  #look(look: Look): void {
    const { schedule, log } = this.#deps;
    const { row, run } = look;
    const send = (take: CronMessage['take']) =>
      schedule(() => this.#host.tell(row.id, { kind: 'looked', take }));
    findRun(this.#deps, row, run).then(
      (found) => send((cron, turn) => cron.found(turn, look, found)),
      (error: unknown) => {
        log.debug({ actor: `cron:${row.id}`, err: error }, 'a fire is put off');
        send((cron) => cron.unknown(look));
      },
    );
  }
}
