/** The operations on releases, on the first shard. */

import type { ValidateRelease } from '../../schema/release.js';
import type { Call, Operations, RouteOperations } from '../runtime/operation.js';
import type { Releases, ValidationEnd } from './releases.js';

export function releaseOperations(releases: Releases) {
  const routes = {
    'releases.create': { serve: (call) => releases.create(call) },
    'releases.canary': { serve: (call) => releases.canary(call) },
    'releases.evaluate': { serve: (call) => releases.evaluate(call) },
    'releases.promote': { serve: (call) => releases.promote(call) },
    'releases.pause': { serve: (call) => releases.pause(call) },
    'releases.rollback': { serve: (call) => releases.rollback(call) },
  } satisfies RouteOperations;
  /** The front thread runs validations (`actors/release/front/validation.ts`). */
  const own = {
    'releases.beginValidation': {
      serve: (call: Call<ValidateRelease>) => releases.beginValidation(call),
    },
    'releases.endValidation': {
      serve: (call: Call<ValidationEnd>) => releases.endValidation(call),
    },
  } satisfies Operations;
  return { ...routes, ...own };
}
