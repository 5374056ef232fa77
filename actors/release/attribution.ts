/** The data of a release on an instance: metadata, columns, and the outcome row that gates count. */

import type { BodyOf } from '../../schema/routes.js';
import { type InstanceState, isEnded } from '../../schema/states.js';
import { type JsonObject, ownValue } from '../../src/base/json.js';
import type { NamedId } from '../runtime/sequence-name.js';
import type { Turn } from '../runtime/turn.js';
import type { Route } from './core/routes.js';
import { RELEASE_OUTCOME } from './tables.js';

export interface Routable {
  readonly id: string;
  readonly body: Pick<
    BodyOf<'instances.create'>,
    'sequence_id' | 'version' | 'tenant_id' | 'idempotency_key' | 'metadata'
  >;
  readonly named?: NamedId;
  readonly route?: Route | undefined;
}

export interface Attributed {
  readonly id: string;
  readonly sequence_id: string;
  readonly release_id: string | null;
  readonly created_at: string;
  readonly snapshot: { readonly state: InstanceState; readonly runtime: JsonObject };
}

/** A creation that names a version is pinned: no release routes it (docs/releases.md). */
export function isPinned({ version }: Pick<Routable['body'], 'version'>): boolean {
  return version != null;
}

/** The requested sequence id; '' when its name is unknown. */
export function askedOf({ body, named }: Routable): string {
  return body.sequence_id ?? named ?? '';
}

export function targetOf(instance: Routable): string {
  return instance.route?.sequenceId ?? askedOf(instance);
}

/** The key that assigns the instance to one side of a canary. */
export function cohortKeyOf({ id, body }: Routable): string {
  return body.idempotency_key || (cohortKeyIn((body.metadata ?? {}) as JsonObject) ?? id);
}

export function cohortKeyIn(metadata: JsonObject): string | undefined {
  const key = ownValue(metadata, 'cohort_key');
  return typeof key === 'string' ? key : undefined;
}

/** The key `release` is reserved: a value from the caller is dropped. */
export function stamped(metadata: JsonObject, route: Route | undefined): JsonObject {
  if (route !== undefined) {
    return { ...metadata, release: { release_id: route.releaseId, variant: route.variant } };
  }
  if (!Object.hasOwn(metadata, 'release')) return metadata;
  const { release: _, ...own } = metadata;
  return own;
}

/** Updates the outcome row in the unit that changes the state. A dry run has no outcome row. */
export function noteOutcome(record: Attributed, turn: Turn, before: InstanceState): void {
  const { id, release_id, sequence_id, created_at, snapshot } = record;
  if (release_id === null || snapshot.runtime.dry_run === true) return;
  if (!isEnded(snapshot.state)) {
    if (isEnded(before)) turn.put(RELEASE_OUTCOME.clear, id, { instance_id: id });
    return;
  }
  turn.put(
    RELEASE_OUTCOME.set,
    id,
    `{"instance_id":"${id}","release_id":"${release_id}","sequence_id":"${sequence_id}",` +
      `"state":"${snapshot.state}","created_at":"${created_at}"}`,
  );
  turn.effects.push({ kind: 'release.ended', release: release_id });
}
