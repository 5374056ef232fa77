/**
 * What a shard does when a tenant leaves its cell, or arrives in it (docs/operate/moving-tenants.md). From the
 * moment of `hold` on no unit of the tenant is made and no row of it becomes an actor, whatever a part may have
 * in mind: `CommitLog` and `ActorHost` see to that. The rest is for the sake of others, and of the tenant's
 * return: what is in memory goes.
 */

import type { UnixMs } from '../../src/base/time.js';
import type { Room } from '../runtime/room.js';
import type { DueTimer } from '../runtime/timer.js';
import type { ShardKernel } from './kernel.js';

export interface TenantHoldHooks {
  /** The instance has something to do now. */
  readonly runSoon: (timer: DueTimer) => void;
  /** Its workers can be heard from now on. */
  readonly admitted: (tenant: string) => void;
}

/** When its rows cannot be read. */
const AGAIN_MS = 500;

export class TenantHolds {
  readonly #kernel: ShardKernel;
  readonly #rooms: readonly Room[];
  readonly #hooks: TenantHoldHooks;

  constructor(kernel: ShardKernel, rooms: readonly Room[], hooks: TenantHoldHooks) {
    this.#kernel = kernel;
    this.#rooms = rooms;
    this.#hooks = hooks;
  }

  /** Before the shard has loaded anything. */
  begin(tenants: readonly string[]): void {
    for (const tenant of tenants) this.#kernel.commits.held.add(tenant);
  }

  /** Resolves when nothing of the tenant is on its way to the rows, nor ever will be. */
  hold(tenant: string): Promise<void> {
    const { commits, schedule, whenWriterKnown } = this.#kernel;
    return new Promise((resolve) => {
      schedule(() => {
        for (const room of this.#rooms) room.tenantLeaves?.(tenant);
        commits.held.add(tenant);
        this.#forget(tenant);
        commits.whenSettled(() => whenWriterKnown(resolve));
      });
    });
  }

  /**
   * The tenant's rows are of this cell from now on. Resolves when this shard may change them.
   *
   * @param stampsFrom audit entries get no earlier time
   */
  async admit(tenant: string, stampsFrom: UnixMs): Promise<void> {
    const { commits, schedule } = this.#kernel;
    // First: nothing may be created by routes that are not known, nor end unknown to subscribers.
    await Promise.all(this.#rooms.map((room) => room.tenantComes?.(tenant, stampsFrom)));
    await new Promise<void>((resolve) => {
      schedule(() => {
        // What was made of its rows since is no better than what was before.
        this.#forget(tenant);
        commits.held.remove(tenant);
        resolve();
      });
    });
  }

  #forget(tenant: string): void {
    for (const room of this.#rooms) room.tenantSuspended?.(tenant);
  }

  /**
   * Does for the tenant what a start does for all, when every shard has admitted it: a shard that has not
   * turns away what others tell it. Resolves when all that was under way elsewhere is under way here.
   */
  async takeUp(tenant: string): Promise<void> {
    const { loader, clock, log, timers, schedule } = this.#kernel;
    const { runSoon, admitted } = this.#hooks;
    for (;;) {
      try {
        await timers.readAnew();
        await loader.recoverable((timer) => {
          if (timer.tenant === tenant) schedule(() => runSoon(timer));
        });
        break;
      } catch (error) {
        log.warn(
          { tenantId: tenant, err: error },
          'what a tenant has due could not be read; trying again',
        );
        await new Promise<void>((resolve) => clock.setTimeout(resolve, AGAIN_MS));
      }
    }
    schedule(() => {
      admitted(tenant);
      for (const room of this.#rooms) room.tenantBack?.(tenant);
    });
  }
}
