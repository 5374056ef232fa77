/** router: runs the first route that holds, else the default. The choice is stored, so a retry keeps it. */

import type { RouterBlock } from '../../../schema/blocks.js';
import { conditionOf } from '../block-compiler.js';
import { type Condition, holds } from '../condition.js';
import type { NodePlace } from '../plan-nodes.js';
import { choice } from './kind.js';

/** Lists: the routes, then the default. A condition that does not parse is undefined and counts as false. */
export interface RouterNode extends NodePlace {
  readonly type: 'router';
  readonly conditions: readonly (Condition | undefined)[];
}

export const router = choice<RouterBlock, RouterNode>({
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
  choose(run, node) {
    const scope = run.scopeOf(node);
    const route = node.conditions.findIndex((condition) => holds(condition, scope));
    return route < 0 ? node.conditions.length : route;
  },
});
