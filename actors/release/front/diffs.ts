/** Semantic diffs of stored definitions (docs/releases.md): of a release, or of any two. */

import type { Offload } from '../../../src/base/offload.js';
import { tenantOf } from '../../../src/base/tenancy.js';
import {
  type FrontDeps,
  type FrontOperations,
  jsonReply,
  type Operation,
} from '../../../src/http/operation.js';
import { sequenceById } from '../../catalog/front/sequence-reads.js';
import { COMPARE_DEFINITIONS } from '../jobs.js';
import { releaseNamed } from './operations.js';

/** Two sequences have no common owner, so the front compares them. */
export function releaseDiffOperations(offload: Offload) {
  const ofRelease: Operation<'releases.diff'> = async (deps, call) => {
    const release = await releaseNamed(deps, call);
    const definitions = await definitionsOf(deps, release.tenant_id, release);
    return jsonReply(await offload.run(call.tenant, COMPARE_DEFINITIONS, definitions));
  };

  const ofTwo: Operation<'sequences.compare'> = async (deps, call) => {
    const body = call.body;
    const tenant = tenantOf(call.tenant, body.tenant_id);
    const definitions = await definitionsOf(deps, tenant, body);
    return jsonReply(await offload.run(call.tenant, COMPARE_DEFINITIONS, definitions));
  };

  return {
    'releases.diff': ofRelease,
    'sequences.compare': ofTwo,
  } satisfies Partial<FrontOperations>;
}

interface Pair {
  readonly baseline_sequence_id: string;
  readonly candidate_sequence_id: string;
}

/**
 * @param tenant '' is any
 *
 * @throws EngineError 404
 */
async function definitionsOf(deps: FrontDeps, tenant: string, pair: Pair) {
  const [baseline, candidate] = await Promise.all([
    sequenceById(deps.reads, pair.baseline_sequence_id, tenant),
    sequenceById(deps.reads, pair.candidate_sequence_id, tenant),
  ]);
  return { baseline, candidate };
}
