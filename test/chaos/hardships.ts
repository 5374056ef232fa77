/**
 * Faults that end by themselves and kill nothing: the server or the database stands still, or the way between
 * them is cut, refused or silent. Afterwards the server must serve again without a restart.
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
}

/** Longer than a batch and shorter than what ends a connection, and at times longer than a lease. */
const LASTS_MS = { min: 50, max: 6_000 } as const;

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
} as const satisfies Readonly<Record<string, (at: Surroundings) => () => void>>;

export type Hardship = keyof typeof HARDSHIPS;

export const HARDSHIP_NAMES = Object.keys(HARDSHIPS) as readonly Hardship[];

/** Resolves when it is over; it ends whatever happens. */
export async function suffer(name: Hardship, at: Surroundings, random: Random): Promise<void> {
  const lasts = random.integer(LASTS_MS.min, LASTS_MS.max);
  const end = HARDSHIPS[name](at);
  try {
    await wait(lasts);
  } finally {
    end();
  }
}
