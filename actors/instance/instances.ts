/**
 * The instance actors of one shard, on top of the generic actor host: deduplication of creations by
 * idempotency key, messages that read rows before their turn, and the deletion of instances. An
 * instance whose failure cannot even be recorded is quarantined.
 */

import { isEnded } from '../../schema/states.js';
import {
  conflict,
  DATABASE_AWAY,
  EngineError,
  notFound,
  unavailable,
} from '../../src/base/errors.js';
import { LIMITS } from '../../src/base/limits.js';
import type { UnixMs } from '../../src/base/time.js';
import { idempotencyKeyOf } from '../../src/core/creation-key.js';
import type { Plans } from '../catalog/plans.js';
import { failed, TENANT_SUSPENDED } from '../runtime/commit.js';
import type { PendingUnit } from '../runtime/commit-log.js';
import type { Outlook } from '../runtime/eviction.js';
import { ActorHost, type HostDeps } from '../runtime/host.js';
import type { Kernel } from '../runtime/kernel.js';
import type { Ready } from '../runtime/kind.js';
import type { ReadyHint, SuccessReply } from '../runtime/protocol.js';
import type { ResidentActor } from '../runtime/resident-actor.js';
import type { Room } from '../runtime/room.js';
import type { Slot } from '../runtime/slots.js';
import type { ChangeResult, Turn } from '../runtime/turn.js';
import { UnknownId } from '../runtime/unknown-id.js';
import { create, handle, knownRecord, preparationOf } from './actor.js';
import { beingRemoved, repeatedReply } from './creation.js';
import { giveSlot, recordSlot } from './limits.js';
import {
  type InstanceEnv,
  isSeenBy,
  type LiveInstance,
  liveInstance,
  type Prepare,
} from './live-instance.js';
import type { InstanceLoads, LoadedInstance } from './loads.js';
import type { Creation, InstanceMessage, InstanceRequest, Message, Repeat } from './messages.js';
import { repeatOfMissing, requestOfMissing } from './missing.js';
import { fenced } from './ownership.js';
import { newRecord } from './record.js';
import { restoreActor, textOf } from './restore.js';
import { claimAnswer, taskHints } from './tasks.js';

export interface InstancesDeps extends HostDeps {
  readonly shard: number;
  readonly env: InstanceEnv;
  readonly loader: InstanceLoads;
  readonly plans: Plans;
  readonly reachability: Pick<Kernel['reachability'], 'turnedAway'>;
  /** Called after a commit of the instance, and when its actor was lost with units in flight. */
  readonly changed: (instance: string) => void;
  /** Called before the commit of a pending task whose queue is on this shard. */
  readonly taskDecided: (task: ReadyHint) => void;
  /** Repeats a creation whose existing instance has been deleted. */
  readonly createAgain: (creation: Creation) => void;
}

type ResidentInstance = ResidentActor<LiveInstance, Message>;
type ReadyInstance = Ready<LiveInstance, Message>;

/** A message that waits for the units before it, and then for rows. */
interface Prepared {
  readonly message: InstanceRequest;
  readonly prepare: Prepare;
  isReading: boolean;
}

export class Instances implements Room {
  readonly #deps: InstancesDeps;
  readonly #host: ActorHost<LiveInstance, Message, LoadedInstance>;
  /** Weak, because a replaced table of a Map keeps its keys (`ChurningMap`). */
  readonly #creating = new WeakMap<ResidentInstance, Creation>();
  readonly #preparing = new WeakMap<ResidentInstance, Prepared>();
  readonly #purging = new Set<ResidentInstance>();
  /** The latest instance that was created while no unit was in flight. */
  #created: ResidentInstance | undefined;
  /** The requested ids of messages that were redirected to an unknown id. */
  readonly #requestedIds = new WeakMap<object, string>();
  readonly #unknownId = new UnknownId();
  /** Instances that receive requests only, see `#givesUp`. */
  readonly #quarantined = new Set<string>();

  constructor(deps: InstancesDeps) {
    this.#deps = deps;
    const { env, loader: rows, plans } = deps;
    this.#host = new ActorHost<LiveInstance, Message, LoadedInstance>(
      {
        noun: 'instance',
        keyOf: (id) => id,
        nameOf: (instanceId) => ({ instanceId }),
        tenantOf: ({ record }) => record.tenant_id,
        load: (ids) => this.#load(ids),
        // Due instances are requested in order of priority.
        loadsInOrder: true,
        restore: (_id, loaded) => loaded && restoreActor(env, { rows, plans }, loaded),
        // The sequence may be deleted while its instance is loaded.
        readsSince: () => plans.deletions,
        handle: (resident, message) => this.#handle(resident, message),
        awake: (resident, rows) => this.#awake(resident, rows as LoadedInstance),
        isIdle: ({ running }) => running.size === 0,
        outlookOf: (actor) => outlookOf(actor, env.now()),
        charactersOf: (actor) => actor.kept.characters,
        refuse: (resident, message, error) => this.#refuse(resident, message, error),
        missing: (resident, messages, rows) => this.#missing(resident, messages, rows),
        decided: (resident, unit) => this.#decided(resident, unit),
        committed: (resident) => this.#committed(resident),
        existed: (resident, unit) => this.#existed(resident, unit),
        refused: (_cell, unit, reason) => refusedUnitOf(unit, reason),
        discarded: (resident) => this.#discarded(resident),
        abandoned: (id, error) => {
          if (error !== TENANT_SUSPENDED) this.#abandoned(id);
        },
        unrestorable: (id) => this.#quarantine(id),
        givesUp: (resident, message) => this.#givesUp(resident, message),
      },
      deps,
    );
  }

  get resident(): { readonly actors: number; readonly bytes: number } {
    return this.#host.resident;
  }

  /** Requested instances that are not loaded yet. */
  get expected(): number {
    return this.#host.expected;
  }

  /** How many instances may be loaded before they are due. */
  get aheadMax(): number {
    return this.#host.aheadMax;
  }

  expect(id: string): void {
    if (!this.#quarantined.has(id)) this.#host.expect(id);
  }

  /** The first commit decides whether a keyed instance is new. @param slot of its concurrency key */
  create(creation: Creation, slot?: Slot): void {
    const { env, commits } = this.#deps;
    const { instance, request, sequence } = creation;
    const isKeyed = idempotencyKeyOf(instance.body) !== null;
    const present = isKeyed ? this.#host.peek(instance.id) : undefined;
    if (present !== undefined) {
      slot?.unused();
      this.#host.deliver(present, creation);
      return;
    }
    const record = newRecord(instance, env.now(), sequence.plan);
    if (slot !== undefined) giveSlot(record);
    const actor = liveInstance(record, sequence.plan, env);
    let isRecorded = false;
    const resident = this.#host.add(instance.id, actor, isKeyed ? 'blocked' : 'ready');
    if (isKeyed) this.#creating.set(resident, creation);
    if (commits.unackedUnits === 0) this.#created = resident;
    this.#insert(resident, creation, (turn) => {
      create(actor, turn, { request, waitMs: instance.waitMs }, isKeyed);
      if (slot !== undefined) isRecorded = recordSlot(turn, record, slot);
    });
    // An instance that has ended, or could not be created, needs no slot.
    if (!isRecorded || resident.unacked === 0) slot?.unused();
  }

  /** Keeps an instance that a batch created; its rows have this many characters. */
  adopt(actor: LiveInstance, characters: number): void {
    if (!isEnded(actor.record.snapshot.state)) this.#host.adopt(actor.record.id, actor, characters);
  }

  send(id: string, message: InstanceMessage | Repeat): void {
    if (message.kind === 'wake' && this.#quarantined.has(id)) return;
    const isForeign =
      'tenant' in message && !('task' in message) && this.isForeign(id, message.tenant);
    if (isForeign) this.#sendToUnknown(id, message);
    else this.#host.tell(id, message);
  }

  isForeign(id: string, tenant: string): boolean {
    const actor = this.#host.peek(id)?.state;
    return actor !== undefined && !isSeenBy(actor, tenant);
  }

  /** Reads an unknown id, so that the response time does not reveal the instance. */
  #sendToUnknown(id: string, message: InstanceMessage): void {
    this.#requestedIds.set(message, id);
    this.#host.tell(this.#unknownId.next(), message);
  }

  isResident(id: string): boolean {
    return this.#host.peek(id) !== undefined;
  }

  canTake(id: string): boolean {
    return this.#host.canTake(id);
  }

  tenantSuspended(): void {
    // Readers must not see instances that are not in memory either.
    this.#deps.env.versions?.raiseAll();
    this.#host.dropSuspended();
  }

  sequenceEvicted(sequenceId: string): void {
    this.#deps.env.versions?.raiseAll();
    for (const resident of this.#host.residents) {
      if (resident.state?.record.sequence_id === sequenceId) this.#forget(resident);
    }
  }

  /** Blocks an instance until `letGo`, to delete its rows. False when it is busy. */
  hold(id: string): boolean {
    const present = this.#host.peek(id);
    if (present !== undefined && !this.#host.isIdle(present)) return false;
    const resident = present ?? this.#host.add(id, undefined, 'blocked');
    resident.state = undefined;
    resident.phase = 'blocked';
    this.#purging.add(resident);
    this.#deps.env.versions?.raise(id);
    return true;
  }

  /** Ends `hold`. If the rows remain, the instance is loaded for messages that wait. */
  letGo(id: string, isGone: boolean): void {
    const resident = this.#host.peek(id);
    if (resident === undefined || !this.#purging.delete(resident)) return;
    if (!isGone && resident.stash.length > 0) {
      resident.phase = 'loading';
      this.#host.proceed(resident);
      return;
    }
    this.#host.drop(resident);
    if (!isGone) return;
    this.#missing(resident, resident.stash);
    this.#deps.changed(id);
  }

  /** Adds the record to the reply if no other unit is in flight: callers often read it next. */
  showCreated(): void {
    const resident = this.#created;
    if (resident === undefined) return;
    this.#created = undefined;
    const { state, last, unacked } = resident;
    if (state === undefined || last === undefined || unacked !== 1) return;
    if (this.#deps.commits.unackedUnits !== 1 || last.bytes > CREATED_CHARACTERS_MAX) return;
    const reply: SuccessReply | undefined = last.effects.find((effect) => effect.kind === 'reply');
    if (reply !== undefined) reply.known = knownRecord(state);
  }

  endTurn(): void {
    this.#host.endTurn();
  }

  /** If the unit is refused, the instance does not exist and is dropped. */
  #insert(resident: ResidentInstance, message: Message, fill: (turn: Turn) => void): void {
    this.#host.run(resident, message, fill);
    if (resident.unacked === 0 && resident.phase !== 'loading') this.#forget(resident);
  }

  /** False also for an instance that is not in memory. */
  isUnderWay(id: string): boolean {
    const state = this.#host.peek(id)?.state?.record.snapshot.state;
    return state !== undefined && !isEnded(state);
  }

  tenantOf(id: string): string {
    return this.#host.peek(id)?.state?.record.tenant_id ?? '';
  }

  #load(ids: readonly string[]): Promise<ReadonlyMap<string, LoadedInstance>> {
    const { release, loader } = this.#deps;
    release([{ kind: 'count', counter: 'engine_instances_loaded_total', by: ids.length }]);
    return loader.instances(ids);
  }

  #handle(resident: ReadyInstance, message: Message): void {
    const actor = resident.state;
    if (message.kind === 'create' || message.kind === 'repeat') {
      this.#deduplicate(resident, actor, message);
      return;
    }
    const fence = fenced(actor, message);
    if (fence !== undefined) {
      this.#turnAway(resident.id, message, fence, 'skipped');
      return;
    }
    if (this.#isDoomed(actor, message)) {
      const what = `sequence ${actor.record.sequence_id} is being deleted`;
      this.#turnAway(resident.id, message, unavailable('ENG_OVERLOADED', what), 'failed');
      return;
    }
    const prepare = preparationOf(actor, message);
    if (prepare !== undefined && 'tenant' in message && isSeenBy(actor, message.tenant)) {
      resident.phase = 'blocked';
      this.#preparing.set(resident, { message, prepare, isReading: false });
      this.#prepare(resident);
      return;
    }
    this.#host.run(resident, message, (turn) => handle(actor, turn, message));
  }

  #turnAway(
    instance: string,
    message: Message,
    error: EngineError,
    change: ChangeResult,
    claim: 0 | -1 = 0,
  ): void {
    const { release } = this.#deps;
    if (message.kind === 'change') {
      const result = error === TENANT_SUSPENDED ? 'suspended' : change;
      const { group } = message;
      release([{ kind: 'changed', group, instance, result, error: error.message }]);
    } else if (message.kind === 'claim') release([claimAnswer(message, claim)]);
    else if ('request' in message) this.#fail(message.request, error);
  }

  /** Drops hints that a row repeats. The watch of a heartbeat has no row and is repeated here. */
  #refuse(resident: ResidentInstance, message: Message, error: EngineError): void {
    const isUndelivered = error === DATABASE_AWAY;
    if (isUndelivered) this.#deps.reachability.turnedAway();
    if (message.kind === 'reap' && isUndelivered) {
      const at = this.#deps.env.now() + RELOAD_MS;
      this.#deps.release([{ kind: 'reap', instance: resident.id, task: message.task, at }]);
    } else this.#turnAway(resident.id, message, error, 'failed', isUndelivered ? -1 : 0);
  }

  /** A deletion of a sequence counts its failed instances as ended: they must not be revived. */
  #isDoomed({ record }: LiveInstance, { kind }: Message): boolean {
    return (
      record.snapshot.state === 'failed' &&
      REVIVING.has(kind) &&
      this.#deps.plans.isBlocked(record.sequence_id)
    );
  }

  #deduplicate(
    resident: ReadyInstance,
    { record }: LiveInstance,
    { request, instance }: Creation | Repeat,
  ): void {
    const { id, tenant_id, idempotency_key, snapshot } = record;
    const is_dry_run = snapshot.runtime.dry_run === true;
    const known = { id, tenant_id, idempotency_key, is_dry_run, starts_at: null };
    const reply = repeatedReply(request, instance, known, this.#deps.env);
    this.#host.tellBehind(resident, [reply]);
  }

  /** The instance handles no other message meanwhile, so that the rows stay current. */
  #prepare(resident: ResidentInstance): void {
    const preparing = this.#preparing.get(resident);
    const actor = resident.state;
    if (preparing === undefined || preparing.isReading || resident.unacked > 0) return;
    if (actor === undefined) return;
    preparing.isReading = true;
    const { message, prepare } = preparing;
    const { loader: rows, plans, schedule } = this.#deps;
    const createBeside = (child: LiveInstance, begin: (turn: Turn) => void) => {
      this.#insert(this.#host.add(child.record.id, child, 'ready'), message, begin);
    };
    prepare(actor, { rows, plans, createBeside }).then(
      (action) =>
        schedule(() =>
          this.#prepared(resident, message, () =>
            this.#host.run(resident, message, (turn) => handle(actor, turn, message, action)),
          ),
        ),
      (error: unknown) =>
        schedule(() => this.#prepared(resident, message, () => this.#unprepared(message, error))),
    );
  }

  #prepared(resident: ResidentInstance, message: InstanceRequest, proceed: () => void): void {
    this.#preparing.delete(resident);
    if (this.#host.peek(resident.id) === resident) {
      resident.phase = 'ready';
      proceed();
      this.#host.proceed(resident);
      return;
    }
    // The instance was deleted with its sequence. Another actor replies.
    for (const remaining of [message, ...resident.stash]) {
      if (remaining.kind === 'create') this.#deps.createAgain(remaining);
      else this.send(resident.id, remaining);
    }
  }

  #unprepared({ request }: InstanceRequest, error: unknown): void {
    if (!(error instanceof EngineError)) {
      this.#deps.log.warn({ err: error }, 'rows for a request could not be read');
    }
    this.#fail(request, error instanceof EngineError ? error : DATABASE_AWAY);
  }

  #awake(resident: ReadyInstance, loaded: LoadedInstance): void {
    const actor = resident.state;
    this.#host.weigh(resident, actor.kept.characters + actor.tasks.characters + textOf(loaded));
    this.#deps.release(taskHints(actor));
    // An instance that throws repeatedly is failed. Otherwise, steps whose process or actor has
    // died run again.
    const isPoisoned = resident.defects >= DEFECTS_MAX;
    const first = isPoisoned ? POISON : WAKE_RECOVERED;
    if (isPoisoned || loaded.timer?.recover === true) {
      this.#host.run(resident, first, (turn) => handle(actor, turn, first));
    }
  }

  /** A waiting poll claims the task before this commit: both units are posted together. */
  #decided({ id }: ResidentInstance, { effects }: PendingUnit): void {
    const { env, shard, taskDecided } = this.#deps;
    env.versions?.raise(id);
    for (const effect of effects) {
      if (effect.kind !== 'peer' || effect.shard !== shard) continue;
      if (effect.message.kind === 'task.ready') taskDecided(effect.message);
    }
  }

  #committed(resident: ResidentInstance): void {
    if (this.#creating.delete(resident)) resident.phase = 'ready';
    this.#deps.changed(resident.id);
    this.#prepare(resident);
  }

  /** The row exists: the instance is loaded, and replies to the creation. */
  #existed(resident: ResidentInstance, { effects }: PendingUnit): void {
    const slots = effects.filter(({ kind }) => kind === 'slot.settled');
    if (slots.length > 0) this.#deps.release(failed(slots, EXISTED));
    const creation = this.#creating.get(resident);
    if (creation !== undefined) resident.stash.unshift(creation);
  }

  #discarded(resident: ResidentInstance): void {
    const orphans = [...(resident.state?.running.values() ?? [])];
    this.#deps.release(orphans.map((step) => ({ kind: 'abort', instance: resident.id, step })));
    this.#creating.delete(resident);
    const preparing = this.#preparing.get(resident);
    this.#preparing.delete(resident);
    if (preparing !== undefined) resident.stash.unshift(preparing.message);
    this.#deps.changed(resident.id);
  }

  /** The timer row may not wake it: a `recover` flag is read only when the shard starts. */
  #abandoned(instance: string): void {
    const at = this.#deps.env.now() + RELOAD_MS;
    this.#deps.release([{ kind: 'timer', instance, at, rank: RELOAD_RANK }]);
  }

  /** Not even the failure could be recorded. Only requests reach the instance from now on. */
  #givesUp(resident: ResidentInstance, message: Message): boolean {
    if (resident.defects <= DEFECTS_MAX || 'request' in message) return false;
    this.#quarantine(resident.id);
    return true;
  }

  #quarantine(instanceId: string): void {
    this.#deps.log.error({ instanceId }, 'instance quarantined');
    this.#quarantined.add(instanceId);
  }

  /** Requests fail, creations continue unless a row of a deleted sequence remains. */
  #missing(
    resident: ResidentInstance,
    messages: readonly Message[],
    orphan?: LoadedInstance,
  ): void {
    for (const message of messages) {
      if (message.kind === 'create' && orphan)
        this.#fail(message.request, beingRemoved(resident.id));
      else if (message.kind === 'create' || message.kind === 'repeat') {
        repeatOfMissing(this.#deps, resident.id, message);
      } else if ('received' in message) {
        if (message.received !== undefined) {
          this.#deps.release([{ kind: 'family.undelivered', message: message.received }]);
        }
      } else {
        const id = this.#requestedIds.get(message) ?? resident.id;
        if ('tenant' in message && !('task' in message)) requestOfMissing(this.#deps, id, message);
        else {
          const what = 'task' in message ? `worker task ${message.task}` : `instance ${id}`;
          this.#turnAway(id, message, notFound(what), 'skipped');
        }
      }
    }
  }

  #forget(resident: ResidentInstance): void {
    this.#creating.delete(resident);
    this.#host.drop(resident);
  }

  #fail(request: number, error: EngineError): void {
    this.#deps.release([{ kind: 'error', request, error }]);
  }
}

const EXISTED = conflict('the instance exists');

/** The size of the creating unit above which a serialized record costs more than it saves. */
const CREATED_CHARACTERS_MAX = 16_384;

function refusedUnitOf({ effects, origin }: PendingUnit, reason: string): Message | undefined {
  if (effects.some(({ kind }) => kind === 'reply' || kind === 'changed')) return undefined;
  const message = `the database refused the data: ${reason}`;
  return { kind: 'unit.refused', step: origin, code: 'data_refused', reason: message };
}

/** How soon the instance is likely to be used. */
function outlookOf({ record, running, tasks, timer }: LiveInstance, now: UnixMs): Outlook {
  const { state } = record.snapshot;
  if (isEnded(state)) return 'ended';
  if (running.size > 0) return 'active';
  if (timer?.fireAt != null && timer.fireAt - now <= LIMITS.timerLeadMs) return 'active';
  if (tasks.open === 0 || state === 'paused') return 'waiting';
  return tasks.isClaimed ? 'active' : 'offered';
}

/** The delay before a hint without a row is repeated after its actor could not be loaded. */
const RELOAD_MS = 1_000;
/** The rank of normal priority. */
const RELOAD_RANK = 2;

const WAKE_RECOVERED = { kind: 'wake', recovered: true } as const;

const REVIVING: ReadonlySet<Message['kind']> = new Set<Message['kind']>([
  'retry',
  'patchState',
  'signal',
  'change',
]);

/** The number of consecutive defects after which an instance is failed. */
const DEFECTS_MAX = 3;

const POISON = {
  kind: 'unit.refused',
  step: undefined,
  code: 'internal_error',
  reason: 'internal error while the instance was advanced; see the log',
} as const;
