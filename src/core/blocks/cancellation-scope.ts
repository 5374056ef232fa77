/** cancellation_scope: protects its blocks from the signal `cancel`, but not from a decided race or a time-out. */

import type { CancellationScopeBlock } from '../../../schema/blocks.js';
import { COMPLETED, type OpenBase } from '../../../schema/execution.js';
import { cutOff } from '../cutting.js';
import type { NodePlace } from '../plan-nodes.js';
import { composite } from './kind.js';
import { startList } from './list.js';

export type CancellationScopeNode = NodePlace & { readonly type: 'cancellation_scope' };

export const cancellationScope = composite<CancellationScopeBlock, CancellationScopeNode, OpenBase>(
  {
    compile: () => ({}),
    lists: (block) => [block.blocks],
    enter(run, node) {
      run.open(node, { b: run.offset });
      if (!startList(run, node, 0)) run.finish(node, COMPLETED);
    },
    cut: (run, node, record, by) => by === 'signal' || cutOff(run, node, record, by),
  },
);
