/**
 * A run in which there are releases: versions of one sequence, operators who move releases between
 * them, perhaps a schedule, and what must come true of all that when nothing goes wrong any more.
 */

import type { Random } from '../chaos/random.js';
import type { SimSequence } from './clients.js';
import type { Row } from './memory-tables.js';
import { Operator } from './operators.js';
import type { Parts } from './parts.js';
import type { ReleasesObserver } from './releases-observer.js';
import { versionBlocks } from './shapes.js';
import { Violation } from './violation.js';

interface ReleaseScenarioDeps
  extends Pick<Parts, 'world' | 'api' | 'tables' | 'cluster' | 'versions' | 'insist'> {
  readonly observer: ReleasesObserver;
}

/** For what was not answered: its thread died, and its successor sees to it. */
const ROUTES_MS_MAX = 10_000;

/** How late a request from before may come. */
const LATE_MS_MAX = 60_000;

/** The last one may be one that clients try to delete. */
export function versionsOf(
  random: Random,
  tenant: string,
  idOf: (number: number) => string,
): SimSequence[] {
  const count = random.integer(2, 3);
  return Array.from({ length: count }, (_, i) => {
    const id = idOf(i);
    const own = { id, version: i + 1, blocks: versionBlocks(random, i + 1) };
    const isSpare = i === count - 1 && random.chance(0.5);
    const body = { ...own, tenant_id: tenant, namespace: 'simulated', name: 'released' };
    return { id, tenant, isSpare, body };
  });
}

export class ReleaseScenario {
  readonly #deps: ReleaseScenarioDeps;
  readonly #random: Random;

  constructor(deps: ReleaseScenarioDeps) {
    this.#deps = deps;
    this.#random = deps.world.newRandom();
    deps.observer.onFailing = (release) => this.#promoteInSpite(release);
  }

  /** Operators at work, once the schedule is there. */
  async begin(pauseMs: number): Promise<Promise<void>[]> {
    const random = this.#random;
    if (random.chance(0.3)) await this.#schedule();
    const { world, api, tables, versions } = this.#deps;
    return Array.from({ length: random.integer(1, 2) }, () => {
      const operator = new Operator({ world, api, tables, versions, random: world.newRandom() });
      return operator.run(random.integer(4, 14), pauseMs);
    });
  }

  /** Its instances are routed like any other. */
  #schedule(): Promise<void> {
    const { id, tenant } = this.#deps.versions[0]!;
    const cohort = this.#random.chance(0.5) ? { cohort_key: 'schedule' } : {};
    return this.#deps.insist([201], 'cron.create', tenant, '', {
      sequence_id: id,
      tenant_id: tenant,
      namespace: 'simulated',
      cron_expr: '*/3 * * * * * *',
      metadata: { asked: id, ...cohort },
    });
  }

  #promoteInSpite({ id, tenant_id }: Row): void {
    if (this.#random.chance(0.3)) {
      const body = { force: true };
      void this.#deps.api.call('releases.promote', String(tenant_id), String(id), body);
    }
  }

  /**
   * Gates decide before anything else ends, which would have them look again; validations that nobody
   * leads are ended by who takes the releases over; all shards know the routes.
   *
   * @param calmSince since when nothing goes wrong any more
   */
  async settle(calmSince: number): Promise<void> {
    const { world, cluster, observer } = this.#deps;
    while (observer.failing(calmSince) !== undefined) await world.sleep(500);
    const validating = () => this.#releases().find(({ state }) => state === 'validating');
    const takeOver = () => {
      if (validating() !== undefined) cluster.newest.killShard(0);
      return world.sleep(ROUTES_MS_MAX);
    };
    await takeOver();
    // What a network held back may have come since.
    while (validating() !== undefined || world.now < observer.movedAt + ROUTES_MS_MAX) {
      if (world.now > calmSince + LATE_MS_MAX) {
        throw new Violation(`release ${validating()?.id} stays in validating`);
      }
      await takeOver();
    }
    observer.settle();
  }

  /** Transitions are answered. */
  async moveOn(): Promise<void> {
    for (const { id, tenant_id, state } of this.#releases()) {
      if (state !== 'canary') continue;
      const move = this.#random.pick(['pause', 'rollback', 'evaluate'] as const);
      await this.#deps.insist([200, 409], `releases.${move}`, String(tenant_id), String(id));
    }
  }

  #releases(): Row[] {
    return [...this.#deps.tables.rows('releases').values()];
  }
}
