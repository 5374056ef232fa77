/**
 * router: the first route whose condition holds, else the default, else nothing. Decided once and
 * stored (06 row 15), also for a retry of the instance.
 */

import { evaluateCondition, isTruthy } from '../condition.js';
import type { Evaluation } from '../evaluation.js';
import { COMPLETED, type RouterRecord } from '../execution.js';
import type { RouterNode } from '../plan-nodes.js';
import type { BlockKind } from './kind.js';
import { afterChild, startAt } from './list.js';

export const router: BlockKind<RouterNode, RouterRecord> = {
  isKept: true,
  enter(run, node) {
    const kept = run.takeKept(node) as RouterRecord | undefined;
    const route = kept?.r ?? choose(run, node);
    run.open(node, { b: run.offset, r: route });
    if (!startAt(run, node.lists[route]!, 0)) run.finish(node, COMPLETED);
  },
  again() {},
  childDone(run, node, record, child, code) {
    const result = afterChild(run, node.lists[record.r]!, child, code);
    if (result !== 'open') run.finish(node, result);
  },
  runsList: (record, branch) => record.r === branch,
};

/** The list to run; the default is behind the routes. */
function choose(run: Evaluation, node: RouterNode): number {
  const scope = run.scopeOf(node);
  const route = node.conditions.findIndex(
    (condition) => condition !== undefined && isTruthy(evaluateCondition(condition, scope)),
  );
  return route < 0 ? node.conditions.length : route;
}
