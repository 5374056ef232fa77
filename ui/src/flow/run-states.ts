/**
 * Computes the state of every block of a run from the instance tree, its waits, its failure and its attempts. Pure;
 * reads no clock: what is open has no end.
 */

import type { Failure, StepAttempt, TreeNode, Wait } from 'durable-workflow-engine-client';
import { formatCount } from '../lib/format.ts';
import type { Outline, OutlineBlock } from './outline.ts';

/** What the server has answered about a run; a member is undefined until it is loaded. */
export interface RunFacts {
  readonly tree: readonly TreeNode[];
  /** `waiting_for` of the explanation. */
  readonly waits?: readonly Wait[];
  readonly failure?: Failure | null;
  readonly attempts?: readonly StepAttempt[];
}

export const DRAWN_STATES = [
  'pending',
  'running',
  'waiting',
  'retrying',
  'completed',
  'failed',
  'cancelled',
  'skipped',
] as const;
export type DrawnState = (typeof DRAWN_STATES)[number];

export interface BlockStatus {
  readonly state: DrawnState;
  /** Activity or progress in a few words; may be ''. */
  readonly note: string;
  /** Counted from 1; undefined if unknown. */
  readonly attemptNumber: number | undefined;
  readonly attemptsMax: number | undefined;
  /** Unix ms. */
  readonly startedAt: number | undefined;
  readonly endedAt: number | undefined;
  /** When a wait ends by itself, in Unix ms. */
  readonly until: number | undefined;
  readonly waits: readonly Wait[];
  readonly childInstanceId: string | undefined;
}

/** By path. Excludes blocks that are not in the tree: hooks, and what was not loaded. */
export function statusesOf(outline: Outline, run: RunFacts): ReadonlyMap<string, BlockStatus> {
  const waits = groupedBy(run.waits ?? [], ({ block_id }) => block_id ?? '');
  const attempts = lastAttempts(run.attempts ?? []);
  const iterations = iterationsIn(run);
  const statuses = new Map<string, BlockStatus>();
  for (const node of run.tree) {
    const path = outline.pathOf.get(node.block_id);
    const block = path === undefined ? undefined : outline.byPath.get(path);
    if (block === undefined) continue;
    statuses.set(
      block.path,
      statusOf(block, node, {
        waits: waits.get(node.block_id) ?? [],
        failure: run.failure?.block_id === node.block_id ? run.failure : undefined,
        lastAttempt: attempts.get(node.block_id),
        iteration: node.iteration ?? iterations.get(node.block_id),
      }),
    );
  }
  return statuses;
}

/** The full state in words, for screen readers: `charge, step, failed, attempt 3 of 3`. */
export function statusText({ state, note, attemptNumber, attemptsMax }: BlockStatus): string {
  const attempts = attemptsText(attemptNumber, attemptsMax);
  return [state, attempts, note].filter((part) => part !== '').join(', ');
}

/** The only allowed attempt is not worth mentioning. */
export function attemptsText(
  attemptNumber: number | undefined,
  attemptsMax: number | undefined,
): string {
  if (attemptNumber === undefined || (attemptNumber === 1 && attemptsMax === undefined)) return '';
  return attemptsMax === undefined
    ? `attempt ${attemptNumber}`
    : `attempt ${attemptNumber} of ${attemptsMax}`;
}

interface Facts {
  readonly waits: readonly Wait[];
  readonly failure: Failure | undefined;
  readonly lastAttempt: number | undefined;
  readonly iteration: number | undefined;
}

function statusOf(block: OutlineBlock, node: TreeNode, facts: Facts): BlockStatus {
  const waits = isOpen(node) ? facts.waits : [];
  const state = stateOf(node, waits);
  const attempt = facts.failure?.attempt ?? waits[0]?.attempt ?? facts.lastAttempt;
  const isReached = state !== 'pending' && state !== 'skipped';
  return {
    state,
    note: isReached ? noteOf(block, node, waits, facts) : '',
    attemptNumber: isReached && attempt != null ? attempt + 1 : undefined,
    attemptsMax: attemptsMaxOf(block),
    startedAt: timeOf(node.started_at),
    endedAt: timeOf(node.completed_at),
    until: waits.length === 1 ? timeOf(waits[0]!.until) : undefined,
    waits,
    childInstanceId: node.child_instance_id,
  };
}

function isOpen({ state }: TreeNode): boolean {
  return state === 'running' || state === 'waiting';
}

/** A step inside a loop may be in several states at once: the one that delays it most is shown. */
function stateOf({ state, output_count }: TreeNode, waits: readonly Wait[]): DrawnState {
  // A finished loop has prepared its blocks for an iteration that never starts.
  if (state === 'skipped' && output_count !== undefined && output_count > 0) return 'completed';
  if (waits.some(({ kind }) => kind === 'retry')) return 'retrying';
  if (waits.length === 0) return state;
  return waits.some(({ kind }) => !AT_WORK.has(kind)) ? 'waiting' : 'running';
}

type WaitKind = Wait['kind'];

/** Waits for work in progress. */
const AT_WORK: ReadonlySet<WaitKind> = new Set(['worker', 'handler', 'engine']);

export const WAIT_NOTES: Readonly<Record<WaitKind, string>> = {
  pause: 'paused',
  start: 'waiting to start',
  handoff: 'runs elsewhere',
  slot: 'waiting for a free slot',
  throttle: 'throttled',
  signal: 'waiting for a signal',
  task: 'waiting for a worker',
  worker: 'on a worker',
  handler: 'in the server',
  approval: 'waiting for an answer',
  sleep: 'sleeps',
  delay: 'delayed',
  retry: 'waiting to retry',
  child: 'waiting for its child',
  rate_limit: 'rate limited',
  event: 'waiting for an event',
  engine: 'about to continue',
};

function noteOf(
  block: OutlineBlock,
  node: TreeNode,
  waits: readonly Wait[],
  { failure, iteration }: Facts,
): string {
  if (node.items !== undefined) {
    const { total, running, ended } = node.items;
    const atWork = running === 0 ? '' : `, ${formatCount(running)} running`;
    return `${formatCount(ended)} / ${formatCount(total)} items${atWork}`;
  }
  if (block.look === 'loop' && iteration !== undefined && isOpen(node)) {
    return `${formatCount(iteration + 1)} / ${formatCount(iterationsMax(block))}`;
  }
  if (failure !== undefined) return failure.message;
  const first = waits.find(({ kind }) => !AT_WORK.has(kind)) ?? waits[0];
  if (first === undefined && node.output_count) return `${formatCount(node.output_count)} outputs`;
  if (first === undefined || first.kind === 'retry') return '';
  const words =
    first.kind === 'event' && first.name !== undefined ? `waiting for ${first.name}` : '';
  const others = waits.length === 1 ? '' : `, ${formatCount(waits.length - 1)} more`;
  return (words === '' ? WAIT_NOTES[first.kind] : words) + others;
}

/** The server's default for loops. */
const ITERATIONS_MAX_DEFAULT = 1_000;

function iterationsMax({ source }: OutlineBlock): number {
  const own = source?.type === 'loop' ? source.max_iterations : undefined;
  return own ?? ITERATIONS_MAX_DEFAULT;
}

function attemptsMaxOf({ source }: OutlineBlock): number | undefined {
  return source?.type === 'step' ? source.retry?.max_attempts : undefined;
}

/** Of the latest iteration. */
function lastAttempts(attempts: readonly StepAttempt[]): ReadonlyMap<string, number> {
  const last = new Map<string, StepAttempt>();
  for (const attempt of attempts) {
    const known = last.get(attempt.block_id);
    if (known === undefined || isLater(attempt, known)) last.set(attempt.block_id, attempt);
  }
  return new Map([...last].map(([id, { attempt }]) => [id, attempt]));
}

function isLater(a: StepAttempt, b: StepAttempt): boolean {
  if (a.iteration === b.iteration) return a.attempt > b.attempt;
  return inIterationOrder(a.iteration, b.iteration) > 0;
}

/** Counters of loops, the outermost first: '2.10' comes after '2.9'. */
export function inIterationOrder(a: string, b: string): number {
  if (!a.includes('.') && !b.includes('.')) return Number(a) - Number(b);
  const [one, other] = [a.split('.'), b.split('.')];
  for (const [i, counter] of one.entries()) {
    const difference = Number(counter) - Number(other[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Iterations by block, taken from the paths of open steps, such as `orders[2]/charge`. */
function iterationsIn({ waits = [], failure }: RunFacts): ReadonlyMap<string, number> {
  const iterations = new Map<string, number>();
  for (const path of [failure?.path, ...waits.map((wait) => wait.path)]) {
    for (const part of path?.split('/') ?? []) {
      const [, id, iteration] = /^(.*)\[(\d+)\]$/.exec(part) ?? [];
      if (id !== undefined)
        iterations.set(id, Math.max(Number(iteration), iterations.get(id) ?? 0));
    }
  }
  return iterations;
}

/** Until now, but at most until the wait ends by itself. */
export function notBeyond(until: number | undefined, now: number): number {
  return until === undefined ? now : Math.min(until, now);
}

export function timeOf(instant: string | null | undefined): number | undefined {
  return instant == null ? undefined : Date.parse(instant);
}

function groupedBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}
