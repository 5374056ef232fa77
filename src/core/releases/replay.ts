/**
 * Replays an ended run of one version of a sequence with another version (04 §7): the real evaluator
 * in virtual time, from the run's first moment, with every handler replaced by what was recorded.
 * What was recorded comes at the moment at which it came, or as soon as it is asked for; delays and
 * back-offs are jumped over; a step that nobody has recorded comes last. Pure.
 */

import type { Divergence } from '../../../schema/release.js';
import { advance, type EngineEvent, type Env, type Progress, type Snapshot } from '../evaluator.js';
import { emptyExecution } from '../execution.js';
import { isJsonObject } from '../json.js';
import type { Plan } from '../plan.js';
import type { Dispatch, StepTry } from '../progress.js';
import { isEnded } from '../states.js';
import type { UnixMs } from '../time.js';
import {
  NotReplayable,
  type RecordedRun,
  type RecordedSignal,
  type RecordedTry,
  type Recording,
  recordingOf,
} from './recording.js';
import { Script, withStandIns } from './stand-ins.js';

export type Verdict =
  | { readonly kind: 'match' }
  | { readonly kind: 'divergence'; readonly divergence: Divergence }
  /** The replay could not be carried out, or shows nothing. */
  | { readonly kind: 'inconclusive'; readonly reason: string };

export interface ReplayOptions {
  readonly unpoliciedRetry: Env['unpoliciedRetry'];
  /** Turns of the evaluator after which a replay is given up (04 §7). */
  readonly ticksMax?: number;
}

const TICKS_MAX = 5_000;
/** Of one turn, as shards have it: so a replay looks at no more than a million blocks. */
const TURN = { stepBudget: 250, outputBytesBudget: 1024 * 1024 } as const;
/** Ids of one divergence in each of its lists: summaries are stored and listed. */
const IDS_MAX = 200;

/**
 * @param candidate the plan that the run is replayed with
 * @param baseline the plan that the run had
 */
export function replay(
  candidate: Plan,
  baseline: Plan,
  run: RecordedRun,
  options: ReplayOptions,
): Verdict {
  try {
    const recording = recordingOf(run, baseline);
    const replayed = new Replay(candidate, new Script(recording, baseline), run, options);
    replayed.run();
    return verdictOn(run, recording, replayed);
  } catch (error) {
    if (error instanceof NotReplayable) return { kind: 'inconclusive', reason: error.message };
    throw error;
  }
}

/** A try that somebody would be at. */
interface OpenTry extends StepTry {
  readonly external: boolean;
  readonly taken: RecordedTry | undefined;
  readonly dueAt: UnixMs;
}

class Replay {
  readonly snapshot: Snapshot;
  readonly script: Script;
  /** Steps that came to an end, well or not. */
  readonly executed = new Set<string>();
  readonly #plan: Plan;
  readonly #signals: RecordedSignal[];
  readonly #open = new Map<string, OpenTry>();
  readonly #env: Omit<Env, 'now'>;
  readonly #ticksMax: number;
  #now: UnixMs;
  #last: Progress | undefined;

  constructor(candidate: Plan, script: Script, run: RecordedRun, options: ReplayOptions) {
    const { unpoliciedRetry, ticksMax = TICKS_MAX } = options;
    this.script = script;
    this.#plan = withStandIns(candidate, script);
    this.#env = { ...TURN, unpoliciedRetry, random: () => 0.5 };
    this.#ticksMax = ticksMax;
    this.#now = run.execution.t ?? Date.parse(run.created_at);
    // What else a caller may have said has changed when the run went on, and not how.
    this.#signals = run.signals.filter(({ signal_type: type }) => type === 'update_context');
    this.snapshot = {
      id: run.id,
      timezone: run.timezone,
      state: 'scheduled',
      nextFireAt: this.#now,
      data: run.data,
      config: run.config,
      runtime: {},
      execution: emptyExecution(),
      outputs: new Map(),
      snapshots: new Map(),
    };
  }

  /** @throws NotReplayable */
  run(): void {
    for (let ticks = 0; !isEnded(this.snapshot.state); ticks += 1) {
      if (ticks >= this.#ticksMax) throw new NotReplayable(`it takes more than ${ticks} turns`);
      this.#tick();
    }
  }

  /** The next thing to happen: there is more to do, somebody answers, or a time has come. */
  #tick(): void {
    if (this.#last === undefined || this.#last.more) {
      this.#advance(this.#now, { kind: 'wake' });
      return;
    }
    const wakeAt = this.#last.wakeAt ?? Number.POSITIVE_INFINITY;
    const first = this.#firstOpen();
    if (first !== undefined && first.dueAt <= wakeAt) this.#answer(first);
    else if (Number.isFinite(wakeAt)) this.#advance(wakeAt, { kind: 'wake' });
    else throw new NotReplayable('it waits for what is not recorded');
  }

  #firstOpen(): OpenTry | undefined {
    let first: OpenTry | undefined;
    for (const open of this.#open.values()) {
      if (first === undefined || comesBefore(open, first)) first = open;
    }
    return first;
  }

  #answer(open: OpenTry): void {
    this.#open.delete(keyOf(open));
    const { node, iteration, attempt, external, taken } = open;
    const outcome = this.script.outcomeOf(taken);
    const at = Number.isFinite(open.dueAt) ? open.dueAt : this.#now;
    this.#advance(at, { kind: 'step.outcome', node, iteration, attempt, external, outcome });
  }

  #advance(at: UnixMs, event: EngineEvent): void {
    this.#now = Math.max(this.#now, at);
    this.#takeSignals();
    const progress = advance(this.#plan, this.snapshot, event, { ...this.#env, now: this.#now });
    this.#last = progress;
    for (const { blockId } of progress.outputs) this.#note(blockId);
    for (const { eventType, blockId } of progress.audit) {
      if (eventType === 'step_failed' && blockId !== undefined) this.#note(blockId);
    }
    for (const withdrawal of progress.withdrawals) this.#open.delete(keyOf(withdrawal));
    for (const dispatch of progress.dispatches) this.#dispatch(dispatch);
  }

  #note(block: string): void {
    if (this.#plan.nodes[this.#plan.indexOf.get(block) ?? -1]?.type === 'step') {
      this.executed.add(block);
    }
  }

  /** What callers merged by now; they change the data, and nothing waits for them. */
  #takeSignals(): void {
    const { snapshot } = this;
    for (;;) {
      const [next] = this.#signals;
      if (next === undefined || Date.parse(next.created_at) > this.#now) return;
      this.#signals.shift();
      if (isJsonObject(next.payload)) snapshot.data = { ...snapshot.data, ...next.payload };
    }
  }

  #dispatch({ node: index, iteration, attempt, external }: Dispatch): void {
    const node = this.#plan.nodes[index];
    if (node?.type !== 'step') throw new Error(`block ${index} is dispatched and is no step`);
    const taken = this.script.take(node, iteration, attempt);
    const dueAt = taken === undefined ? Number.POSITIVE_INFINITY : Math.max(this.#now, taken.at);
    const open = { node: index, iteration, attempt, external, taken, dueAt };
    this.#open.set(keyOf(open), open);
  }
}

function keyOf({ node, iteration, attempt }: StepTry): string {
  return `${node}/${iteration}/${attempt}`;
}

/** In the order of the recording; those that are not in it come last, in the order of dispatch. */
function comesBefore(a: OpenTry, b: OpenTry): boolean {
  if (a.dueAt !== b.dueAt) return a.dueAt < b.dueAt;
  if (a.taken === undefined || b.taken === undefined) return false;
  return a.taken.at === b.taken.at ? a.taken.id < b.taken.id : a.taken.at < b.taken.at;
}

// ---------------------------------------------------------------- the verdict

function verdictOn(run: RecordedRun, recording: Recording, replayed: Replay): Verdict {
  const { executed, snapshot, script } = replayed;
  const { succeeded, failed } = recording;
  const isSameEnd = snapshot.state === run.state;
  const added = idsOf(executed, (id) => !succeeded.has(id) && !failed.has(id));
  // A step that only failed is missed where the ends agree; where they do not, that says it.
  const recorded = isSameEnd ? [...succeeded, ...failed] : succeeded;
  const removed = idsOf(recorded, (id) => !executed.has(id));
  if (!isSameEnd || added.length > 0 || removed.length > 0) {
    const divergence: Divergence = {
      instance_id: run.id,
      recorded_state: run.state,
      replayed_state: snapshot.state,
      blocks_added: added.slice(0, IDS_MAX),
      blocks_removed: removed.slice(0, IDS_MAX),
    };
    return { kind: 'divergence', divergence };
  }
  if (!script.hasGaps) return { kind: 'match' };
  return { kind: 'inconclusive', reason: 'a step did what nobody has recorded' };
}

/** Names that begin with `_` are ours. */
function idsOf(ids: Iterable<string>, counts: (id: string) => boolean): string[] {
  return [...ids].filter((id) => !id.startsWith('_') && counts(id)).sort();
}
