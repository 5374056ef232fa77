/**
 * What a shard does when a tenant leaves its cell, or arrives in it (docs/operate/moving-tenants.md). From
 * `suspend` on `CommitLog` and `ActorHost` commit no unit of the tenant and load none of its rows. This module
 * clears its state from memory, and restores it on return.
 */

import type { UnixMs } from '../../src/base/time.js';
import type { Room } from '../runtime/room.js';
import type { ShardKernel } from './kernel.js';

/** Retry of failed reads. */
const AGAIN_MS = 500;

export class TenantSuspension {
  readonly #kernel: ShardKernel;
  readonly #rooms: readonly Room[];

  constructor(kernel: ShardKernel, rooms: readonly Room[]) {
    this.#kernel = kernel;
    this.#rooms = rooms;
  }

  /** Before the shard has loaded anything. */
  begin(tenants: readonly string[]): void {
    for (const tenant of tenants) this.#kernel.commits.suspended.add(tenant);
  }

  /** Resolves when no unit of the tenant is in flight, and none can follow. */
  suspend(tenant: string): Promise<void> {
    const { commits, schedule, whenWriterKnown } = this.#kernel;
    return new Promise((resolve) => {
      schedule(() => {
        for (const room of this.#rooms) room.tenantLeaves?.(tenant);
        commits.suspended.add(tenant);
        this.#forget(tenant);
        commits.whenSettled(() => whenWriterKnown(resolve));
      });
    });
  }

  /**
   * The tenant's rows belong to this cell from now on. Resolves when this shard may change them.
   * @param stampsFrom audit entries get no earlier time
   */
  async admit(tenant: string, stampsFrom: UnixMs): Promise<void> {
    const { commits, schedule } = this.#kernel;
    // First: no instance may be created by unknown routes, nor end without its subscribers.
    await Promise.all(this.#rooms.map((room) => room.tenantComes?.(tenant, stampsFrom)));
    await new Promise<void>((resolve) => {
      schedule(() => {
        // Actors that were loaded from its rows meanwhile may be stale too.
        this.#forget(tenant);
        commits.suspended.delete(tenant);
        resolve();
      });
    });
  }

  #forget(tenant: string): void {
    for (const room of this.#rooms) room.tenantSuspended?.(tenant);
  }

  /**
   * Resumes the work of the tenant as a start does for all, once every shard has admitted it: other shards
   * refuse messages for it. Resolves when all of it is in progress here.
   */
  async takeUp(tenant: string): Promise<void> {
    const { loader, clock, log, timers, schedule, runSoon, reachability } = this.#kernel;
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
      reachability.admitted(tenant);
      for (const room of this.#rooms) room.tenantBack?.(tenant);
    });
  }
}
