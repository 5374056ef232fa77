/**
 * Watches the rows of a run, commit by commit: what must hold of every committed state is checked
 * here, and what later checks need to know of the past is kept.
 */

import { historyOf } from '../../actors/instance/worker-task.js';
import { type Execution, WAITS_FOR_START } from '../../schema/execution.js';
import { type InstanceState, isEnded, isTerminal } from '../../schema/states.js';
import { FLUSHES_KEPT } from '../../src/db/statements.js';
import { entryOf } from '../helpers/entry.js';
import { BlocksObserver } from './blocks-observer.js';
import type { Cluster } from './cluster.js';
import { CollectingObserver } from './collecting-observer.js';
import { FamilyObserver } from './family-observer.js';
import { KeysObserver } from './keys-observer.js';
import { LimitsObserver } from './limits-observer.js';
import type { Change, Row } from './memory-tables.js';
import { loopsIn, mayRepeat, placesOf } from './places.js';
import { ReceiptsObserver } from './receipts-observer.js';
import { ReleasesObserver } from './releases-observer.js';
import { SagasObserver } from './sagas-observer.js';
import { Violation } from './violation.js';
import { WaitsObserver } from './waits-observer.js';
import { openSteps, type Watched, Watcher } from './watcher.js';

interface ObserverDeps extends Watched {
  readonly cluster: () => Cluster;
}

const newSet = () => new Set<string>();
const blockOf = (row: Row) => `${row.instance_id} ${row.block_id} ${row.iteration}`;

/** One for the row of a task that waits or is claimed. */
const openIn = (row: Row | undefined) => (row?.rank == null ? 0 : 1);

/** Tasks of which a row has changed. */
function tasksOf(changes: readonly Change[]): Set<string> {
  const isOfTask = ({ table }: Change) => table === 'worker_tasks';
  return new Set(changes.filter(isOfTask).map(({ key }) => key));
}

/** Of a list that runs once more in one commit, the row gives way to another one under its key. */
function asRows(change: Change): Change[] {
  const { table, before, after } = change;
  const isOther = table === 'block_outputs' && before !== undefined && after !== undefined;
  if (!isOther || before.id === after.id) return [change];
  return [
    { ...change, after: undefined },
    { ...change, before: undefined },
  ];
}

/** Blocks whose rows are counters of their passes: one block has many. */
const isLoop = (block: unknown) => /^(loop|each)/.test(String(block));

export class Observer extends Watcher {
  readonly #cluster: () => Cluster;
  /** States of instances that were committed, as `state updated_at`. */
  readonly versions = new Map<string, Set<string>>();
  /** Marks that PATCH context wrote. */
  readonly marks = new Set<string>();
  /** Signal → the birth of its instance, as `birthsOf` counted it then. */
  readonly signals = new Map<string, number>();
  /** Instances whose removal was asked for, if they have ended. */
  readonly doomed = new Set<string>();
  /** Instances that have said at some time that they could not clean up. */
  readonly unclean = new Set<string>();
  /** `metadata.token` of every creation → its instance. */
  readonly tokens = new Map<string, string>();
  /** Task and epoch → the worker that claimed it. */
  readonly claims = new Map<string, string>();
  /** Blocks with their iteration that have a real output. */
  readonly done = new Set<string>();
  /** Those that had one at some time. */
  readonly given = new Set<string>();
  readonly #tries = new Set<string>();
  /** Instance → how many of its tasks wait or are claimed. */
  readonly #openTasks = new Map<string, number>();
  /** Tasks with their claims as they stood at the last commit. */
  readonly #tasks = new Map<string, Row>();
  /** Block and iteration → its tasks that wait or are claimed. */
  readonly #openOfBlock = new Map<string, Set<string>>();
  readonly transitions = new Set<string>();
  readonly #births = new Map<string, number>();
  /** Lane → the number of its last flush. */
  readonly #flushes = new Map<number, number>();

  readonly #limits: LimitsObserver;
  readonly #waits: WaitsObserver;
  readonly #family: FamilyObserver;
  readonly #blocks: BlocksObserver;
  readonly keys: KeysObserver;
  readonly collecting: CollectingObserver;
  readonly sagas: SagasObserver;
  readonly receipts: ReceiptsObserver;
  readonly releases: ReleasesObserver;

  constructor(deps: ObserverDeps) {
    super(deps);
    this.#cluster = deps.cluster;
    this.#limits = new LimitsObserver(deps);
    this.#waits = new WaitsObserver(deps);
    this.#family = new FamilyObserver(deps);
    this.#blocks = new BlocksObserver(deps);
    this.keys = new KeysObserver(deps);
    this.collecting = new CollectingObserver(deps);
    this.sagas = new SagasObserver(deps);
    this.receipts = new ReceiptsObserver(deps);
    this.releases = new ReleasesObserver(deps);
  }

  /**
   * How often the instance was created. When it is deleted with its sequence, its idempotency key is
   * free: the next creation under that key makes another instance with the same id.
   */
  birthsOf(instance: string): number {
    return this.#births.get(instance) ?? 0;
  }

  /** @throws Violation */
  committed(written: readonly Change[], applicationName: string): void {
    const changes = written.flatMap(asRows);
    const touched = new Set<string>();
    for (const change of changes) {
      this.#look(change, touched);
      this.receipts.look(change);
      this.#waits.look(change);
      this.#family.look(change);
      this.#blocks.look(change);
      this.keys.look(change);
      this.collecting.look(change);
      this.sagas.look(change);
      this.releases.look(change);
    }
    for (const key of tasksOf(changes)) this.#task(key);
    if (changes.length > 0) this.#checkEpoch(applicationName);
    for (const id of touched) {
      this.#checkInstance(id);
      this.#waits.checkInstance(id);
    }
    this.#waits.checkTokens();
    this.#family.check();
    this.#blocks.check();
    for (const { table, after } of changes) {
      if (table === 'worker_tasks' && after !== undefined) this.#checkAlone(after);
    }
    this.#limits.check();
    this.collecting.check();
    this.releases.check();
  }

  #look(change: Change, touched: Set<string>): void {
    const { table, before, after } = change;
    const row = (after ?? before)!;
    switch (table) {
      case 'lanes':
        if (before !== undefined && Number(after?.epoch) !== Number(before.epoch) + 1) {
          throw new Violation(`lane ${change.key} went from ${before.epoch} to ${after?.epoch}`);
        }
        return;
      case 'lane_flushes':
        this.#flush(change);
        return;
      case 'instances':
        this.#instance(change);
        touched.add(change.key);
        return;
      case 'worker_tasks': {
        const id = String(row.instance_id);
        const by = openIn(after) - openIn(before);
        this.#openTasks.set(id, (this.#openTasks.get(id) ?? 0) + by);
        touched.add(id);
        return;
      }
      case 'permits':
        this.#limits.permit(change);
        return;
      case 'rate_limits':
        this.#limits.rateLimit(change);
        return;
      case 'sequences':
        if (after === undefined) this.#sequenceGone(change.key);
        return;
      case 'permit_requests':
        this.#limits.request(change);
        touched.add(String(row.instance_id));
        return;
      case 'timers':
      case 'start_requests':
      case 'approvals':
      case 'event_waits':
        touched.add(String(row.instance_id));
        return;
      case 'block_outputs':
        this.#output(change);
        return;
      case 'signals':
        if (after !== undefined) {
          this.signals.set(String(after.id), this.birthsOf(String(after.instance_id)));
        }
        return;
      default:
    }
  }

  // ---------------------------------------------------------------- who writes

  /** Numbers follow each other; only old ones are forgotten. */
  #flush({ key, before, after }: Change): void {
    const { lane, batch } = (after ?? before)!;
    const last = this.#flushes.get(Number(lane)) ?? 0;
    const isRight =
      before === undefined ? Number(batch) === last + 1 : Number(batch) <= last - FLUSHES_KEPT;
    if (!isRight) throw new Violation(`flush ${key} was noted or forgotten after ${last}`);
    if (before === undefined) this.#flushes.set(Number(lane), Number(batch));
  }

  #checkEpoch(applicationName: string): void {
    const engine = this.#cluster().byWriter(applicationName);
    if (engine === undefined) return;
    const epoch = Math.max(
      ...[...this.tables.rows('lanes').values()].map((row) => Number(row.epoch)),
    );
    if (engine.epoch !== epoch) {
      throw new Violation(`${engine.name} of epoch ${engine.epoch} wrote in epoch ${epoch}`);
    }
  }

  // ---------------------------------------------------------------- instances

  #instance(change: Change): void {
    const { key, before, after } = change;
    this.#limits.instance(change);
    if (after === undefined) {
      this.#deleted(key, before!);
      return;
    }
    if (before === undefined) this.#births.set(key, this.birthsOf(key) + 1);
    entryOf(this.versions, key, newSet).add(`${after.state} ${after.updated_at}`);
    if (before?.config !== after.config) {
      const { mark } = after.config as { mark?: string };
      if (mark !== undefined) this.marks.add(`${key} ${mark}`);
    }
    if (before === undefined) {
      if (this.tables.row('sequences', String(after.sequence_id)) === undefined) {
        throw new Violation('an instance without a sequence', key);
      }
      const { token } = after.metadata as { token?: string };
      if (token === undefined) return;
      // What was removed is made anew when its creation is heard once more.
      const known = this.tokens.get(token) ?? key;
      if (known !== key) throw new Violation(`creation ${token} made two instances`, key);
      this.tokens.set(token, key);
      return;
    }
    this.transitions.add(`${before.state} → ${after.state}`);
    // Hooks may fail to clean up behind a cancel.
    const { code } = (after.failure ?? {}) as { code?: string };
    if (code === 'cleanup_failed') this.unclean.add(key);
    const isLate = before.state === 'cancelled' && code === 'cleanup_failed';
    const hasEnded = isTerminal(before.state as InstanceState) && !isLate;
    if (before.state !== after.state && hasEnded) {
      throw new Violation(`instance went from ${before.state} to ${after.state}`, key);
    }
    if (Number(after.signal_count) < Number(before.signal_count)) {
      throw new Violation('the number of signals went back', key);
    }
    if (Number(after.audit_count) < Number(before.audit_count)) {
      throw new Violation('the number of audit rows went back', key);
    }
  }

  /** No live instance may see it. */
  #sequenceGone(sequence: string): void {
    for (const [id, { sequence_id, state }] of this.tables.rows('instances')) {
      if (sequence_id === sequence && !isEnded(state as InstanceState)) {
        throw new Violation(`the sequence of a ${state} instance was deleted`, id);
      }
    }
  }

  /** An instance goes after its sequence, or because somebody asked. */
  #deleted(id: string, { state, sequence_id }: Row): void {
    if (!isEnded(state as InstanceState)) {
      throw new Violation(`a ${state} instance was deleted`, id);
    }
    if (this.tables.row('sequences', String(sequence_id)) === undefined) return;
    const mayGo = this.doomed.has(id) && isTerminal(state as InstanceState);
    if (!mayGo) throw new Violation(`a ${state} instance was deleted without its sequence`, id);
  }

  /** Something must find an instance that is not at rest: rows are the truth, messages are hints. */
  #checkInstance(id: string): void {
    const { tables } = this;
    const row = tables.row('instances', id);
    const timer = tables.row('timers', id);
    const open = this.#openTasks.get(id) ?? 0;
    if (row === undefined) {
      if (timer !== undefined || open > 0) throw new Violation('rows without an instance', id);
      return;
    }
    const state = row.state as InstanceState;
    if (isEnded(state)) {
      // A failed one that was asked to go on may be woken once more, for nothing.
      const { b, j } = row.execution as unknown as Execution;
      const hasHook = b !== undefined || (j !== undefined && j.r.length > 0);
      if (timer !== undefined && isTerminal(state) && !hasHook) {
        throw new Violation(`a ${state} instance has a timer`, id);
      }
      if (open > 0) throw new Violation(`a ${state} instance has open tasks`, id);
      for (const table of ['permit_requests', 'start_requests']) {
        const isWishing = tables.row(table, id) !== undefined;
        if (isWishing) throw new Violation(`a ${state} instance has a row in ${table}`, id);
      }
      if (row.parent_instance_id !== null) this.#checkInstance(String(row.parent_instance_id));
      return;
    }
    const { p, w } = row.execution as unknown as Execution;
    if ((w === WAITS_FOR_START) !== (tables.row('start_requests', id) !== undefined)) {
      throw new Violation('the row of its start is not as the instance waits', id);
    }
    const isFound =
      timer !== undefined ||
      open > 0 ||
      state === 'paused' ||
      p === 1 ||
      this.#waits.isWaiting(id) ||
      tables.row('permit_requests', id) !== undefined ||
      w === WAITS_FOR_START ||
      this.#hasChild(row);
    if (!isFound) throw new Violation(`nothing finds the ${state} instance again`, id);
  }

  /** It waits for one that has yet to end, to be retried or to tell its end; who hears may be gone. */
  #hasChild(row: Row): boolean {
    const { tables } = this;
    const id = row.id!;
    return openSteps(row).some(({ c = null }) => {
      const child = c === null ? undefined : tables.row('instances', c);
      const notes = [
        { to_id: id, from_id: c },
        { to_id: c, from_id: id },
      ].map((note) => tables.row('kin_notes', tables.keyOf('kin_notes', note)));
      const isLiving = child !== undefined && !isEnded(child.state as InstanceState);
      return isLiving || notes.some((note) => note !== undefined);
    });
  }

  // ---------------------------------------------------------------- tasks and outputs

  /** Rows of a finally list give way when it runs once more, but for those in loops. */
  #isRepeated({ instance_id, block_id }: Row): boolean {
    const around = placesOf(this.tables, String(instance_id)).get(String(block_id)) ?? [];
    return mayRepeat(around) && loopsIn(around).length > 0;
  }

  #task(key: string): void {
    const { tables } = this;
    const known = this.#tasks.get(key);
    const after = tables.row('worker_tasks', key);
    if (known === undefined && after === undefined) return;
    if (after === undefined) this.#tasks.delete(key);
    else this.#tasks.set(key, after);
    const row = (after ?? known)!;
    const block = blockOf(row);
    const open = entryOf(this.#openOfBlock, block, newSet);
    if (after?.state === 'pending' || after?.state === 'claimed') open.add(key);
    else open.delete(key);
    if (after === undefined) return;
    const id = String(after.instance_id);
    if (known === undefined) {
      this.#limits.begun(after);
      const isAgain = this.done.has(block) && !this.#isRepeated(after);
      if (isAgain) throw new Violation(`block ${after.block_id} is run again`, id);
    }
    // A poll that waits may have claimed it in the batch that brings it.
    const before = known ?? { ...after, state: 'pending', claim_epoch: 0 };
    const [epoch, next] = [Number(before.claim_epoch), Number(after.claim_epoch)];
    const isClaim = after.state === 'claimed' && before.state !== 'claimed';
    // A batch keeps the last of several snapshots: more than one claim may lie between the two.
    if (next < epoch || (isClaim && next === epoch)) {
      throw new Violation(`task ${key} went from epoch ${epoch} to ${next}`, id);
    }
    if (after.state === 'claimed') {
      const claim = `${key} ${next}`;
      const worker = this.claims.get(claim);
      if (worker !== undefined && worker !== after.worker_id) {
        throw new Violation(`task ${key} has two claims of epoch ${next}`, id);
      }
    }
    const epochs = new Set<number>();
    const history = JSON.stringify(after.history);
    for (const { event, claim_epoch, worker_id } of historyOf({ ...after, history } as never)) {
      if (event !== 'claimed') continue;
      if (epochs.has(claim_epoch)) throw new Violation(`task ${key} was claimed twice at once`, id);
      epochs.add(claim_epoch);
      this.claims.set(`${key} ${claim_epoch}`, String(worker_id));
    }
    const isOver = before.state === 'completed' || before.state === 'failed';
    if (isOver && after.state !== before.state) {
      throw new Violation(`task ${key} went from ${before.state} to ${after.state}`, id);
    }
    if (Number(after.checkpoint_seq) < Number(before.checkpoint_seq)) {
      throw new Violation(`task ${key} lost a checkpoint`, id);
    }
  }

  #checkAlone(task: Row): void {
    const open = this.#openOfBlock.get(blockOf(task))?.size ?? 0;
    if (open <= 1) return;
    throw new Violation(`block ${task.block_id} has ${open} tasks`, String(task.instance_id));
  }

  #output({ before, after }: Change): void {
    const row: Row = (after ?? before)!;
    // What a person has said stands beside the output of the step.
    if (isLoop(row.block_id) || row.output_ref === 'human_input') return;
    const id = String(row.instance_id);
    const block = blockOf(row);
    const attempt = `${block} ${row.try}`;
    if (after === undefined) {
      this.#tries.delete(attempt);
      if (row.output_ref === null) this.done.delete(block);
      return;
    }
    if (before !== undefined) throw new Violation('an output was changed', id);
    const isRepeated = this.#isRepeated(row);
    if (this.#tries.has(attempt) && !isRepeated) {
      throw new Violation(`block ${row.block_id} has two outputs of try ${row.try}`, id);
    }
    this.#tries.add(attempt);
    if (row.output_ref !== null) return;
    const isTwice = this.done.has(block) && !isRepeated;
    if (isTwice) throw new Violation(`block ${row.block_id} succeeded twice`, id);
    this.done.add(block);
    this.given.add(block);
    const state = this.tables.row('instances', id)?.state as InstanceState | undefined;
    if (state === undefined) throw new Violation('an output without an instance', id);
  }
}
