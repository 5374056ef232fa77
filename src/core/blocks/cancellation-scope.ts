/**
 * cancellation_scope: its blocks run one after the other, and no signal cuts them off. A race does, as it
 * cuts off steps that are not cancellable (docs/reference/blocks.md).
 */

import type { CancellationScopeBlock } from '../../../schema/blocks.js';
import { COMPLETED, type OpenBase } from '../../../schema/execution.js';
import { cutOff } from '../cutting.js';
import type { NodePlace } from '../plan-nodes.js';
import { composite } from './kind.js';
import { afterChild, startAt } from './list.js';

export interface CancellationScopeNode extends NodePlace {
  readonly type: 'cancellation_scope';
}

export const cancellationScope = composite<CancellationScopeBlock, CancellationScopeNode, OpenBase>(
  {
    compile: () => ({}),
    lists: (block) => [block.blocks],
    enter(run, node) {
      run.open(node, { b: run.offset });
      if (!startAt(run, node.lists[0]!, 0)) run.finish(node, COMPLETED);
    },
    childDone(run, node, _record, child, code) {
      const result = afterChild(run, node.lists[0]!, child, code);
      if (result !== 'open') run.finish(node, result);
    },
    cut: (run, node, record, by) => by === 'signal' || cutOff(run, node, record, by),
  },
);
