/**
 * Suspends a tenant that leaves the cell of this shard, and admits one that arrives
 * (docs/operate/moving-tenants.md). After `suspend`, `CommitLog` and `ActorHost` commit no unit of the
 * tenant and load none of its rows; this module clears its state from memory, and restores it on return.
 */

import type { UnixMs } from '../../src/base/time.js';
import type { Room } from '../runtime/room.js';
import type { ShardKernel } from './kernel.js';

const RETRY_MS = 500;

export class TenantSuspension {
  readonly #kernel: ShardKernel;
  readonly #rooms: readonly Room[];

  constructor(kernel: ShardKernel, rooms: readonly Room[]) {
    this.#kernel = kernel;
    this.#rooms = rooms;
  }

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

  /** Resolves when this shard may change its rows. @param stampsFrom audit entries get no earlier time */
  async admit(tenant: string, stampsFrom: UnixMs): Promise<void> {
    const { commits, schedule } = this.#kernel;
    // First: no instance may be created with unknown routes, nor end without its subscribers.
    await Promise.all(this.#rooms.map((room) => room.tenantComes?.(tenant, stampsFrom)));
    await new Promise<void>((resolve) => {
      schedule(() => {
        // Actors loaded from its rows meanwhile may be stale too.
        this.#forget(tenant);
        commits.suspended.delete(tenant);
        resolve();
      });
    });
  }

  #forget(tenant: string): void {
    for (const room of this.#rooms) room.tenantSuspended?.(tenant);
  }

  /** Called once every shard has admitted the tenant. Resolves when all of its work is in progress. */
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
        const facts = { tenantId: tenant, err: error };
        log.warn(facts, 'what a tenant has due could not be read; trying again');
        await new Promise<void>((resolve) => clock.setTimeout(resolve, RETRY_MS));
      }
    }
    schedule(() => {
      reachability.admitted(tenant);
      for (const room of this.#rooms) room.tenantBack?.(tenant);
    });
  }
}
