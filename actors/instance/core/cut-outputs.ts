/**
 * Outputs that the engine has put a note in the place of, since they were too large (docs/reference/blocks.md): expressions
 * that read them see the note.
 */

import { isJsonObject } from '../../../src/base/json.js';
import type { Plan, PlanNode } from '../../../src/core/plan-nodes.js';
import type { Snapshot } from '../../../src/core/progress.js';

/** The member that says so, of the kinds whose outputs are made of others. */
const NOTES: Readonly<Partial<Record<PlanNode['type'], string>>> = {
  for_each: 'truncated',
  sub_sequence: 'truncated',
  race: 'output_omitted',
};

/** The blocks, as far as expressions can read them. */
export function cutOutputs({ nodes, indexOf }: Plan, { outputs }: Snapshot): string[] {
  return [...outputs].flatMap(([id, { output }]) => {
    const note = NOTES[nodes[indexOf.get(id) ?? -1]?.type ?? 'step'];
    const isCut = note !== undefined && isJsonObject(output) && output[note] === true;
    return isCut ? [id] : [];
  });
}
