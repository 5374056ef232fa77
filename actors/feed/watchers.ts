/**
 * Long polls for the next change of an instance. A watch with the current version is parked until a
 * unit of the instance is committed, or for some seconds; any other is answered at once. The
 * version changes with each commit or loss of an actor, and is forgotten when unused or after a
 * restart, so a change may be reported twice but is never missed.
 */

import type { TimerHandle } from '../../src/base/clock.js';
import { unavailable } from '../../src/base/errors.js';
import type { Kernel } from '../runtime/kernel.js';
import type { Room } from '../runtime/room.js';

export interface Watch {
  readonly request: number;
  /** '': all tenants. */
  readonly tenant: string;
}

export interface WatchersDeps extends Pick<Kernel, 'clock' | 'random' | 'release' | 'schedule'> {
  /** Answers the watch with the state of the instance and this version. */
  readonly look: (instance: string, watch: Watch, version: number) => void;
}

interface Watched {
  version: number;
  readonly requests: Set<number>;
}

interface Parked extends Watch {
  readonly instance: string;
  readonly until: number;
}

/** Shorter than the timeout of requests to a shard. */
const WATCH_MS = 20_000;
/** Instances with a version; far fewer streams may be open. */
const WATCHED_MAX = 1_024;

export class Watchers implements Room {
  readonly #deps: WatchersDeps;
  /** Least recently watched first. */
  readonly #watched = new Map<string, Watched>();
  /** By request, in order of arrival and so of `until`. */
  readonly #parked = new Map<number, Parked>();
  #version: number;
  #timer: TimerHandle | undefined;
  #draining = false;

  constructor(deps: WatchersDeps) {
    this.#deps = deps;
    // Random, so that versions from before a restart do not match.
    this.#version = Math.floor(deps.random() * 2 ** 48);
  }

  /** @param known the last version that the caller received */
  watch(instance: string, watch: Watch, known: number | undefined): void {
    const { clock, look, release } = this.#deps;
    const watched = this.#keep(instance);
    if (watched === undefined) {
      const error = unavailable('ENG_OVERLOADED', 'too many instances are being watched');
      release([{ kind: 'error', request: watch.request, error }]);
      return;
    }
    if (known !== watched.version || this.#draining) {
      look(instance, watch, watched.version);
      return;
    }
    watched.requests.add(watch.request);
    const until = clock.monotonic() + WATCH_MS;
    this.#parked.set(watch.request, { ...watch, instance, until });
    this.#timer ??= clock.setTimeout(() => this.#expireSoon(), WATCH_MS);
  }

  /** A unit of the instance was committed, or its actor was lost with pending units. */
  changed(instance: string): void {
    const watched = this.#watched.get(instance);
    if (watched === undefined) return;
    watched.version = this.#nextVersion();
    for (const request of watched.requests) this.#answer(request);
  }

  changedAll(): void {
    for (const instance of this.#watched.keys()) this.changed(instance);
  }

  /** The caller has disconnected; the reply only releases the request. */
  abort(request: number): void {
    if (this.#unpark(request) === undefined) return;
    this.#deps.release([{ kind: 'reply', request, status: 200, body: '' }]);
  }

  tenantSuspended(): void {
    this.answerAll();
  }

  sequenceEvicted(): void {
    this.answerAll();
  }

  drain(): void {
    this.#draining = true;
    this.answerAll();
  }

  /** Used when instances may be gone. */
  answerAll(): void {
    for (const request of this.#parked.keys()) this.#answer(request);
  }

  stop(): void {
    this.#deps.clock.clearTimeout(this.#timer);
  }

  #keep(instance: string): Watched | undefined {
    const watched = this.#watched.get(instance) ?? {
      version: this.#nextVersion(),
      requests: new Set(),
    };
    this.#watched.delete(instance);
    this.#watched.set(instance, watched);
    if (this.#watched.size <= WATCHED_MAX) return watched;
    for (const [key, { requests }] of this.#watched) {
      if (requests.size > 0 || key === instance) continue;
      this.#watched.delete(key);
      return watched;
    }
    this.#watched.delete(instance);
    return undefined;
  }

  #nextVersion(): number {
    this.#version += 1;
    return this.#version;
  }

  #unpark(request: number): Parked | undefined {
    const parked = this.#parked.get(request);
    if (parked === undefined) return undefined;
    this.#parked.delete(request);
    this.#watched.get(parked.instance)?.requests.delete(request);
    return parked;
  }

  #answer(request: number): void {
    const parked = this.#unpark(request);
    if (parked === undefined) return;
    const version = this.#watched.get(parked.instance)?.version;
    if (version !== undefined) this.#deps.look(parked.instance, parked, version);
  }

  #expireSoon(): void {
    this.#timer = undefined;
    this.#deps.schedule(() => this.#expire());
  }

  #expire(): void {
    const { clock } = this.#deps;
    const now = clock.monotonic();
    for (const [request, { until }] of this.#parked) {
      if (until > now) {
        this.#timer ??= clock.setTimeout(() => this.#expireSoon(), until - now);
        return;
      }
      this.#answer(request);
    }
  }
}
