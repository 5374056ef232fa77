/** The operations on releases, on the first shard. */

import type { ValidateRelease } from '../../schema/release.js';
import {
  type Call,
  type EngineOperations,
  ofFirstShard,
  type RouteOperations,
} from '../runtime/operation.js';
import type { Releases, ValidationEnd } from './releases.js';

export interface ReleaseParts {
  readonly releases: Releases | undefined;
}

export const RELEASE_OPERATIONS = {
  'releases.create': { serve: ({ releases }, call) => ofFirstShard(releases).create(call) },
  'releases.canary': { serve: ({ releases }, call) => ofFirstShard(releases).canary(call) },
  'releases.evaluate': { serve: ({ releases }, call) => ofFirstShard(releases).evaluate(call) },
  'releases.promote': { serve: ({ releases }, call) => ofFirstShard(releases).promote(call) },
  'releases.pause': { serve: ({ releases }, call) => ofFirstShard(releases).pause(call) },
  'releases.rollback': { serve: ({ releases }, call) => ofFirstShard(releases).rollback(call) },
} satisfies Partial<RouteOperations<ReleaseParts>>;

/** A validation is led by the front thread (`actors/release/front/validation.ts`). */
export const RELEASE_ENGINE_OPERATIONS = {
  'releases.beginValidation': {
    serve: ({ releases }, call: Call<ValidateRelease>) =>
      ofFirstShard(releases).beginValidation(call),
  },
  'releases.endValidation': {
    serve: ({ releases }, call: Call<ValidationEnd>) => ofFirstShard(releases).endValidation(call),
  },
} satisfies EngineOperations<ReleaseParts>;
