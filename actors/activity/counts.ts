/**
 * Counts of one shard by key and interval. They are written a few times a minute, and replaced while their interval
 * lasts; a crash loses the latest ones (docs/decisions/0038-counters-logs-and-traces.md).
 */

import type { TimerHandle } from '../../src/base/clock.js';
import { isoTime, type UnixMs } from '../../src/base/time.js';
import type { Kernel } from '../runtime/kernel.js';
import { Service, type ServiceDeps } from '../runtime/service.js';
import { Turn } from '../runtime/turn.js';

export type CountsDeps = ServiceDeps & Pick<Kernel, 'shard' | 'clock' | 'now'>;

/** Where a row of counts is stored. */
interface Place {
  readonly tenant_id: string;
  /** The time of the first change. */
  readonly at: string;
  readonly shard: number;
}

interface Kind<Part> {
  /** Unique among all actors of the shard. */
  readonly name: string;
  readonly intervalMs: number;
  /** Bounds the memory: of further parts nothing is counted in the interval. */
  readonly partsMax: number;
  readonly empty: () => Part;
  readonly put: (turn: Turn, place: Place, key: string, parts: ReadonlyMap<string, Part>) => void;
}

interface Entry<Part> {
  readonly tenant: string;
  readonly key: string;
  readonly at: UnixMs;
  readonly parts: Map<string, Part>;
  isWritten: boolean;
}

export const MINUTE_MS = 60_000;
/** Maximum delay of a write. */
const WRITE_MS = 20_000;
/** Larger units would delay the writer. */
const ROWS_PER_UNIT = 500;

export class Counts<Part> {
  readonly #deps: CountsDeps;
  readonly #kind: Kind<Part>;
  readonly #service: Service;
  readonly #entries = new Map<string, Entry<Part>>();
  #parts = 0;
  #timer: TimerHandle;
  #isStopped = false;

  constructor(deps: CountsDeps, kind: Kind<Part>) {
    this.#deps = deps;
    this.#kind = kind;
    this.#service = new Service(kind.name, deps);
  }

  /** The part to be changed now. Undefined: there are too many. @param key of one tenant only */
  part(tenant: string, key: string, name: string): Part | undefined {
    const entry = this.#entries.get(key) ?? this.#begin(tenant, key);
    let part = entry.parts.get(name);
    if (part === undefined) {
      if (this.#parts >= this.#kind.partsMax) return undefined;
      part = this.#kind.empty();
      entry.parts.set(name, part);
      this.#parts += 1;
    }
    entry.isWritten = false;
    return part;
  }

  /** Writes the counts before the suspension, while units are still accepted. */
  tenantLeaves(tenant: string): void {
    this.write();
    this.#drop((entry) => entry.tenant === tenant);
    // The next count sets another timer.
    if (this.#entries.size === 0) this.#deps.clock.clearTimeout(this.#timer);
  }

  stop(): void {
    this.#isStopped = true;
    this.#deps.clock.clearTimeout(this.#timer);
  }

  write(): void {
    const { shard } = this.#deps;
    let turn = new Turn();
    let written: Entry<Part>[] = [];
    const commit = () => {
      if (written.length > 0) this.#commit(turn, written);
      turn = new Turn();
      written = [];
    };
    for (const entry of this.#entries.values()) {
      if (entry.isWritten) continue;
      entry.isWritten = true;
      const { tenant, key, at, parts } = entry;
      this.#kind.put(turn, { tenant_id: tenant, at: isoTime(at), shard }, key, parts);
      written.push(entry);
      if (written.length === ROWS_PER_UNIT) commit();
    }
    commit();
  }

  #begin(tenant: string, key: string): Entry<Part> {
    const at = this.#deps.now();
    if (this.#entries.size === 0) this.#writeLater(at);
    const entry = { tenant, key, at, parts: new Map(), isWritten: true };
    if (this.#parts < this.#kind.partsMax) this.#entries.set(key, entry);
    return entry;
  }

  /** After `WRITE_MS`, and at the end of the interval. */
  #writeLater(now: UnixMs): void {
    if (this.#isStopped) return;
    const { clock, schedule } = this.#deps;
    const { intervalMs } = this.#kind;
    const delay = Math.min(WRITE_MS, intervalMs - (now % intervalMs));
    this.#timer = clock.setTimeout(() => schedule(() => this.#tick()), delay);
  }

  #tick(): void {
    const now = this.#deps.now();
    this.write();
    const began = now - (now % this.#kind.intervalMs);
    this.#drop(({ at }) => at < began);
    if (this.#entries.size > 0) this.#writeLater(now);
  }

  #drop(isOver: (entry: Entry<Part>) => boolean): void {
    for (const [key, entry] of this.#entries) {
      if (!isOver(entry)) continue;
      this.#entries.delete(key);
      this.#parts -= entry.parts.size;
    }
  }

  #commit(turn: Turn, entries: readonly Entry<Part>[]): void {
    this.#service.commitNow(turn, {
      settled: (_error, ack) => {
        if (ack.outcome !== 'refused') return;
        for (const entry of entries) entry.isWritten = false;
        this.#deps.log.warn({ sqlState: ack.sqlState }, 'activity rows refused');
      },
    });
  }
}
