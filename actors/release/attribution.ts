/**
 * What releases leave on an instance: the stamp in its metadata, the columns that
 * nobody else writes, and one row for its end, by which gates are judged.
 */

import type { BodyOf } from '../../schema/routes.js';
import { type InstanceState, isEnded } from '../../schema/states.js';
import type { JsonObject } from '../../src/base/json.js';
import type { NamedId } from '../runtime/sequence-name.js';
import type { Turn } from '../runtime/turn.js';
import type { Route } from './core/routes.js';
import { RELEASE_OUTCOME } from './tables.js';

/** What releases look at of an instance that is to be created. */
export interface Routable {
  readonly id: string;
  readonly body: Pick<
    BodyOf<'instances.create'>,
    'sequence_id' | 'version' | 'tenant_id' | 'idempotency_key' | 'metadata'
  >;
  /** Where the name leads that it was asked by. */
  readonly named?: NamedId;
  readonly route?: Route | undefined;
}

/** And of one that has ended, or has come back. */
export interface Attributed {
  readonly id: string;
  readonly sequence_id: string;
  readonly release_id: string | null;
  readonly created_at: string;
  readonly snapshot: { readonly state: InstanceState; readonly runtime: JsonObject };
}

/** Whether no release may lead it elsewhere: a version that is named is a pin (docs/releases.md). */
export function isPinned({ version }: Pick<Routable['body'], 'version'>): boolean {
  return version != null;
}

/** The sequence that was asked for, by its id or by its name; '' when the name leads nowhere. */
export function askedOf({ body, named }: Routable): string {
  return body.sequence_id ?? named ?? '';
}

/** Where the instance goes: to the sequence that was asked for, unless a release routes it. */
export function targetOf(instance: Routable): string {
  return instance.route?.sequenceId ?? askedOf(instance);
}

/** By which the instance falls on one side of a canary; an id that was just made stands for none. */
export function cohortKeyOf({ id, body }: Routable): string {
  const metadata = (body.metadata ?? {}) as JsonObject;
  return body.idempotency_key || (cohortKeyIn(metadata) ?? id);
}

export function cohortKeyIn(metadata: JsonObject): string | undefined {
  if (!Object.hasOwn(metadata, 'cohort_key')) return undefined;
  const { cohort_key: key } = metadata;
  return typeof key === 'string' ? key : undefined;
}

/** `release` is ours to say: what a caller wrote there is dropped. */
export function stamped(metadata: JsonObject, route: Route | undefined): JsonObject {
  if (route !== undefined) {
    return { ...metadata, release: { release_id: route.releaseId, variant: route.variant } };
  }
  if (!Object.hasOwn(metadata, 'release')) return metadata;
  const { release: _, ...own } = metadata;
  return own;
}

/**
 * Keeps the row of the end equal to the state, in the unit that changes it. A dry run has none.
 *
 * @param before the state before the unit
 */
export function noteOutcome(record: Attributed, turn: Turn, before: InstanceState): void {
  const { id, release_id, sequence_id, created_at, snapshot } = record;
  if (release_id === null || snapshot.runtime.dry_run === true) return;
  if (!isEnded(snapshot.state)) {
    if (isEnded(before)) turn.put(RELEASE_OUTCOME.clear, id, { instance_id: id });
    return;
  }
  // As text: one of these per instance that ends.
  turn.put(
    RELEASE_OUTCOME.set,
    id,
    `{"instance_id":"${id}","release_id":"${release_id}","sequence_id":"${sequence_id}",` +
      `"state":"${snapshot.state}","created_at":"${created_at}"}`,
  );
  turn.effects.push({ kind: 'release.ended', release: release_id });
}
