/**
 * Faults that end by themselves and kill nothing: the server or the database stands still, the way between
 * them is cut, refused or silent, or the clock is set and set back. Afterwards the server must serve again without a restart.
 */

import { setTimeout as wait } from 'node:timers/promises';
import type { Engine } from '../helpers/engine.js';
import type { FaultProxy } from '../helpers/proxy.js';
import type { CrashablePostgres } from './postgres.js';
import type { Random } from './random.js';

/** What a fault acts on. */
export interface Surroundings {
  readonly engine: Engine;
  readonly postgres: CrashablePostgres;
  /** Between the server and the database. */
  readonly proxy: FaultProxy;
  /** Sets the clock of the database, by which the server goes, ahead of the true time or behind it. */
  readonly setClock: (aheadMs: number) => Promise<void>;
}

/** Longer than a batch and shorter than what ends a connection, and at times longer than a lease. */
const LASTS_MS = { min: 50, max: 6_000 } as const;

/** More than the steps of the run wait for, less than a run may take to come to rest. */
const JUMPS_MS = { min: 2_000, max: 8_000 } as const;

type Begin = (at: Surroundings, random: Random) => End | Promise<End>;
type End = () => unknown;

async function jump({ setClock }: Surroundings, aheadMs: number): Promise<End> {
  await setClock(aheadMs);
  return () => setClock(0);
}

/** Each begins a fault and returns what ends it. */
const HARDSHIPS = {
  /** The machine of the server is paused. */
  'owner stands still': ({ engine }) => {
    engine.signal('SIGSTOP');
    return () => engine.signal('SIGCONT');
  },
  /** Every process of the database is paused: connections stay, and nobody answers. */
  'database stands still': ({ postgres }) => {
    postgres.signal('SIGSTOP');
    return () => postgres.signal('SIGCONT');
  },
  /** Every connection breaks, and the next ones work. */
  'network cut': ({ proxy }) => {
    proxy.cut();
    return () => undefined;
  },
  /** Every connection breaks, and none can be made for a while. */
  'network refused': ({ proxy }) => {
    proxy.refuse();
    return () => proxy.resume();
  },
  /** Nothing gets through, and nothing breaks. */
  'black hole': ({ proxy }) => {
    proxy.stall();
    return () => proxy.resume();
  },
  'clock ahead': (at, random) => jump(at, random.integer(JUMPS_MS.min, JUMPS_MS.max)),
  'clock behind': (at, random) => jump(at, -random.integer(JUMPS_MS.min, JUMPS_MS.max)),
} as const satisfies Readonly<Record<string, Begin>>;

export type Hardship = keyof typeof HARDSHIPS;

export const HARDSHIP_NAMES = Object.keys(HARDSHIPS) as readonly Hardship[];

/** Resolves when it is over; it ends whatever happens. */
export async function suffer(name: Hardship, at: Surroundings, random: Random): Promise<void> {
  const lasts = random.integer(LASTS_MS.min, LASTS_MS.max);
  const begin: Begin = HARDSHIPS[name];
  const end = await begin(at, random);
  try {
    await wait(lasts);
  } finally {
    await end();
  }
}
