/** Outputs too large to store: expressions see a note instead (docs/reference/blocks.md). */

import { isJsonObject } from '../../../src/base/json.js';
import type { Plan, PlanNode } from '../../../src/core/plan-nodes.js';
import type { Snapshot } from '../../../src/core/progress.js';

/** The member that marks a note, by kinds that compose their output of other outputs. */
const NOTES: Readonly<Partial<Record<PlanNode['type'], string>>> = {
  for_each: 'truncated',
  sub_sequence: 'truncated',
  race: 'output_omitted',
};

export function truncatedOutputs({ nodes, indexOf }: Plan, { outputs }: Snapshot): string[] {
  return [...outputs].flatMap(([id, { output }]) => {
    const note = NOTES[nodes[indexOf.get(id) ?? -1]?.type ?? 'step'];
    const isCut = note !== undefined && isJsonObject(output) && output[note] === true;
    return isCut ? [id] : [];
  });
}
