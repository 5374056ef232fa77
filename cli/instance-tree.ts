/** The tree of an instance as lines of text. */

import type { TreeNode } from '../client/src/index.js';
import type { Session } from './session.js';
import { durationText, memberText, toned } from './table.js';
import { toneOf } from './tones.js';

export function treeLines({ out }: Session, nodes: readonly TreeNode[]): string[] {
  const children = new Map<string, TreeNode[]>();
  for (const node of nodes) {
    const parent = node.parent_id ?? '';
    children.set(parent, [...(children.get(parent) ?? []), node]);
  }
  const width = Math.max(0, ...nodes.map(({ state }) => state.length));
  const below = (parent: string, depth: number): string[] =>
    (children.get(parent) ?? []).flatMap((node) => {
      const branch = node.branch_index === null ? '' : `[${node.branch_index}] `;
      const items = node.items === undefined ? '' : ` ${node.items.ended}/${node.items.total}`;
      const took =
        node.started_at === null || node.completed_at === null
          ? ''
          : ` ${out.paint.dim(lengthOf(node.started_at, node.completed_at))}`;
      const child = node.child_instance_id === undefined ? '' : ` → ${node.child_instance_id}`;
      const state = toned(node.state.padEnd(width), toneOf(node.state), out.paint);
      const name = `${branch}${memberText(node.block_id)} ${out.paint.dim(node.block_type)}`;
      return [
        `${state}  ${'  '.repeat(depth)}${name}${items}${took}${child}`,
        ...below(node.id, depth + 1),
      ];
    });
  return below('', 0);
}

function lengthOf(from: string, to: string): string {
  const ms = Date.parse(to) - Date.parse(from);
  return ms < 1_000 ? `${ms}ms` : durationText(ms);
}
