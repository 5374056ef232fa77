/**
 * The rows and bars of a timeline: a row for every block with attempts, nested as in the definition, a row for each
 * iteration of a loop, and one bar per attempt. A hundred thousand attempts are indexed once; the visible rows follow
 * from which rows are open. Pure; `now` is an argument.
 */

import type { StepAttempt, Wait } from 'durable-workflow-engine-client';
import { formatCount } from '../lib/format.ts';
import type { IterationOrder } from './iteration.ts';
import type { Look } from './kinds.ts';
import type { Outline, OutlineBlock } from './outline.ts';
import {
  type BlockStatus,
  type DrawnState,
  notBeyond,
  type RunFacts,
  statusesOf,
  timeOf,
  WAIT_NOTES,
} from './run-states.ts';
import type { Range } from './time-axis.ts';

/** What a part of a bar shows: distinguished by pattern as well as by colour. */
export type SegmentKind = 'queued' | 'running' | 'waiting' | 'backoff' | 'span';

export interface Segment {
  readonly kind: SegmentKind;
  /** Unix ms. */
  readonly from: number;
  readonly to: number;
}

export interface Bar {
  readonly key: string;
  readonly state: DrawnState;
  readonly segments: readonly Segment[];
  /** Counted from 0; undefined for bars that are not attempts. */
  readonly attempt: number | undefined;
  readonly worker: string | null;
  readonly error: string | null;
  /** What it waits for, in words. */
  readonly note: string;
  /** Not finished yet. */
  readonly isOpen: boolean;
  /** When it ends by itself, in Unix ms. */
  readonly until?: number | undefined;
  /** The start is not known. */
  readonly isEndOnly?: boolean;
}

export type Row =
  | {
      readonly kind: 'block';
      readonly key: string;
      readonly block: OutlineBlock;
      readonly depth: number;
      readonly bars: readonly Bar[];
      /** Whether its rows are shown; undefined if it has none. */
      readonly isOpen: boolean | undefined;
      readonly state: DrawnState | undefined;
    }
  | {
      readonly kind: 'iteration';
      readonly key: string;
      readonly block: OutlineBlock;
      readonly depth: number;
      readonly bars: readonly Bar[];
      readonly isOpen: boolean;
      /** Counted from 0. */
      readonly iteration: number;
    }
  | {
      /** Navigation to further iterations of a loop that has more than are shown at once. */
      readonly kind: 'pages';
      readonly key: string;
      readonly block: OutlineBlock;
      readonly depth: number;
      readonly page: number;
      readonly pages: number;
      /** Iterations with known attempts. */
      readonly total: number;
      /** There are others, whose attempts were not read. */
      readonly isCut: boolean;
      /** The first and the last iteration on the page, counted from 1; not by number: their places in the order. */
      readonly first: number;
      readonly last: number;
      readonly order: IterationOrder;
      /** The time they span. */
      readonly range: Range;
    };

export type PagesRow = Extract<Row, { kind: 'pages' }>;

/** If a run is read in part, iteration numbers exceed the count of iterations read. */
export function pagesText(
  row: Pick<PagesRow, 'first' | 'last' | 'total' | 'isCut' | 'order'>,
): string {
  const { first, last, total, isCut, order } = row;
  const shown = `${formatCount(first)}–${formatCount(last)}`;
  if (order !== 'number') {
    const read = isCut ? ' that are read' : '';
    return `${order} first, ${shown} of ${formatCount(total)} iterations${read}`;
  }
  return isCut
    ? `iterations ${shown}, of ${formatCount(total)} that are read`
    : `${shown} of ${formatCount(total)} iterations`;
}

/** Iterations of a loop that are shown at once. */
export const ITERATIONS_PER_PAGE = 50;
/** A loop with more iterations starts with them closed. */
const OPEN_ITERATIONS_MAX = 3;

/** All that happened in one iteration of the surrounding loops; the outermost one is the run itself. */
interface Iteration {
  /** By block path. Created on demand: there may be 100,000 iterations. */
  attempts: Map<string, Bar[]> | undefined;
  /** By loop path, then by iteration. */
  loops: Map<string, Map<number, Iteration>> | undefined;
  from: number;
  to: number;
  /** A step has failed in it for good, and no `try_catch` within the iteration caught it. */
  hasFailed: boolean;
  isOpen: boolean;
}

export interface TimelineIndex {
  readonly outline: Outline;
  readonly catchers: Catchers;
  readonly root: Iteration;
  /** Attempts of blocks that the definition no longer has. */
  readonly strays: readonly TableAttempt[];
  readonly statuses: ReadonlyMap<string, BlockStatus>;
  readonly from: number;
  readonly to: number;
  readonly now: number;
}

/** @param now Unix ms, the end of what is open; for a finished run, any time after its end */
export function timelineOf(outline: Outline, run: RunFacts, now: number): TimelineIndex {
  const statuses = statusesOf(outline, run);
  const catchers = catchersOf(outline);
  const root = newIteration();
  const ends = new Map<string, number>();
  const strays: TableAttempt[] = [];
  for (const attempt of run.attempts ?? []) {
    const block = outline.byPath.get(outline.pathOf.get(attempt.block_id) ?? '');
    const before = attempt.attempt === 0 ? undefined : ends.get(attemptKey(attempt, -1));
    const bar = attemptBar(attempt, before, statuses.get(block?.path ?? '')?.startedAt, now);
    if (bar === undefined) continue;
    if (block === undefined) {
      strays.push(tableAttempt(attempt.block_id, attempt.iteration, bar));
      continue;
    }
    // Only a failed attempt is followed by another one, and building keys is the most expensive part.
    if (attempt.state !== 'completed') ends.set(attemptKey(attempt, 0), bar.segments.at(-1)!.to);
    add(root, block, attempt.iteration.split('.'), bar);
  }
  for (const wait of run.waits ?? []) addWait(root, outline, wait, now);
  markRetries(root, '', catchers);
  const times = [...statuses.values()].flatMap(({ startedAt, endedAt }) => [
    ...(startedAt === undefined ? [] : [startedAt, endedAt ?? now]),
  ]);
  let [from, to] = [root.from, root.to];
  for (const at of times) {
    from = Math.min(from, at);
    to = Math.max(to, at);
  }
  if (from > to) [from, to] = [now - 1_000, now];
  return { outline, catchers, root, strays, statuses, from, to: Math.max(to, from + 1), now };
}

const attemptKey = ({ block_id, iteration, attempt }: StepAttempt, other: number) =>
  `${block_id}@${iteration}@${attempt + other}`;

/** An attempt, or the activity of a step that has none: steps of the engine itself, such as a delay or an approval. */
export interface TableAttempt {
  /** The path of its block, or its id if the definition no longer has it. */
  readonly path: string;
  /** The counters of the loops around it, as `2.0`; '' outside of loops. */
  readonly iteration: string;
  readonly bar: Bar;
  /** Unix ms; undefined if it did not happen or is unknown. */
  readonly queuedAt: number | undefined;
  readonly startedAt: number | undefined;
  readonly endedAt: number | undefined;
  readonly tookMs: number | undefined;
}

/** All bars, oldest first, for a table. */
export function attemptsOf(index: TimelineIndex): readonly TableAttempt[] {
  const rows = [...index.strays];
  takeAttempts(index.root, '', rows);
  for (const [path, status] of index.statuses) {
    const block = index.outline.byPath.get(path);
    if (block === undefined || block.slots.length > 0 || block.repeats.length > 0) continue;
    if (index.root.attempts?.has(path)) continue;
    for (const bar of spanBars(index, block, undefined, [], status)) {
      rows.push(tableAttempt(path, '', bar));
    }
  }
  const from = ({ bar }: TableAttempt) => bar.segments[0]!.from;
  return rows.sort((a, b) => from(a) - from(b));
}

function takeAttempts(from: Iteration, iteration: string, rows: TableAttempt[]): void {
  for (const [path, bars] of from.attempts ?? []) {
    for (const bar of bars) rows.push(tableAttempt(path, iteration, bar));
  }
  for (const iterations of from.loops?.values() ?? []) {
    for (const [number, inner] of iterations) takeAttempts(inner, joined(iteration, number), rows);
  }
}

const joined = (iteration: string, number: number) =>
  iteration === '' ? `${number}` : `${iteration}.${number}`;

function tableAttempt(path: string, iteration: string, bar: Bar): TableAttempt {
  const parts = bar.segments.filter(({ kind }) => kind !== 'backoff');
  const queued = parts.find(({ kind }) => kind === 'queued');
  const work = parts.filter(({ kind }) => kind !== 'queued');
  const endedAt = bar.isOpen ? undefined : parts.at(-1)?.to;
  const startedAt = bar.isEndOnly ? undefined : work[0]?.from;
  const isTold = startedAt !== undefined && endedAt !== undefined;
  return {
    ...{ path, iteration, bar, queuedAt: queued?.from, startedAt, endedAt },
    tookMs: isTold ? endedAt - startedAt : undefined,
  };
}

// ---------------------------------------------------------------- bars

function attemptBar(
  attempt: StepAttempt,
  before: number | undefined,
  blockStart: number | undefined,
  now: number,
): Bar | undefined {
  const queued = timeOf(attempt.queued_at);
  const ended = timeOf(attempt.ended_at);
  // In-process attempts are recorded when they end: they started no earlier than the previous one ended.
  const started = timeOf(attempt.started_at) ?? (queued === undefined ? before : undefined);
  const begun = queued ?? started ?? (attempt.iteration === '' ? blockStart : undefined);
  const first = begun ?? ended;
  if (first === undefined) return undefined;
  const last = Math.max(first, ended ?? now);
  const workFrom = started ?? (queued === undefined ? first : undefined);
  const segments: Segment[] = [];
  if (workFrom === undefined) segments.push({ kind: 'queued', from: first, to: last });
  else {
    if (workFrom > first) segments.push({ kind: 'queued', from: first, to: workFrom });
    segments.push({ kind: 'running', from: workFrom, to: Math.max(workFrom, last) });
  }
  return {
    key: attempt.id,
    state: ATTEMPT_STATES[attempt.state],
    segments,
    attempt: attempt.attempt,
    worker: attempt.worker_id,
    error: attempt.error?.message ?? null,
    note: attempt.state === 'pending' ? WAIT_NOTES.task : ATTEMPT_NOTES[attempt.state],
    isOpen: ended === undefined,
    isEndOnly: begun === undefined,
  };
}

const ATTEMPT_STATES: Readonly<Record<StepAttempt['state'], DrawnState>> = {
  pending: 'waiting',
  claimed: 'running',
  completed: 'completed',
  failed: 'failed',
  timed_out: 'failed',
  cancelled: 'cancelled',
};

const ATTEMPT_NOTES: Readonly<Record<StepAttempt['state'], string>> = {
  pending: 'queued',
  claimed: 'on a worker',
  completed: 'completed',
  failed: 'failed',
  timed_out: 'timed out',
  cancelled: 'cancelled',
};

/** Work inside the engine that is open has no attempt yet. */
function addWait(root: Iteration, outline: Outline, wait: Wait, now: number): void {
  const block = outline.byPath.get(outline.pathOf.get(wait.block_id ?? '') ?? '');
  const since = timeOf(wait.since);
  if (block === undefined || since === undefined || HAS_ATTEMPT.has(wait.kind)) return;
  const kind = wait.kind === 'retry' ? 'backoff' : wait.kind === 'handler' ? 'running' : 'waiting';
  const counters = [...(wait.path ?? '').matchAll(/\[(\d+)\]/g)].map(([, counter]) => counter!);
  const until = timeOf(wait.until);
  add(root, block, counters, {
    key: `wait:${wait.path}`,
    state: kind === 'backoff' ? 'retrying' : kind,
    segments: [{ kind, from: since, to: Math.max(since, notBeyond(until, now)) }],
    until,
    attempt: wait.attempt,
    worker: null,
    error: wait.last_error ?? null,
    note: WAIT_NOTES[wait.kind],
    isOpen: true,
  });
}

/** These waits have an attempt already, or nothing to show. */
const HAS_ATTEMPT: ReadonlySet<Wait['kind']> = new Set(['task', 'worker', 'engine']);

/** By the path of a block in a try list: that of the innermost `try_catch`, which goes on after a failure. */
type Catchers = ReadonlyMap<string, string>;

function catchersOf({ blocks }: Outline): Catchers {
  const catchers = new Map<string, string>();
  const visit = ({ path, look, slots }: OutlineBlock, catcher: string | undefined) => {
    if (catcher !== undefined) catchers.set(path, catcher);
    for (const { key, blocks } of slots) {
      const own = look === 'try_catch' && key === 'try' ? path : catcher;
      for (const block of blocks) visit(block, own);
    }
  };
  for (const block of blocks) visit(block, undefined);
  return catchers;
}

/** Whether a failure of the block at `path` does not fail the group or iteration at `within`; '' for the run. */
function isCaught(catchers: Catchers, path: string, within: string): boolean {
  const catcher = catchers.get(path);
  if (catcher === undefined) return false;
  return within === '' || `${catcher}/`.startsWith(`${within}/`);
}

/**
 * The gap between a failed attempt and the next one is its backoff.
 * @param within the path of the loop; '' for the run
 */
function markRetries(iteration: Iteration, within: string, catchers: Catchers): void {
  for (const bars of iteration.attempts?.values() ?? []) {
    if (bars.length < 2) continue;
    bars.sort((a, b) => a.segments[0]!.from - b.segments[0]!.from);
    for (const [i, bar] of bars.entries()) {
      const next = bars[i + 1];
      if (next !== undefined && bar.state === 'failed') bars[i] = retried(bar, next);
    }
  }
  let hasFailed = [...(iteration.attempts ?? [])].some(
    ([path, bars]) => bars.at(-1)?.state === 'failed' && !isCaught(catchers, path, within),
  );
  for (const [loop, iterations] of iteration.loops ?? []) {
    for (const inner of iterations.values()) {
      markRetries(inner, loop, catchers);
      hasFailed ||= inner.hasFailed && !isCaught(catchers, loop, within);
    }
  }
  iteration.hasFailed = hasFailed;
}

function retried(bar: Bar, next: Bar): Bar {
  const [from, to] = [bar.segments.at(-1)!.to, next.segments[0]!.from];
  const backoff: Segment[] = to > from ? [{ kind: 'backoff', from, to }] : [];
  const segments = [...bar.segments, ...backoff];
  return { ...bar, state: 'retrying', note: `${bar.note}, retried`, segments };
}

// ---------------------------------------------------------------- the index

function newIteration(): Iteration {
  return {
    attempts: undefined,
    loops: undefined,
    from: Number.POSITIVE_INFINITY,
    to: Number.NEGATIVE_INFINITY,
    hasFailed: false,
    isOpen: false,
  };
}

/** @param counters of the blocks in `block.counted` */
function add(root: Iteration, block: OutlineBlock, counters: readonly string[], bar: Bar): void {
  let iteration = root;
  stretch(iteration, bar);
  for (const loop of block.repeats) {
    iteration.loops ??= new Map();
    let iterations = iteration.loops.get(loop);
    if (iterations === undefined) {
      iterations = new Map();
      iteration.loops.set(loop, iterations);
    }
    const counter = Number(counters[block.counted.indexOf(loop)] ?? 0);
    let inner = iterations.get(counter);
    if (inner === undefined) {
      inner = newIteration();
      iterations.set(counter, inner);
    }
    stretch(inner, bar);
    iteration = inner;
  }
  iteration.attempts ??= new Map();
  const bars = iteration.attempts.get(block.path);
  if (bars === undefined) iteration.attempts.set(block.path, [bar]);
  else bars.push(bar);
}

function stretch(iteration: Iteration, { segments, isOpen }: Bar): void {
  iteration.from = Math.min(iteration.from, segments[0]!.from);
  iteration.to = Math.max(iteration.to, segments.at(-1)!.to);
  if (isOpen) iteration.isOpen = true;
}

// ---------------------------------------------------------------- rows

/** The user's choices; everything else is in its initial state. */
export interface RowChoice {
  /** Of the iterations of loops. */
  readonly order: IterationOrder;
  /** By row key. */
  readonly open: ReadonlyMap<string, boolean>;
  /** By the row key of the loop; counted from 0. */
  readonly pages: ReadonlyMap<string, number>;
}

export function rowsOf(index: TimelineIndex, choice: RowChoice): Row[] {
  const rows: Row[] = [];
  for (const block of index.outline.blocks)
    blockRows(index, block, index.root, '', 0, choice, rows);
  return rows;
}

/** @param within the key of the surrounding iteration, followed by `/`; '' outside of loops */
function blockRows(
  index: TimelineIndex,
  block: OutlineBlock,
  iteration: Iteration,
  within: string,
  depth: number,
  choice: RowChoice,
  rows: Row[],
): void {
  const key = `${within}${block.path}`;
  const status = block.repeats.length === 0 ? index.statuses.get(block.path) : undefined;
  const inner: Row[] = [];
  const iterations = iteration.loops?.get(block.path);
  const isOpen = choice.open.get(key) ?? true;
  if (iterations !== undefined)
    iterationRows(index, block, iterations, key, depth + 1, choice, inner);
  else if (!isRepeat(block)) {
    for (const { blocks } of block.slots) {
      for (const each of blocks)
        blockRows(index, each, iteration, within, depth + 1, choice, inner);
    }
  }
  const bars =
    iteration.attempts?.get(block.path) ?? spanBars(index, block, iterations, inner, status);
  if (bars.length === 0 && inner.length === 0) return;
  const open = inner.length === 0 ? undefined : isOpen;
  rows.push({ kind: 'block', key, block, depth, bars, isOpen: open, state: status?.state });
  if (isOpen) for (const row of inner) rows.push(row);
}

/** These blocks only wait. */
const WAITS: ReadonlySet<Look> = new Set(['approval', 'sleep', 'wait_for_event', 'sub_sequence']);

const isRepeat = ({ look }: OutlineBlock) => look === 'loop' || look === 'for_each';

function iterationRows(
  index: TimelineIndex,
  block: OutlineBlock,
  iterations: ReadonlyMap<number, Iteration>,
  key: string,
  depth: number,
  choice: RowChoice,
  rows: Row[],
): void {
  const row = { kind: 'iteration', block, depth } as const;
  if (choice.open.get(key) === false) {
    // The caller only needs to know that there are some.
    rows.push({ ...row, key: `${key}[]`, bars: [], isOpen: false, iteration: 0 });
    return;
  }
  const { order } = choice;
  const numbers = orderedNumbers(iterations, order);
  const pages = Math.ceil(numbers.length / ITERATIONS_PER_PAGE);
  const page = Math.min(choice.pages.get(key) ?? 0, pages - 1);
  const shown = numbers.slice(page * ITERATIONS_PER_PAGE, (page + 1) * ITERATIONS_PER_PAGE);
  if (pages > 1) {
    const start = page * ITERATIONS_PER_PAGE;
    const [first, last] =
      order === 'number' ? [shown[0]! + 1, shown.at(-1)! + 1] : [start + 1, start + shown.length];
    const total = numbers.length;
    const range = {
      from: Math.min(...shown.map((number) => iterations.get(number)!.from)),
      to: Math.max(...shown.map((number) => iterations.get(number)!.to)),
    };
    const isCut = numbers.some((number) => number >= total);
    const place = { key: `${key}[…]`, block, depth, page, pages, total, isCut, first, last, range };
    rows.push({ kind: 'pages', ...place, order });
  }
  for (const number of shown) {
    const iteration = iterations.get(number)!;
    const own = `${key}[${number}]`;
    const isOpen = choice.open.get(own) ?? numbers.length <= OPEN_ITERATIONS_MAX;
    rows.push({
      ...row,
      key: own,
      bars: [iterationBar(own, iteration)],
      isOpen,
      iteration: number,
    });
    if (!isOpen) continue;
    for (const { blocks } of block.slots) {
      for (const each of blocks) {
        blockRows(index, each, iteration, `${own}/`, depth + 1, choice, rows);
      }
    }
  }
}

function orderedNumbers(
  iterations: ReadonlyMap<number, Iteration>,
  order: IterationOrder,
): readonly number[] {
  const numbers = [...iterations.keys()].sort((a, b) => a - b);
  if (order === 'number') return numbers;
  const weightOf = (number: number) => {
    const { from, to, hasFailed } = iterations.get(number)!;
    return order === 'failed' ? Number(hasFailed) : to - from;
  };
  return numbers.sort((a, b) => weightOf(b) - weightOf(a));
}

function iterationBar(key: string, iteration: Iteration): Bar {
  const { from, to, isOpen } = iteration;
  return spanBar(key, iterationState(iteration), from, to, isOpen);
}

function iterationState({ isOpen, hasFailed }: Iteration): DrawnState {
  if (isOpen) return 'running';
  return hasFailed ? 'failed' : 'completed';
}

/** For a block with children: from the first of them to the last. */
function spanBars(
  index: TimelineIndex,
  block: OutlineBlock,
  iterations: ReadonlyMap<number, Iteration> | undefined,
  inner: readonly Row[],
  status: BlockStatus | undefined,
): readonly Bar[] {
  const key = `span:${block.path}`;
  if (status?.startedAt !== undefined) {
    const { state, startedAt, endedAt, until } = status;
    const to = endedAt ?? notBeyond(until, index.now);
    const bar = { ...spanBar(key, state, startedAt, to, endedAt === undefined), until };
    if (block.slots.length > 0) return [bar];
    const kind = WAITS.has(block.look) ? 'waiting' : 'running';
    return [{ ...bar, segments: [{ ...bar.segments[0]!, kind }] }];
  }
  let [from, to, isOpen, hasFailed] = [
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
    false,
    false,
  ];
  const take = (part: { from: number; to: number; isOpen: boolean; hasFailed: boolean }) => {
    from = Math.min(from, part.from);
    to = Math.max(to, part.to);
    isOpen ||= part.isOpen;
    hasFailed ||= part.hasFailed;
  };
  for (const iteration of iterations?.values() ?? []) take(iteration);
  for (const row of inner) {
    const isFatal = !isCaught(index.catchers, row.block.path, block.path);
    for (const bar of row.kind === 'pages' ? [] : row.bars) {
      const ends = { from: bar.segments[0]!.from, to: bar.segments.at(-1)!.to };
      take({ ...ends, isOpen: bar.isOpen, hasFailed: isFatal && bar.state === 'failed' });
    }
  }
  if (from > to) return [];
  return [spanBar(key, isOpen ? 'running' : hasFailed ? 'failed' : 'completed', from, to, isOpen)];
}

function spanBar(key: string, state: DrawnState, from: number, to: number, isOpen: boolean): Bar {
  return {
    ...{ key, state, segments: [{ kind: 'span', from, to: Math.max(from, to) }] },
    ...{ attempt: undefined, worker: null, error: null, note: '', isOpen },
  };
}
