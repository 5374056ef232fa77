/** Bodies of continuity as the server takes them: by their schema, then by the rules between fields. */

import assert from 'node:assert/strict';
import {
  capabilitiesOf,
  type PlacementTerms,
  placementTerms,
} from '../../actors/continuity/core/runtimes.js';
import { transformsOf } from '../../actors/continuity/core/transforms.js';
import { type Checked, createValidators } from '../../schema/validators.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';

const ID = '0198c0de-0000-7000-8000-000000000000';
const { validateBody } = createValidators();

const then = <T, U>(checked: Checked<T>, judge: (value: T) => Checked<U>): Checked<U> =>
  checked.ok ? judge(checked.value) : checked;

export const takenTerms = (body: JsonObject): Checked<PlacementTerms> =>
  then(validateBody('continuity.place', structuredClone(body)), placementTerms);

export function acceptedTerms(body: JsonObject = {}): PlacementTerms {
  const taken = takenTerms(body);
  assert.ok(taken.ok, taken.ok ? '' : taken.message);
  return taken.value;
}

export function takenCapabilities(capabilities: JsonValue, now: number) {
  const checked = validateBody('runtimes.register', structuredClone({ capabilities }));
  return then(checked, (body) => capabilitiesOf(body.capabilities, now));
}

export function takenTransforms(transforms: JsonValue) {
  const ids = { continuity_id: ID, to_sequence_id: ID, to_version: 1 };
  const checked = validateBody('migrations.plan', structuredClone({ ...ids, transforms }));
  return then(checked, (body) => transformsOf(body.transforms ?? []));
}

export function takenCapsule(capsule: JsonValue | undefined) {
  const ids = { destination_runtime_id: ID, expected_epoch: 0 };
  return then(validateBody('capsules.import', { ...ids, capsule }), (body) => ({
    ok: true,
    value: body.capsule,
  }));
}
