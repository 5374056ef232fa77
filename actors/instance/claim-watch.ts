/**
 * The claims of one shard whose workers have to be heard: those that are committed, and after a start or the return
 * of a tenant those that its rows have. Silence counts from readiness at the earliest (`actors/runtime/reachability.ts`).
 */

import type { Kernel } from '../runtime/kernel.js';
import type { Effects, Room, Timers } from '../runtime/room.js';
import type { Instances } from './instances.js';
import type { TimerLoads } from './timer-loads.js';

export interface ClaimWatchDeps
  extends Pick<
    Kernel<TimerLoads>,
    'settings' | 'loader' | 'reachability' | 'timers' | 'schedule' | 'clock' | 'log'
  > {
  readonly instances: Pick<Instances, 'tell'>;
}

export class ClaimWatch implements Room {
  readonly #deps: ClaimWatchDeps;
  #stopped = false;

  readonly effects = {
    reap: ({ at, instance, task }) => this.#watch(at, instance, task),
  } satisfies Effects;

  readonly timers = {
    reap: ({ instance, task }) => this.#deps.instances.tell(instance, { kind: 'reap', task }),
  } satisfies Timers;

  constructor(deps: ClaimWatchDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#read();
  }

  tenantBack(tenant: string): void {
    this.#read(tenant);
  }

  stop(): void {
    this.#stopped = true;
  }

  #watch(at: number, instance: string, task: string): void {
    this.#deps.timers.push(at, { kind: 'reap', instance, task });
  }

  /** @param only the tenant whose claims are not watched yet; absent: none are */
  #read(only?: string): void {
    const { loader, settings, reachability, schedule, clock, log } = this.#deps;
    loader
      .claimedTasks((task, instance, heartbeatAt, tenant) => {
        if (only !== undefined && only !== tenant) return;
        const since = Math.max(heartbeatAt, reachability.since(tenant));
        schedule(() => this.#watch(since + settings.workerStaleMs, instance, task));
      })
      .catch((error: unknown) => {
        log.warn({ err: error }, 'claims could not be read; trying again');
        clock.setTimeout(() => {
          if (!this.#stopped) this.#read(only);
        }, settings.workerReaperTickMs);
      });
  }
}
