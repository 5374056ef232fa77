/**
 * The rows and bars of a timeline: a row for every block that has something to show, within those of the
 * blocks around it, a row for each pass of a loop, and one bar for each try. What a hundred thousand tries
 * need is indexed once; the rows that are shown follow from which of them are open. Pure; `now` is given.
 */

import type { StepAttempt, Wait } from 'durable-workflow-engine-client';
import { formatCount } from '../lib/format.ts';
import type { Look, Outline, OutlineBlock } from './outline.ts';
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

/** What a part of a bar shows: told apart by its pattern as well as by its colour. */
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
  /** Counted from 0; undefined of what is no try. */
  readonly attempt: number | undefined;
  readonly worker: string | null;
  readonly error: string | null;
  /** What it waits for, in words. */
  readonly note: string;
  /** Goes on. */
  readonly isOpen: boolean;
  /** When it is over by itself, in Unix ms. */
  readonly until?: number | undefined;
  /** When it began is not known. */
  readonly isEndOnly?: boolean;
}

export type Row =
  | {
      readonly kind: 'block';
      readonly key: string;
      readonly block: OutlineBlock;
      readonly depth: number;
      readonly bars: readonly Bar[];
      /** Has rows inside; undefined when it has none. */
      readonly isOpen: boolean | undefined;
      readonly state: DrawnState | undefined;
    }
  | {
      readonly kind: 'pass';
      readonly key: string;
      readonly block: OutlineBlock;
      readonly depth: number;
      readonly bars: readonly Bar[];
      readonly isOpen: boolean;
      /** Counted from 0. */
      readonly pass: number;
    }
  | {
      /** Leads to the other passes of a loop that has more than are shown at once. */
      readonly kind: 'pages';
      readonly key: string;
      readonly block: OutlineBlock;
      readonly depth: number;
      readonly page: number;
      readonly pages: number;
      /** Of passes that tries are known of. */
      readonly total: number;
      /** There are others, whose tries were not read. */
      readonly isCut: boolean;
      /** The first and the last pass on the page, as they are counted from 1. */
      readonly first: number;
      readonly last: number;
      /** The time that they took. */
      readonly range: Range;
    };

export type PagesRow = Extract<Row, { kind: 'pages' }>;

/** Of a run that is read in part, the numbers of passes go beyond how many there are here. */
export function pagesText(
  { first, last, total, isCut }: Pick<PagesRow, 'first' | 'last' | 'total' | 'isCut'>,
  word: string,
): string {
  const shown = `${formatCount(first)}–${formatCount(last)}`;
  return isCut
    ? `${word} ${shown}, of ${formatCount(total)} that are read`
    : `${shown} of ${formatCount(total)} ${word}`;
}

/** So many passes of a loop are shown at once. */
export const PASSES_PER_PAGE = 50;
/** A loop with more passes begins with them closed. */
const OPEN_PASSES_MAX = 3;

/** All that happened in one pass of the loops around; the outermost is the run itself. */
interface Pass {
  /** By the paths of blocks. There may be a hundred thousand passes: what they have not is not made. */
  tries: Map<string, Bar[]> | undefined;
  /** By the paths of loops, then by pass. */
  loops: Map<string, Map<number, Pass>> | undefined;
  from: number;
  to: number;
  /** A step has failed in it, and was not tried again. */
  hasFailed: boolean;
  isOpen: boolean;
}

export interface TimelineIndex {
  readonly outline: Outline;
  readonly root: Pass;
  /** Of blocks that the definition has no more. */
  readonly strays: readonly TableTry[];
  readonly statuses: ReadonlyMap<string, BlockStatus>;
  readonly from: number;
  readonly to: number;
  readonly now: number;
}

/** @param now Unix ms: what goes on ends there; for a run that has ended, any time after it */
export function timelineOf(outline: Outline, run: RunFacts, now: number): TimelineIndex {
  const statuses = statusesOf(outline, run);
  const root = newPass();
  const ends = new Map<string, number>();
  const strays: TableTry[] = [];
  for (const attempt of run.attempts ?? []) {
    const block = outline.byPath.get(outline.pathOf.get(attempt.block_id) ?? '');
    const before = attempt.attempt === 0 ? undefined : ends.get(tryKey(attempt, -1));
    const bar = tryBar(attempt, before, statuses.get(block?.path ?? '')?.startedAt, now);
    if (bar === undefined) continue;
    if (block === undefined) {
      strays.push(tableTry(attempt.block_id, attempt.iteration, bar));
      continue;
    }
    // Only a failure may be followed by another try, and texts for keys cost more than all the rest.
    if (attempt.state !== 'completed') ends.set(tryKey(attempt, 0), bar.segments.at(-1)!.to);
    add(root, block, countersOf(attempt.iteration), bar);
  }
  for (const wait of run.waits ?? []) addWait(root, outline, wait, now);
  markRetries(root);
  const times = [...statuses.values()].flatMap(({ startedAt, endedAt }) => [
    ...(startedAt === undefined ? [] : [startedAt, endedAt ?? now]),
  ]);
  let [from, to] = [root.from, root.to];
  for (const at of times) {
    from = Math.min(from, at);
    to = Math.max(to, at);
  }
  if (from > to) [from, to] = [now - 1_000, now];
  return { outline, root, strays, statuses, from, to: Math.max(to, from + 1), now };
}

const tryKey = ({ block_id, iteration, attempt }: StepAttempt, other: number) =>
  `${block_id}@${iteration}@${attempt + other}`;

/** One try, or what a step did that has none: those of the engine itself, such as a delay or a question. */
export interface TableTry {
  /** The path of its block; its id where the definition has it no more. */
  readonly path: string;
  /** The counters of the loops around it, as `2.0`; '' outside of loops. */
  readonly iteration: string;
  readonly bar: Bar;
  /** Unix ms; undefined where it was not, or is not known. */
  readonly queuedAt: number | undefined;
  readonly startedAt: number | undefined;
  readonly endedAt: number | undefined;
  readonly tookMs: number | undefined;
}

/** The bars without their order by blocks: oldest first, for a table. */
export function triesOf(index: TimelineIndex): readonly TableTry[] {
  const rows = [...index.strays];
  takeTries(index.root, '', rows);
  for (const [path, status] of index.statuses) {
    const block = index.outline.byPath.get(path);
    if (block === undefined || block.lanes.length > 0 || block.repeats.length > 0) continue;
    if (index.root.tries?.has(path)) continue;
    for (const bar of spanBars(index, block, undefined, [], status)) {
      rows.push(tableTry(path, '', bar));
    }
  }
  const from = ({ bar }: TableTry) => bar.segments[0]!.from;
  return rows.sort((a, b) => from(a) - from(b));
}

function takeTries(pass: Pass, iteration: string, rows: TableTry[]): void {
  for (const [path, bars] of pass.tries ?? []) {
    for (const bar of bars) rows.push(tableTry(path, iteration, bar));
  }
  for (const passes of pass.loops?.values() ?? []) {
    for (const [number, inner] of passes) takeTries(inner, joined(iteration, number), rows);
  }
}

const joined = (iteration: string, number: number) =>
  iteration === '' ? `${number}` : `${iteration}.${number}`;

function tableTry(path: string, iteration: string, bar: Bar): TableTry {
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

function tryBar(
  attempt: StepAttempt,
  before: number | undefined,
  blockStart: number | undefined,
  now: number,
): Bar | undefined {
  const queued = timeOf(attempt.queued_at);
  const ended = timeOf(attempt.ended_at);
  // What ran in the process is noted at its end alone: it began no earlier than the one before ended.
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
    state: TRY_STATES[attempt.state],
    segments,
    attempt: attempt.attempt,
    worker: attempt.worker_id,
    error: attempt.error?.message ?? null,
    note: attempt.state === 'pending' ? WAIT_NOTES.task : TRY_NOTES[attempt.state],
    isOpen: ended === undefined,
    isEndOnly: begun === undefined,
  };
}

const TRY_STATES: Readonly<Record<StepAttempt['state'], DrawnState>> = {
  pending: 'waiting',
  claimed: 'running',
  completed: 'completed',
  failed: 'failed',
  timed_out: 'failed',
  cancelled: 'cancelled',
};

const TRY_NOTES: Readonly<Record<StepAttempt['state'], string>> = {
  pending: 'queued',
  claimed: 'with a worker',
  completed: 'completed',
  failed: 'failed',
  timed_out: 'timed out',
  cancelled: 'cancelled',
};

/** What is open inside the engine has no try of its own yet. */
function addWait(root: Pass, outline: Outline, wait: Wait, now: number): void {
  const block = outline.byPath.get(outline.pathOf.get(wait.block_id ?? '') ?? '');
  const since = timeOf(wait.since);
  if (block === undefined || since === undefined || HAS_TRY.has(wait.kind)) return;
  const kind = wait.kind === 'retry' ? 'backoff' : wait.kind === 'handler' ? 'running' : 'waiting';
  const counters = [...(wait.path ?? '').matchAll(/\[(\d+)\]/g)].map(([, pass]) => Number(pass));
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

/** These are tries that were dispatched, or nothing to see. */
const HAS_TRY: ReadonlySet<Wait['kind']> = new Set(['task', 'worker', 'engine']);

/** A try that failed, and was followed by another one: between the two lies its back-off. */
function markRetries(pass: Pass): void {
  for (const bars of pass.tries?.values() ?? []) {
    if (bars.length < 2) continue;
    bars.sort((a, b) => a.segments[0]!.from - b.segments[0]!.from);
    for (const [i, bar] of bars.entries()) {
      const next = bars[i + 1];
      if (next !== undefined && bar.state === 'failed') bars[i] = retried(bar, next);
    }
  }
  let hasFailed = [...(pass.tries?.values() ?? [])].some((bars) => bars.at(-1)?.state === 'failed');
  for (const passes of pass.loops?.values() ?? []) {
    for (const inner of passes.values()) {
      markRetries(inner);
      hasFailed ||= inner.hasFailed;
    }
  }
  pass.hasFailed = hasFailed;
}

function retried(bar: Bar, next: Bar): Bar {
  const [from, to] = [bar.segments.at(-1)!.to, next.segments[0]!.from];
  const backoff: Segment[] = to > from ? [{ kind: 'backoff', from, to }] : [];
  const segments = [...bar.segments, ...backoff];
  return { ...bar, state: 'retrying', note: `${bar.note}, tried again`, segments };
}

// ---------------------------------------------------------------- the index

function newPass(): Pass {
  return {
    tries: undefined,
    loops: undefined,
    from: Number.POSITIVE_INFINITY,
    to: Number.NEGATIVE_INFINITY,
    hasFailed: false,
    isOpen: false,
  };
}

function countersOf(iteration: string): readonly number[] {
  if (iteration === '') return [];
  return iteration.includes('.') ? iteration.split('.').map(Number) : [Number(iteration)];
}

function add(root: Pass, block: OutlineBlock, counters: readonly number[], bar: Bar): void {
  let pass = root;
  stretch(pass, bar);
  for (const [i, loop] of block.repeats.entries()) {
    pass.loops ??= new Map();
    let passes = pass.loops.get(loop);
    if (passes === undefined) {
      passes = new Map();
      pass.loops.set(loop, passes);
    }
    const counter = counters[i] ?? 0;
    let inner = passes.get(counter);
    if (inner === undefined) {
      inner = newPass();
      passes.set(counter, inner);
    }
    stretch(inner, bar);
    pass = inner;
  }
  pass.tries ??= new Map();
  const bars = pass.tries.get(block.path);
  if (bars === undefined) pass.tries.set(block.path, [bar]);
  else bars.push(bar);
}

function stretch(pass: Pass, { segments, isOpen }: Bar): void {
  pass.from = Math.min(pass.from, segments[0]!.from);
  pass.to = Math.max(pass.to, segments.at(-1)!.to);
  if (isOpen) pass.isOpen = true;
}

// ---------------------------------------------------------------- rows

/** What the viewer has chosen; what is not in it is as it is at first. */
export interface RowChoice {
  /** By the keys of rows. */
  readonly open: ReadonlyMap<string, boolean>;
  /** By the keys of the rows of loops; counted from 0. */
  readonly pages: ReadonlyMap<string, number>;
}

export function rowsOf(index: TimelineIndex, choice: RowChoice): Row[] {
  const rows: Row[] = [];
  for (const block of index.outline.blocks)
    blockRows(index, block, index.root, '', 0, choice, rows);
  return rows;
}

/** @param within the key of the pass that it is in, with a `/` behind it; '' outside of loops */
function blockRows(
  index: TimelineIndex,
  block: OutlineBlock,
  pass: Pass,
  within: string,
  depth: number,
  choice: RowChoice,
  rows: Row[],
): void {
  const key = `${within}${block.path}`;
  const status = block.repeats.length === 0 ? index.statuses.get(block.path) : undefined;
  const inner: Row[] = [];
  const passes = pass.loops?.get(block.path);
  const isOpen = choice.open.get(key) ?? true;
  if (passes !== undefined) passRows(index, block, passes, key, depth + 1, choice, inner);
  else if (!isRepeat(block)) {
    for (const { blocks } of block.lanes) {
      for (const each of blocks) blockRows(index, each, pass, within, depth + 1, choice, inner);
    }
  }
  const bars = pass.tries?.get(block.path) ?? spanBars(index, block, passes, inner, status);
  if (bars.length === 0 && inner.length === 0) return;
  const open = inner.length === 0 ? undefined : isOpen;
  rows.push({ kind: 'block', key, block, depth, bars, isOpen: open, state: status?.state });
  if (isOpen) for (const row of inner) rows.push(row);
}

/** What these do is to wait. */
const WAITS: ReadonlySet<Look> = new Set(['approval', 'sleep', 'wait_for_event', 'sub_sequence']);

const isRepeat = ({ look }: OutlineBlock) => look === 'loop' || look === 'for_each';

function passRows(
  index: TimelineIndex,
  block: OutlineBlock,
  passes: ReadonlyMap<number, Pass>,
  key: string,
  depth: number,
  choice: RowChoice,
  rows: Row[],
): void {
  if (choice.open.get(key) === false) {
    // Only that there are some is asked for.
    rows.push({ kind: 'pass', key: `${key}[]`, block, depth, bars: [], isOpen: false, pass: 0 });
    return;
  }
  const numbers = [...passes.keys()].sort((a, b) => a - b);
  const pages = Math.ceil(numbers.length / PASSES_PER_PAGE);
  const page = Math.min(choice.pages.get(key) ?? 0, pages - 1);
  const shown = numbers.slice(page * PASSES_PER_PAGE, (page + 1) * PASSES_PER_PAGE);
  if (pages > 1) {
    const [first, last] = [shown[0]! + 1, shown.at(-1)! + 1];
    const total = numbers.length;
    const range = {
      from: Math.min(...shown.map((number) => passes.get(number)!.from)),
      to: Math.max(...shown.map((number) => passes.get(number)!.to)),
    };
    const isCut = numbers.at(-1)! + 1 > total;
    const place = { key: `${key}[…]`, block, depth, page, pages, total, isCut, first, last, range };
    rows.push({ kind: 'pages', ...place });
  }
  for (const number of shown) {
    const pass = passes.get(number)!;
    const passKey = `${key}[${number}]`;
    const isOpen = choice.open.get(passKey) ?? numbers.length <= OPEN_PASSES_MAX;
    const bars = [spanBar(passKey, passState(pass), pass.from, pass.to, pass.isOpen)];
    rows.push({ kind: 'pass', key: passKey, block, depth, bars, isOpen, pass: number });
    if (!isOpen) continue;
    for (const { blocks } of block.lanes) {
      for (const each of blocks) {
        blockRows(index, each, pass, `${passKey}/`, depth + 1, choice, rows);
      }
    }
  }
}

function passState({ isOpen, hasFailed }: Pass): DrawnState {
  if (isOpen) return 'running';
  return hasFailed ? 'failed' : 'completed';
}

/** Of a block around others: from the first of them to the last. */
function spanBars(
  index: TimelineIndex,
  block: OutlineBlock,
  passes: ReadonlyMap<number, Pass> | undefined,
  inner: readonly Row[],
  status: BlockStatus | undefined,
): readonly Bar[] {
  const key = `span:${block.path}`;
  if (status?.startedAt !== undefined) {
    const { state, startedAt, endedAt, until } = status;
    const to = endedAt ?? notBeyond(until, index.now);
    const bar = { ...spanBar(key, state, startedAt, to, endedAt === undefined), until };
    if (block.lanes.length > 0) return [bar];
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
  for (const pass of passes?.values() ?? []) take(pass);
  for (const bar of inner.flatMap((row) => (row.kind === 'pages' ? [] : row.bars))) {
    const ends = { from: bar.segments[0]!.from, to: bar.segments.at(-1)!.to };
    take({ ...ends, isOpen: bar.isOpen, hasFailed: bar.state === 'failed' });
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
