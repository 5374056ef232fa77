/** Wire shape and route of dry runs of definitions that are not stored. */

import * as t from './common.js';
import { FailureOrNull } from './failure.js';
import { TreeNode } from './instance.js';
import { front, ok, type RouteRow } from './route-row.js';
import { CreateSequence } from './sequence.js';

/** Outputs of a dry run as JSON, all blocks together. */
export const DRY_RUN_BYTES_MAX = 4 * 1024 * 1024;

export const DryRun = t.named('DryRun', 'The end of a dry run; times are virtual.', {
  state: t.noted(t.InstanceStateWord, 'Not an end state if it waits for what does not come.'),
  failure: FailureOrNull,
  data: t.noted(t.JsonObjectSchema, 'context.data at the end.'),
  tree: t.list(TreeNode),
  outputs: t.noted(t.JsonObjectSchema, 'The last output of each block, by block id.'),
});
export type DryRun = t.Static<typeof DryRun>;

export const DRY_RUN_ROWS = {
  'instances.dryRun': front.post('/instances/{id}/dry-run', {
    summary:
      'Run a definition that is not stored on the initial data of an instance, as a dry run.',
    body: CreateSequence,
    bodySize: 'large',
    definition: 'a sequence',
    makes: 'definition',
    repeats: 'it changes nothing',
    replies: ok(DryRun, 404, 413, 422),
  }),
} as const satisfies Record<string, RouteRow>;
