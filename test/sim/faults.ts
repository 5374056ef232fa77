/**
 * What goes wrong in a run, and how often: drawn from the seed, so that some runs are calm, some are
 * wild, and each kind of fault has runs in which it is the only one. After a while all faults end,
 * and what was promised has to come true.
 */

import type { PeerMessage } from '../../actors/runtime/protocol.js';
import type { Random } from '../chaos/random.js';

/**
 * How often each comes in a run in which it may: by exchange, connection, read, message, request, or
 * by second, whatever it is that it befalls.
 */
const RATES = {
  /** A statement fails before the commit, for a reason that goes away. */
  'exchange.failed': 0.03,
  /** The same for a reason that counts as the data's. */
  'exchange.refused': 0.004,
  /** The connection breaks, and nothing was committed. */
  'exchange.lost before': 0.015,
  /** The connection breaks, but the commit happened. */
  'exchange.lost after': 0.02,
  /** The request, or the answer, gets lost on a connection that stays open. */
  'exchange.unheard': 0.006,
  'exchange.silent': 0.006,
  /** The commit takes long. */
  'exchange.slow': 0.03,
  'connect.refused': 0.1,
  'database.away': 0.02,
  'read.failed': 0.04,
  'read.slow': 0.05,
  /** Data that the database cannot store. */
  poison: 0.05,
  'hint.lost': 0.03,
  'hint.twice': 0.05,
  /** The client goes away before its answer comes. */
  'client.gone': 0.02,
  /** The answer gets lost on the way to the client. */
  'reply.lost': 0.04,
  'shard.died': 0.06,
  'writer.died': 0.04,
  /** At the moment of a commit: nobody is told of it. */
  'shard.died at commit': 0.01,
  'writer.died at commit': 0.01,
  'engine.crashed': 0.03,
  /** Another engine takes the database over from one that still runs. */
  'engine.replaced': 0.06,
  /** A thread, or the whole process, does nothing for a while. */
  'thread.busy': 0.1,
  'engine.stopped': 0.02,
} as const;

export type Fault = keyof typeof RATES;
export const FAULTS = Object.keys(RATES) as Fault[];

/** How a message between shards can get lost. Ports lose nothing while both of their ends live. */
type Loss =
  /** By itself, too: whoever waits for it asks again, or a row is looked at again by time. */
  | 'alone'
  /** With the thread of its sender or its receiver, whose end is what makes the others look again. */
  | 'with a thread'
  /** Nobody has executions here; tests of their own lose these. */
  | 'not sent';

/** Every kind: one that is missing here does not compile. */
export const LOSSES: Readonly<Record<PeerMessage['kind'], Loss>> = {
  create: 'alone',
  collect: 'alone',
  'collect.answer': 'alone',
  request: 'alone',
  wake: 'alone',
  'task.gone': 'alone',
  unclaim: 'alone',
  'permit.wanted': 'alone',
  'permit.left': 'alone',
  'permit.granted': 'alone',
  'permit.denied': 'alone',
  'start.wanted': 'alone',
  'start.left': 'alone',
  'start.granted': 'alone',
  'start.used': 'alone',
  'rate.asked': 'alone',
  'rate.granted': 'alone',
  'rate.deferred': 'alone',
  'rate.changed': 'alone',
  'rate.used': 'alone',
  'event.wanted': 'alone',
  'event.unwanted': 'alone',
  'event.arrived': 'alone',
  'event.taken': 'alone',
  'event.cancels': 'alone',
  'start.cancels': 'alone',
  'event.cancel': 'alone',
  'task.ready': 'with a thread',
  claim: 'with a thread',
  claimed: 'with a thread',
  'create.ask': 'with a thread',
  'create.answer': 'with a thread',
  'result.ask': 'with a thread',
  'exchange.results': 'with a thread',
  'exchange.outcomes': 'with a thread',
  'poll.ask': 'with a thread',
  'poll.end': 'with a thread',
  'polls.end': 'with a thread',
  'poll.answer': 'with a thread',
  'secret.missing': 'with a thread',
  'sequence.block': 'with a thread',
  'sequence.settled': 'with a thread',
  'sequence.evict': 'with a thread',
  'routes.read': 'alone',
  'routes.settled': 'alone',
  'names.forget': 'alone',
  'names.settled': 'alone',
  'subscriptions.read': 'alone',
  'subscriptions.settled': 'alone',
  'rates.read': 'alone',
  'rates.settled': 'alone',
  'endpoints.read': 'alone',
  'endpoints.settled': 'alone',
  'family.message': 'alone',
  'release.ended': 'alone',
  'continuity.order': 'not sent',
  'continuity.answer': 'not sent',
  'continuity.ask': 'not sent',
};

export type PeerKind = PeerMessage['kind'];

/** Kinds that are seldom sent are hit more often, or no run would show what becomes of them. */
export function weightOf(kind: PeerKind): number {
  if (kind === 'rate.changed') return 100;
  if (kind === 'sequence.evict' || kind === 'secret.missing') return 40;
  if (/^(collect|result\.ask|release\.ended|family\.message)$/.test(kind)) return 20;
  if (/^event\.(arrived|taken|cancels?)$/.test(kind)) return 20;
  if (/^(routes|rates|names|endpoints|exchange|poll)/.test(kind)) return 10;
  return /^(rate|permit|start|sequence|unclaim|wake|event)/.test(kind) ? 4 : 1;
}

export const PEER_KINDS = (Object.keys(LOSSES) as PeerKind[]).filter(
  (kind) => LOSSES[kind] !== 'not sent',
);

/** How often things happened, by name. */
export class Counts {
  readonly byName = new Map<string, number>();

  add(name: string, by = 1): void {
    this.byName.set(name, (this.byName.get(name) ?? 0) + by);
  }

  of(name: string): number {
    return this.byName.get(name) ?? 0;
  }

  addAll(other: Counts): void {
    for (const [name, count] of other.byName) this.add(name, count);
  }
}

export class Faults {
  readonly counts: Counts;
  readonly random: Random;
  readonly rates: ReadonlyMap<Fault, number>;
  isOver = false;

  /** @param random decides which kinds the run has, and when they strike */
  constructor(random: Random, counts: Counts) {
    this.random = random;
    this.counts = counts;
    this.rates = ratesOf(random);
  }

  /** Whether the fault strikes now. `weight`: how much more often it does than elsewhere. */
  hits(fault: Fault, weight = 1): boolean {
    if (this.isOver) return false;
    const rate = this.rates.get(fault);
    if (rate === undefined || !this.random.chance(rate * weight)) return false;
    this.counts.add(fault);
    return true;
  }

  /** The share of the next `ms` in which a fault that comes by time may strike. */
  hitsWithin(fault: Fault, ms: number): boolean {
    const rate = this.rates.get(fault);
    if (this.isOver || rate === undefined) return false;
    if (!this.random.chance((rate * ms) / 1_000)) return false;
    this.counts.add(fault);
    return true;
  }

  ofExchange(hasCommit: boolean): ExchangeFault | undefined {
    for (const fault of hasCommit ? OF_COMMITS : OF_EXCHANGES) {
      if (this.hits(`exchange.${fault}`)) return fault;
    }
    return undefined;
  }

  sqlStateOf(fault: ExchangeFault | undefined): string | undefined {
    if (fault === 'failed') return this.random.pick(PASSING);
    if (fault === 'refused') return this.random.pick(REFUSALS);
    return undefined;
  }
}

export type ExchangeFault =
  Extract<Fault, `exchange.${string}`> extends `exchange.${infer Name}` ? Name : never;

const OF_EXCHANGES = ['failed', 'refused', 'lost before', 'unheard'] as const;
const OF_COMMITS = [...OF_EXCHANGES, 'lost after', 'silent', 'slow'] as const;

/** Disk full, cancelled, serialization, deadlock, lock timeout, out of connections. */
const PASSING = ['53100', '57014', '40001', '40P01', '55P03', '53300'] as const;
const REFUSALS = ['22003', '54001'] as const;

/** An engine whose every second read fails never comes to its end of starting. */
const ALONE_MAX = 0.25;

/** One run in ten has no faults, one in ten has one kind; in the others each kind is in or not. */
function ratesOf(random: Random): ReadonlyMap<Fault, number> {
  const mood = random.next();
  if (mood < 0.1) return new Map();
  const wildness = random.pick([0.5, 1, 1, 2, 4]);
  if (mood < 0.2) {
    const fault = random.pick(FAULTS);
    return new Map([[fault, Math.min(ALONE_MAX, RATES[fault] * 3 * wildness)]]);
  }
  const share = random.pick([0.3, 0.6, 1]);
  return new Map(
    FAULTS.filter(() => random.chance(share)).map((fault) => [fault, RATES[fault] * wildness]),
  );
}
