/** Outputs that were too large to store, and that expressions see as a note (docs/reference/blocks.md). */

import { isJsonObject } from '../../../src/base/json.js';
import type { Plan, PlanNode } from '../../../src/core/plan-nodes.js';
import type { Snapshot } from '../../../src/core/progress.js';

/** The member that marks the note, for kinds whose output is composed of others. */
const NOTES: Readonly<Partial<Record<PlanNode['type'], string>>> = {
  for_each: 'truncated',
  sub_sequence: 'truncated',
  race: 'output_omitted',
};

/** The blocks with such an output, among those that expressions can read. */
export function truncatedOutputs({ nodes, indexOf }: Plan, { outputs }: Snapshot): string[] {
  return [...outputs].flatMap(([id, { output }]) => {
    const note = NOTES[nodes[indexOf.get(id) ?? -1]?.type ?? 'step'];
    const isCut = note !== undefined && isJsonObject(output) && output[note] === true;
    return isCut ? [id] : [];
  });
}
