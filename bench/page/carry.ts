/**
 * What a thread can carry, and a whole machine: by processor time per operation, which is taken to be the same on a
 * larger machine. A thread has one core at most; shards and the writer's connections can be several. Pure.
 */

import type { Role } from '../load/cost.js';

/** Microseconds of processor time per operation. */
export type Costs = Readonly<Record<Role, number>>;

const SECOND_US = 1e6;
/** What is planned for of each thread and of all cores: beyond that queues grow, and with them the time of an answer. */
export const PLANNED_SHARE = 0.7;

export interface Size {
  readonly cores: number;
  readonly shards: number;
  /** Connections of the writer, each with a process of Postgres. */
  readonly lanes: number;
}

export interface Carried {
  readonly perSecond: number;
  /** What is full first. */
  readonly by: string;
}

/** What each can do per second with a core of its own, the one that is full first at the beginning. */
export function limitsOf(costs: Costs, { shards, lanes }: Omit<Size, 'cores'>): readonly Carried[] {
  const limits = [
    { by: 'front', perSecond: SECOND_US / costs.front },
    { by: shards === 1 ? 'shard' : 'shards', perSecond: (shards * SECOND_US) / costs.shards },
    { by: 'writer', perSecond: SECOND_US / costs.writer },
    { by: 'Postgres', perSecond: (lanes * SECOND_US) / costs.postgres },
  ];
  return limits.sort((a, b) => a.perSecond - b.perSecond);
}

/** Of server and Postgres on these cores, with the clients elsewhere. */
export function carriedBy(costs: Costs, size: Size): Carried {
  const { front, shards, writer, helpers, postgres } = costs;
  const each = front + shards + writer + helpers + postgres;
  const whole = { by: 'all cores', perSecond: (size.cores * SECOND_US) / each };
  const [first] = limitsOf(costs, size);
  const { by, perSecond } = whole.perSecond <= first!.perSecond ? whole : first!;
  return { by, perSecond: PLANNED_SHARE * perSecond };
}
