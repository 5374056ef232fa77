/**
 * An index over the open nodes of one execution: how many leaves, which are its steps, there are of each
 * sort, and which deadline of any node is next. It follows from the execution, is never stored, and exists
 * so that an event costs the depth of the tree and not its size.
 *
 * Deadlines that no longer count stay in the heap until they surface: an entry counts while its node
 * is open with exactly that deadline. Equal times are ordered by node, so that an index rebuilt from
 * rows gives the same order as one that grew.
 */

import TinyQueue from 'tinyqueue';
import type { Execution, OpenRecord, StepPhase, StepRecord } from '../../schema/execution.js';
import type { UnixMs } from '../base/time.js';
import type { PlanNode } from './plan-nodes.js';

interface Deadline {
  readonly at: UnixMs;
  readonly node: number;
}

/** Heaps smaller than this are not worth a clean-up. */
const HEAP_CLEAN_MIN = 64;

/** `outside` wait for workers, people and others, `active` keeps the instance running, `deferred` wait for a time. */
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

/** A child that has yet to be made is work of the instance, so that who sees it wait finds the child. */
function sortOf({ p, c }: StepRecord): Sort | undefined {
  return p === 'child' && c === undefined ? 'active' : SORT_OF[p];
}

export class OpenLeaves {
  outside = 0;
  active = 0;
  deferred = 0;
  readonly #execution: Execution;
  #heap = new TinyQueue<Deadline>([], compare);

  constructor(execution: Execution, nodes: readonly PlanNode[]) {
    this.#execution = execution;
    for (const key in execution.o) {
      const node = Number(key);
      if (nodes[node]?.kind.isLeaf === true) this.add(node, execution.o[node] as StepRecord);
      else this.watch(node, execution.o[node]!);
    }
  }

  /** A composite is open from now on: only its deadline is of interest. */
  watch(node: number, record: OpenRecord): void {
    const at = deadlineOf(record);
    if (at !== undefined) this.#push({ at, node });
  }

  /** Counts a step that is open from now on, or whose record has just changed. */
  add(node: number, record: StepRecord): void {
    this.#count(record, 1);
    this.watch(node, record);
  }

  /** Before the record of a step changes, or is removed. */
  remove(record: StepRecord): void {
    this.#count(record, -1);
  }

  /** The earliest deadline that counts; undefined when there is none. */
  next(): Deadline | undefined {
    for (;;) {
      const top = this.#heap.peek();
      if (top === undefined || this.#counts(top)) return top;
      this.#heap.pop();
    }
  }

  pop(): void {
    this.#heap.pop();
  }

  #count(record: StepRecord, by: 1 | -1): void {
    const sort = sortOf(record);
    if (sort !== undefined) this[sort] += by;
  }

  #counts({ at, node }: Deadline): boolean {
    const record = this.#execution.o[node];
    return record !== undefined && deadlineOf(record) === at;
  }

  #push(deadline: Deadline): void {
    if (this.#heap.length > HEAP_CLEAN_MIN + 4 * (this.outside + this.active + this.deferred)) {
      this.#heap = new TinyQueue(
        this.#heap.data.filter((entry) => this.#counts(entry)),
        compare,
      );
    }
    this.#heap.push(deadline);
  }
}

/** Whether the step waits for nothing but a time. */
export function isDeferred(record: StepRecord): boolean {
  return SORT_OF[record.p] === 'deferred';
}

/** When something happens to an open node by itself; undefined: never. */
export function deadlineOf(record: OpenRecord): UnixMs | undefined {
  // What is being cut off ends with the work that goes on in it.
  if (record.x === 1) return undefined;
  const { w, d, h } = record as Partial<StepRecord>;
  return earlier(earlier(w, d), h);
}

/** The first of two times, either of which may not be there. */
export function earlier(a: UnixMs | undefined, b: UnixMs | undefined): UnixMs | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return Math.min(a, b);
}

function compare(a: Deadline, b: Deadline): number {
  return a.at - b.at || a.node - b.node;
}
