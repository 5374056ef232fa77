/**
 * Where children go: a sequence that is asked for by its name, in the turn that makes the child's unit. What
 * is not at hand is read first, and then it is decided anew, as for other creations (`creations.ts`).
 */

import type { Names } from '../catalog/names.js';
import type { Plans, StoredSequence } from '../catalog/plans.js';
import { targetOf } from '../release/attribution.js';
import type { Routing } from '../release/routing.js';
import type { NamedId, SequenceName } from '../runtime/sequence-name.js';
import { type CreationDeps, checkCreation } from './creation.js';
import { type NewInstance, nameIn } from './record.js';

export interface ChildPlacesDeps extends CreationDeps {
  readonly plans: Pick<Plans, 'deletions' | 'get' | 'isBlocked' | 'load'>;
  readonly names: Pick<Names, 'get' | 'load'>;
  readonly routing: Pick<Routing, 'routed'>;
}

/** What was read for a child. */
export interface Found {
  /** As they were before the reading: a later deletion may be of what was found. */
  readonly deletions: number;
  readonly named: NamedId;
  /** Where it would have gone. */
  readonly target: string | undefined;
  readonly sequence: StoredSequence | undefined;
}

export class ChildPlaces {
  readonly #deps: ChildPlacesDeps;

  constructor(deps: ChildPlacesDeps) {
    this.#deps = deps;
  }

  /**
   * The child with the sequence and the route that it takes now.
   *
   * @param found what was read for it, if anything was
   * @returns undefined when something has to be read first
   * @throws EngineError why there can be no such child; 503: not now
   */
  place(asked: NewInstance, found: Found | undefined): NewInstance | undefined {
    const { plans, names, routing } = this.#deps;
    const read = found?.deletions === plans.deletions ? found : undefined;
    const named = names.get(nameIn(asked.body) as SequenceName) ?? read?.named;
    if (named == null) {
      if (read !== undefined) checkCreation(this.#deps, { ...asked, named }, undefined, '');
      return undefined;
    }
    const child = routing.routed({ ...asked, named });
    const target = targetOf(child);
    const isRead = read?.target === target;
    const sequence = plans.get(target) ?? (isRead ? read.sequence : undefined);
    if (sequence === undefined && !isRead) return undefined;
    checkCreation(this.#deps, child, sequence, '');
    return child;
  }

  /** Rejects when the database cannot be asked. */
  async read(child: string, name: SequenceName): Promise<Found> {
    const { plans, names, routing } = this.#deps;
    const { deletions } = plans;
    const named = await names.load(name);
    if (named == null) {
      return { deletions, named, target: undefined, sequence: undefined };
    }
    const body = { tenant_id: name.tenant, version: name.version };
    const target = targetOf(routing.routed({ id: child, body, named }));
    return { deletions, named, target, sequence: await plans.load(target) };
  }
}
