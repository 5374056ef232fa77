/**
 * What every block of a run is at: the tree of the instance, what it waits for, why it failed and its tries,
 * laid over the outline of the definition. Pure; no clock: what is still going on has no end.
 */

import type { Failure, StepAttempt, TreeNode, Wait } from 'durable-workflow-engine-client';
import { formatCount } from '../lib/format.ts';
import type { Outline, OutlineBlock } from './outline.ts';

/** What is known of one run, as the server answered it; a member is absent while it is not loaded. */
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
  /** What it is doing or how far it has come, in a few words; may be ''. */
  readonly note: string;
  /** Counted from 1; undefined where it is not known. */
  readonly tryNumber: number | undefined;
  readonly triesMax: number | undefined;
  /** Unix ms. */
  readonly startedAt: number | undefined;
  readonly endedAt: number | undefined;
  /** When a wait is over by itself, in Unix ms. */
  readonly until: number | undefined;
  readonly waits: readonly Wait[];
  readonly childInstanceId: string | undefined;
}

/** By path. Blocks that the tree does not have are not in it: hooks, and what was not loaded. */
export function statusesOf(outline: Outline, run: RunFacts): ReadonlyMap<string, BlockStatus> {
  const waits = groupedBy(run.waits ?? [], ({ block_id }) => block_id ?? '');
  const tries = lastTries(run.attempts ?? []);
  const passes = passesIn(run);
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
        lastTry: tries.get(node.block_id),
        pass: node.iteration ?? passes.get(node.block_id),
      }),
    );
  }
  return statuses;
}

/** The whole state in words, for those who do not see the drawing: `charge, step, failed, try 3 of 3`. */
export function statusText({ state, note, tryNumber, triesMax }: BlockStatus): string {
  const tries = triesText(tryNumber, triesMax);
  return [state, tries, note].filter((part) => part !== '').join(', ');
}

/** A first try of one is not worth a word. */
export function triesText(tryNumber: number | undefined, triesMax: number | undefined): string {
  if (tryNumber === undefined || (tryNumber === 1 && triesMax === undefined)) return '';
  return triesMax === undefined ? `try ${tryNumber}` : `try ${tryNumber} of ${triesMax}`;
}

interface Facts {
  readonly waits: readonly Wait[];
  readonly failure: Failure | undefined;
  readonly lastTry: number | undefined;
  readonly pass: number | undefined;
}

function statusOf(block: OutlineBlock, node: TreeNode, facts: Facts): BlockStatus {
  const waits = isOpen(node) ? facts.waits : [];
  const state = stateOf(node, waits);
  const attempt = facts.failure?.attempt ?? waits[0]?.attempt ?? facts.lastTry;
  const isReached = state !== 'pending' && state !== 'skipped';
  return {
    state,
    note: isReached ? noteOf(block, node, waits, facts) : '',
    tryNumber: isReached && attempt != null ? attempt + 1 : undefined,
    triesMax: triesMaxOf(block),
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

/** A step inside a loop may be at several things at once: what holds it up most is what is shown. */
function stateOf({ state, output_count }: TreeNode, waits: readonly Wait[]): DrawnState {
  // Behind its last pass a loop has its blocks ready for one that never comes.
  if (state === 'skipped' && output_count !== undefined && output_count > 0) return 'completed';
  if (waits.some(({ kind }) => kind === 'retry')) return 'retrying';
  if (waits.length === 0) return state;
  return waits.some(({ kind }) => !AT_WORK.has(kind)) ? 'waiting' : 'running';
}

type WaitKind = Wait['kind'];

/** Who waits for these waits for work that is being done. */
const AT_WORK: ReadonlySet<WaitKind> = new Set(['worker', 'handler', 'engine']);

export const WAIT_NOTES: Readonly<Record<WaitKind, string>> = {
  pause: 'paused',
  start: 'waits for its start',
  handoff: 'runs elsewhere',
  slot: 'waits for a free slot',
  signal: 'waits for a signal',
  task: 'waits for a worker',
  worker: 'with a worker',
  handler: 'at work',
  approval: 'waits for an answer',
  sleep: 'sleeps',
  delay: 'delayed',
  retry: 'backs off',
  child: 'waits for its child',
  rate_limit: 'waits for a permit',
  event: 'waits for an event',
  engine: 'about to go on',
};

function noteOf(
  block: OutlineBlock,
  node: TreeNode,
  waits: readonly Wait[],
  { failure, pass }: Facts,
): string {
  if (node.items !== undefined) {
    const { total, running, ended } = node.items;
    const atWork = running === 0 ? '' : `, ${formatCount(running)} running`;
    return `${formatCount(ended)} / ${formatCount(total)} items${atWork}`;
  }
  if (block.look === 'loop' && pass !== undefined && isOpen(node)) {
    return `${formatCount(pass + 1)} / ${formatCount(passesMax(block))}`;
  }
  if (failure !== undefined) return failure.message;
  const first = waits.find(({ kind }) => !AT_WORK.has(kind)) ?? waits[0];
  if (first === undefined && node.output_count) return `${formatCount(node.output_count)} outputs`;
  if (first === undefined || first.kind === 'retry') return '';
  const words = first.kind === 'event' && first.name !== undefined ? `waits for ${first.name}` : '';
  const others = waits.length === 1 ? '' : `, ${formatCount(waits.length - 1)} more`;
  return (words === '' ? WAIT_NOTES[first.kind] : words) + others;
}

/** What the server takes when a loop does not say. */
const PASSES_MAX_DEFAULT = 1_000;

function passesMax({ source }: OutlineBlock): number {
  const own = source?.type === 'loop' ? source.max_iterations : undefined;
  return own ?? PASSES_MAX_DEFAULT;
}

function triesMaxOf({ source }: OutlineBlock): number | undefined {
  return source?.type === 'step' ? source.retry?.max_attempts : undefined;
}

/** Of the pass that began last. */
function lastTries(attempts: readonly StepAttempt[]): ReadonlyMap<string, number> {
  const last = new Map<string, StepAttempt>();
  for (const attempt of attempts) {
    const known = last.get(attempt.block_id);
    if (known === undefined || isLater(attempt, known)) last.set(attempt.block_id, attempt);
  }
  return new Map([...last].map(([id, { attempt }]) => [id, attempt]));
}

function isLater(a: StepAttempt, b: StepAttempt): boolean {
  if (a.iteration === b.iteration) return a.attempt > b.attempt;
  return inPassOrder(a.iteration, b.iteration) > 0;
}

/** Counters of loops, the outermost first: '2.10' is behind '2.9'. */
export function inPassOrder(a: string, b: string): number {
  if (!a.includes('.') && !b.includes('.')) return Number(a) - Number(b);
  const [one, other] = [a.split('.'), b.split('.')];
  for (const [i, counter] of one.entries()) {
    const difference = Number(counter) - Number(other[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** By blocks: what the paths of open steps, such as `orders[2]/charge`, tell of the loops around them. */
function passesIn({ waits = [], failure }: RunFacts): ReadonlyMap<string, number> {
  const passes = new Map<string, number>();
  for (const path of [failure?.path, ...waits.map((wait) => wait.path)]) {
    for (const part of path?.split('/') ?? []) {
      const [, id, pass] = /^(.*)\[(\d+)\]$/.exec(part) ?? [];
      if (id !== undefined) passes.set(id, Math.max(Number(pass), passes.get(id) ?? 0));
    }
  }
  return passes;
}

/** Until now, but no longer than until it is over by itself: what came of it is not known yet. */
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
