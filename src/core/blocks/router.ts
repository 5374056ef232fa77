/**
 * router: the first route whose condition holds, else the default, else nothing. Decided once and
 * stored (docs/reference/blocks.md), also for a retry of the instance.
 */

import type { RouterBlock } from '../../../schema/blocks.js';
import { COMPLETED, type RouterRecord } from '../../../schema/execution.js';
import { conditionOf } from '../block-compiler.js';
import { type Condition, evaluateCondition, isTruthy } from '../condition.js';
import type { Evaluation } from '../evaluation.js';
import type { NodePlace } from '../plan-nodes.js';
import { composite } from './kind.js';
import { afterChild, startAt } from './list.js';

/** Lists: the routes, then the default. A condition that does not parse is undefined: false. */
export interface RouterNode extends NodePlace {
  readonly type: 'router';
  readonly conditions: readonly (Condition | undefined)[];
}

export const router = composite<RouterBlock, RouterNode, RouterRecord>({
  isKept: true,
  order: 'one',
  compile(block, compiler) {
    const routes = block.routes ?? [];
    return {
      conditions: routes.map(({ condition }, index) =>
        conditionOf(compiler, condition, { member: `routes[${index}].condition` }),
      ),
    };
  },
  lists(block) {
    const routes = block.routes ?? [];
    return [...routes.map(({ blocks }) => blocks), block.default ?? []];
  },
  enter(run, node) {
    const kept = run.takeKept(node) as RouterRecord | undefined;
    const route = kept?.r ?? choose(run, node);
    run.open(node, { b: run.offset, r: route });
    if (!startAt(run, node.lists[route]!, 0)) run.finish(node, COMPLETED);
  },
  childDone(run, node, record, child, code) {
    const result = afterChild(run, node.lists[record.r]!, child, code);
    if (result !== 'open') run.finish(node, result);
  },
  runsList: (record, branch) => record.r === branch,
  awaits: (record, branch) => record.x !== 1 && record.r === branch,
});

/** The list to run; the default is behind the routes. */
function choose(run: Evaluation, node: RouterNode): number {
  const scope = run.scopeOf(node);
  const route = node.conditions.findIndex(
    (condition) => condition !== undefined && isTruthy(evaluateCondition(condition, scope)),
  );
  return route < 0 ? node.conditions.length : route;
}
