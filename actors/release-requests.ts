/** Requests about releases, on the first shard: from the text of the body to the owner's call. */

import type { Validators } from '../schema/validators.js';
import { parseBody } from '../src/body.js';
import type { ShardOperation } from './protocol.js';
import type { Releases, ValidationEnd } from './releases.js';

export type ReleaseOperation = Extract<ShardOperation, `releases.${string}`>;

/** As it came from the front; `target` is the release's id. */
export interface ReleaseRequest {
  readonly request: number;
  readonly operation: ReleaseOperation;
  readonly tenant: string;
  readonly target: string;
  readonly body: string;
}

/** @throws EngineError 400 for a body that is not as its route describes it */
export function askReleases(
  releases: Releases,
  validators: Validators,
  { request, operation, tenant, target: id, body }: ReleaseRequest,
): void {
  const call = { request, tenant, id };
  switch (operation) {
    case 'releases.create':
      releases.create(request, tenant, parseBody(validators, operation, body));
      return;
    case 'releases.beginValidation':
      releases.beginValidation(call, parseBody(validators, 'releases.validate', body || '{}'));
      return;
    case 'releases.endValidation':
      releases.endValidation(call, JSON.parse(body) as ValidationEnd);
      return;
    case 'releases.canary':
      releases.canary(call, parseBody(validators, operation, body).percent);
      return;
    case 'releases.evaluate':
      releases.evaluate(call);
      return;
    case 'releases.promote':
      releases.promote(call, parseBody(validators, operation, body || '{}').force ?? false);
      return;
    case 'releases.pause':
      releases.pause(call);
      return;
    case 'releases.rollback':
      releases.rollback(call);
  }
}
