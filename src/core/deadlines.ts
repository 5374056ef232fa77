/**
 * Deadlines of open nodes. The time limits of tries, blocks, steps and the instance are suspended while the instance is
 * paused (docs/reference/steps.md); sleeps, delays and back-offs are not.
 */

import TinyQueue from 'tinyqueue';
import {
  type Execution,
  FAILED,
  type OpenRecord,
  type StepPhase,
  type StepRecord,
} from '../../schema/execution.js';
import type { UnixMs } from '../base/time.js';
import { cut } from './cutting.js';
import type { Evaluation } from './evaluation.js';
import type { NodePlace, PlanNode } from './plan-nodes.js';

interface Deadline {
  readonly at: UnixMs;
  readonly node: number;
}

/** Smaller heaps are not compacted. */
const HEAP_CLEAN_MIN = 64;
/** `outside`: waits for others; `active`: keeps the instance running; `deferred`: waits for a time. */
type Sort = 'outside' | 'active' | 'deferred';

const SORT_OF: Readonly<Record<StepPhase, Sort | undefined>> = {
  ready: undefined,
  delay: 'deferred',
  limited: 'deferred',
  backoff: 'deferred',
  asking: 'active',
  sleep: 'active',
  run: 'active',
  task: 'outside',
  child: 'outside',
  event: 'outside',
  gate: 'outside',
};

/**
 * An index over the open nodes of one execution: how many leaves of each sort are open, and the next deadline. It is
 * derived and never stored; with it an event costs the depth of the tree and not its size. Outdated deadlines stay in
 * the heap until they reach its top: an entry counts while its node is open with exactly that deadline. Equal times are
 * ordered by node, so that a rebuilt index behaves like one that grew.
 */
export class OpenLeaves {
  outside = 0;
  active = 0;
  deferred = 0;
  /** Open nodes when it was made. */
  readonly nodes: number;
  readonly #execution: Execution;
  #heap: TinyQueue<Deadline> | undefined;

  constructor(execution: Execution, nodes: readonly PlanNode[]) {
    this.#execution = execution;
    let count = 0;
    for (const key in execution.o) {
      const node = Number(key);
      count += 1;
      if (nodes[node]?.kind.isLeaf === true) this.add(node, execution.o[node] as StepRecord);
      else this.watch(node, execution.o[node]!);
    }
    this.nodes = count;
  }

  /** For composites, which are not counted. */
  watch(node: number, record: OpenRecord): void {
    const at = deadlineOf(record);
    if (at !== undefined) this.#push({ at, node });
  }

  /** Call after the record of a leaf was opened or replaced. */
  add(node: number, record: StepRecord): void {
    this.#count(record, 1);
    this.watch(node, record);
  }

  /** Call before the record of a leaf is replaced or removed. */
  remove(record: StepRecord): void {
    this.#count(record, -1);
  }

  next(): Deadline | undefined {
    for (;;) {
      const top = this.#heap?.peek();
      if (top === undefined || this.#counts(top)) return top;
      this.pop();
    }
  }

  pop(): void {
    this.#heap?.pop();
  }

  #count({ p, c }: StepRecord, by: 1 | -1): void {
    // A child that is not created yet keeps the instance running, so that a waiting instance always has its child.
    const sort = p === 'child' && c === undefined ? 'active' : SORT_OF[p];
    if (sort !== undefined) this[sort] += by;
  }

  #counts({ at, node }: Deadline): boolean {
    const record = this.#execution.o[node];
    return record !== undefined && deadlineOf(record) === at;
  }

  #push(deadline: Deadline): void {
    this.#heap ??= new TinyQueue<Deadline>([], compare);
    if (this.#heap.length > HEAP_CLEAN_MIN + 4 * (this.outside + this.active + this.deferred)) {
      this.#heap = new TinyQueue(
        this.#heap.data.filter((entry) => this.#counts(entry)),
        compare,
      );
    }
    this.#heap.push(deadline);
  }
}

export const isDeferred = (record: StepRecord): boolean => SORT_OF[record.p] === 'deferred';

export function deadlineOf(record: OpenRecord): UnixMs | undefined {
  // A node that is being cut off ends when its protected work ends.
  if (record.x === 1) return undefined;
  const { w, d, h } = record as Partial<StepRecord>;
  return earlier(earlier(w, d), h);
}

export function earlier(a: UnixMs | undefined, b: UnixMs | undefined): UnixMs | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return Math.min(a, b);
}

const compare = (a: Deadline, b: Deadline): number => a.at - b.at || a.node - b.node;

/** Times out a composite, which fails once its protected work has ended. */
export function timeOutBlock(run: Evaluation, node: NodePlace, record: OpenRecord): void {
  run.progress.counts.timeouts += 1;
  run.noteFailure(node, 'timeout', `${node.type} ${node.id} timed out after ${node.timeoutMs} ms`);
  delete record.d;
  record.o = 1;
  record.y = run.cause!;
  const isProtected = cut(run, node, 'race');
  if (!isProtected && run.execution.o[node.index] === undefined) run.notifyParent(node, FAILED);
}

export function startTimeLimit({ snapshot, execution, env }: Evaluation): void {
  if (snapshot.timeoutMs != null) execution.u = env.now + snapshot.timeoutMs;
}

/** The time limit of a node that applies even while nothing may start: for a sleep or gate, only its deadline. */
export function limitOf(record: OpenRecord): UnixMs | undefined {
  if (record.x === 1) return undefined;
  const { p, d, h } = record as Partial<StepRecord>;
  return earlier(p === 'sleep' || p === 'gate' ? undefined : d, h);
}

export function firstLimit({ execution }: Evaluation): UnixMs | null {
  let first = execution.u;
  for (const key in execution.o) first = earlier(first, limitOf(execution.o[key]!));
  return first ?? null;
}

/** The current time for time limits, which does not advance in a pause. */
export const limitClock = ({ execution, env }: Evaluation): UnixMs => execution.z ?? env.now;

/** Postpones all limits in place: call `dropLeaves` afterwards. */
export function shiftLimits(execution: Execution, byMs: number): void {
  if (execution.u !== undefined) execution.u += byMs;
  for (const key in execution.o) {
    const record = execution.o[key] as StepRecord;
    if (record.d !== undefined) record.d += byMs;
    if (record.h !== undefined) record.h += byMs;
  }
}
