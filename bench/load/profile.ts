/**
 * V8 CPU profiles, of which a server leaves one for each thread when it ends: whose they are, and where
 * their time went while it was measured. Pure.
 */

import path from 'node:path';

interface CallFrame {
  readonly functionName: string;
  readonly url: string;
  readonly lineNumber: number;
  readonly columnNumber: number;
}

/** What is read of V8's format. */
export interface CpuProfile {
  /** The root first. */
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: CallFrame;
    readonly children?: readonly number[];
  }[];
  /** Microseconds of the system's monotonic clock. */
  readonly startTime: number;
  /** Ids of nodes, and the microseconds up to each. */
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** Of a measured turn, in microseconds of the same clock. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** Whose code a function is: ours, of a package, of Node, or none (collection of garbage and the like). */
export type Origin = 'own' | 'package' | 'node' | 'engine';

export type NameOf = (frame: CallFrame) => { readonly name: string; readonly origin: Origin };

export interface SelfTime {
  readonly name: string;
  readonly ms: number;
}

const IDLE = '(idle)';

/** Threads by the entry that only they have loaded. */
const ROLE_BY_ENTRY: readonly (readonly [entry: string, role: string])[] = [
  ['shard.thread.js', 'shard'],
  ['writer.thread.js', 'writer'],
  ['offload.thread.js', 'offload'],
  ['main.js', 'front'],
];

export function monotonicUs(): number {
  return Number(process.hrtime.bigint() / 1_000n);
}

/** Milliseconds of each node, without what it called. @param spans none: the whole profile */
function nodeTimes(
  { startTime, samples, timeDeltas }: CpuProfile,
  spans: readonly Span[],
): ReadonlyMap<number, number> {
  const times = new Map<number, number>();
  let now = startTime;
  samples.forEach((id, at) => {
    const us = timeDeltas[at]!;
    now += us;
    if (spans.length > 0 && !spans.some(({ from, to }) => from <= now && now <= to)) return;
    times.set(id, (times.get(id) ?? 0) + us / 1_000);
  });
  return times;
}

/** @returns the largest first, without what the thread waited */
export function selfTimes(
  profile: CpuProfile,
  nameOf: NameOf,
  spans: readonly Span[],
): readonly SelfTime[] {
  const times = nodeTimes(profile, spans);
  const byName = new Map<string, number>();
  for (const { id, callFrame } of profile.nodes) {
    const ms = times.get(id);
    if (ms === undefined) continue;
    const { name } = nameOf(callFrame);
    byName.set(name, (byName.get(name) ?? 0) + ms);
  }
  byName.delete(IDLE);
  return [...byName].map(([name, ms]) => ({ name, ms })).sort((a, b) => b.ms - a.ms);
}

/** Milliseconds in code of each origin, without what the thread waited. */
export function originTimes(
  profile: CpuProfile,
  nameOf: NameOf,
  spans: readonly Span[],
): Readonly<Record<Origin, number>> {
  const times = nodeTimes(profile, spans);
  const sums = { own: 0, package: 0, node: 0, engine: 0 };
  for (const { id, callFrame } of profile.nodes) {
    const { name, origin } = nameOf(callFrame);
    if (name !== IDLE) sums[origin] += times.get(id) ?? 0;
  }
  return sums;
}

export function roleOf({ nodes }: CpuProfile): string {
  const files = new Set(nodes.map(({ callFrame }) => path.basename(callFrame.url)));
  return ROLE_BY_ENTRY.find(([entry]) => files.has(entry))?.[1] ?? 'other';
}
