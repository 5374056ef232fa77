/** The state of an instance that migrations compare and capsules record. */

import { COMPLETED, type Execution } from '../../../schema/execution.js';
import type { JsonObject, JsonValue } from '../../../src/base/json.js';
import type { Plan } from '../../../src/core/plan-nodes.js';
import { canonicalSha256 } from '../../../src/core/sealing/canonical-json.js';

/** The parts of an instance that callers and its own steps change. */
export interface LivePlace {
  readonly data: JsonObject;
  readonly config: JsonObject;
  readonly audit: readonly JsonValue[];
  readonly execution: Execution;
}

/** Equal hashes mean that the instance did not change in between. */
export function placeSha256({ data, config, audit, execution }: LivePlace): string {
  return canonicalSha256({ data, config, audit, execution });
}

/** The data of a checkpoint made of the live state. */
export function liveCheckpoint(
  plan: Plan,
  { data, execution }: Pick<LivePlace, 'data' | 'execution'>,
  runtime: JsonObject,
): JsonObject {
  const done = plan.nodes.filter(({ index }) => execution.d[index]?.[0] === COMPLETED);
  return {
    safe_boundary: runtime.current_step ?? null,
    context_snapshot: data,
    completed_blocks: [...new Set(done.map(({ id }) => id))],
  };
}
