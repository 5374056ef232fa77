/**
 * What must be reached, and in which words: one list, by which the parts judge what they measured.
 * Ratios are within one run. Pure.
 */

import { round } from './report.js';

interface Target {
  readonly what: string;
  /** Behind a number, with its space. */
  readonly unit: string;
  readonly limit: { readonly atMost: number } | { readonly atLeast: number };
}

const OF_BEFORE = 'beside the version before';

function cpu(what: string, atMost: number): Target {
  return { what: `processor time of ${what}, ${OF_BEFORE}`, unit: ' ×', limit: { atMost } };
}

function exchanged(workers: number): Target {
  const what = `a whole round by exchange and batches, ${workers} workers`;
  return {
    what: `processor time of ${what}, beside one by one in the version before`,
    unit: ' ×',
    limit: { atMost: 0.22 },
  };
}

export const TARGETS = {
  'cpu noop256': cpu('a creation that completes, 256 connections', 0.55),
  'cpu external64': cpu('a creation that waits for a worker, 64 connections', 0.5),
  'cpu claim16': cpu('a claim and completion, one by one, 16 workers', 0.5),
  'cpu claim64': cpu('a claim and completion, one by one, 64 workers', 0.5),
  'cpu round16': cpu('a whole round (create, claim, complete), one by one, 16 workers', 0.5),
  'cpu round64': cpu('a whole round (create, claim, complete), one by one, 64 workers', 0.5),
  'saving exchange16': exchanged(16),
  'saving exchange64': exchanged(64),
  'cpu batch500': cpu('an instance created in batches of 500', 0.43),
  'peers batches16': {
    what: 'rounds through the exchange, 16 workers, beside BullMQ with fsync',
    unit: ' ×',
    limit: { atLeast: 1.3 },
  },
  'peers created256': {
    what: 'instances created and completed, 256 connections, beside jobs of pg-boss',
    unit: ' ×',
    limit: { atLeast: 7 },
  },
  'idle completed': {
    what: 'idle server: created to completed at the median, in single durable commits',
    unit: ' ×',
    limit: { atMost: 2.8 },
  },
  'idle read': {
    what: 'idle server: `GET` of an instance at the median, beside `/health/live`',
    unit: ' ×',
    limit: { atMost: 2.5 },
  },
  'idle step': {
    what: 'idle server: a step completed to the next one at a parked poll, in single durable commits',
    unit: ' ×',
    limit: { atMost: 5 },
  },
  'scale poll': {
    what: 'a poll of 50 with 1,000,000 pending tasks at the median, beside 100 pending',
    unit: ' ×',
    limit: { atMost: 1.2 },
  },
  'scale memory': {
    what: '1,000,000 waiting instances: memory each',
    unit: ' B',
    limit: { atMost: 300 },
  },
  'scale ready': {
    what: '1,000,000 waiting instances: ready after SIGKILL and start',
    unit: ' ms',
    limit: { atMost: 10_000 },
  },
  'scale new': {
    what: '1,000,000 waiting instances: 99th percentile of a new one, beside an empty server',
    unit: ' ×',
    limit: { atMost: 2 },
  },
  'scale lateness': {
    what: '1,000,000 waiting instances: lateness of 10,000 timers due in one second, 99th percentile',
    unit: ' ms',
    limit: { atMost: 50 },
  },
  'timers lateness': {
    what: '10,000 instances due in one second, in the database only: lateness, 99th percentile',
    unit: ' ms',
    limit: { atMost: 500 },
  },
  'timers neighbour': {
    what: '100,000 instances due in one second: creations of another tenant meanwhile, 99th percentile',
    unit: ' ms',
    limit: { atMost: 250 },
  },
  'timers memory': {
    what: '100,000 instances due in one second: memory of the server',
    unit: ' MiB',
    limit: { atMost: 512 },
  },
  'check context': {
    what: 'log written per step with an unchanged context of 256 KiB, beside one of 1 KiB',
    unit: ' ×',
    limit: { atMost: 1.5 },
  },
  'check snapshot': {
    what: 'rounds per second while another session holds a snapshot, beside without',
    unit: ' ×',
    limit: { atLeast: 0.9 },
  },
  'check latency': {
    what: 'a minute at full load: 99th percentile beside the median',
    unit: ' ×',
    limit: { atMost: 25 },
  },
  'check memory': {
    what: 'a minute at full load: memory in the end beside that after a third of it',
    unit: ' ×',
    limit: { atMost: 1.1 },
  },
  'pressure ratio': {
    what: 'while one tenant attacks: the worst 99th percentile of another, beside its idle value',
    unit: ' ×',
    limit: { atMost: 2 },
  },
  'pressure errors': {
    what: 'while one tenant attacks: requests of another that fail',
    unit: '',
    limit: { atMost: 0 },
  },
} as const satisfies Readonly<Record<string, Target>>;

export type TargetName = keyof typeof TARGETS;

const TARGET_NAMES = Object.keys(TARGETS) as readonly TargetName[];

/** What was measured of the targets; parts store it as `reached`. */
export type Reached = Readonly<Partial<Record<TargetName, number>>>;

/** @returns nothing when there is no such target, or nothing was measured */
export function reachedOf(name: string, value: number | undefined): Reached {
  if (!Object.hasOwn(TARGETS, name) || value === undefined || !Number.isFinite(value)) return {};
  return { [name]: value };
}

export function isReached(name: TargetName, value: number): boolean {
  const { limit }: Target = TARGETS[name];
  return 'atMost' in limit ? value <= limit.atMost : value >= limit.atLeast;
}

/** Such as `at most 0.5 ×`. */
export function limitOf(name: TargetName): string {
  const { limit, unit }: Target = TARGETS[name];
  return 'atMost' in limit
    ? `at most ${limit.atMost.toLocaleString('en')}${unit}`
    : `at least ${limit.atLeast}${unit}`;
}

/** @param value rounded as it is stored, so that a number never contradicts what is said of it */
export function verdictOf(name: TargetName, value: number): string {
  return `${limitOf(name)}: ${isReached(name, round(value)) ? 'reached' : 'missed'}`;
}

/** Of each that was measured a line. */
export function verdictsOf(reached: Reached): readonly string[] {
  return TARGET_NAMES.flatMap((name) => {
    const value = reached[name];
    const { what, unit } = TARGETS[name];
    return value === undefined
      ? []
      : [`${what}: ${round(value)}${unit}, ${verdictOf(name, value)}`];
  });
}
