/**
 * What the expressions of a node see: data, under the items of the blocks around it, and the outputs. Of
 * items that run side by side a node sees its own alone (docs/blocks.md).
 */

import type { Scope } from './condition.js';
import type { Evaluation } from './evaluation.js';
import type { LoopRecord, OpenRecord } from './execution.js';
import type { OutputsView } from './expression/scope.js';
import { mergedOf, type OwnOutput } from './item-outputs.js';
import type { JsonObject, JsonValue } from './json.js';
import { layered } from './layered.js';
import { passOf } from './paths.js';
import type { NodePlace } from './plan-nodes.js';
import type { Env, Snapshot } from './progress.js';

/** The scopes of one turn. The last ones are kept, since neighbours mostly see the same. */
export class Scopes {
  readonly #run: Evaluation;
  #root: Scope | undefined;
  #item: { record: OpenRecord; item: number; under: Scope; scope: Scope } | undefined;

  constructor(run: Evaluation) {
    this.#run = run;
  }

  /** The section `runtime` has changed. */
  forget(): void {
    this.#root = undefined;
  }

  /** What the items have given has changed. */
  forgetItem(): void {
    this.#item = undefined;
  }

  /** What expressions at this node see: the items of the blocks around it lie over data. */
  of(node: NodePlace): Scope {
    const under = this.#rootScope();
    if (node.items < 0) return under;
    const record = this.#run.execution.o[node.items] as LoopRecord;
    const item = passOf(record, node.slots[node.loops.indexOf(node.items)]!);
    const known = this.#item;
    if (known !== undefined && known.record === record && known.item === item) {
      if (known.under === under) return known.scope;
    }
    const data = layered(under.data, this.overlayOf(node)!);
    const outputs = node.lanes.length === 0 ? under.outputs : this.#outputsIn(node, under.outputs);
    const scope = { ...under, data, outputs };
    this.#item = { record, item, under, scope };
    return scope;
  }

  /** Of blocks in the items around it that run side by side, a node sees the outputs of its own item. */
  #outputsIn(node: NodePlace, latest: OutputsView): OutputsView {
    const { nodes, indexOf } = this.#run.plan;
    const lanes = node.lanes.map((lane) => {
      const { index, end } = nodes[nodes[lane]!.first]!;
      return { index, end, own: this.#run.lanes.ownIn(node, lane) };
    });
    const get = (blockId: string) => {
      const at = indexOf.get(blockId) ?? -1;
      const lane = lanes.findLast(({ index, end }) => index < at && at < end);
      if (lane === undefined) return latest.get(blockId);
      return lane.own.find(({ block }) => block === blockId)?.output;
    };
    const all = () => {
      const found = Object.keys(latest.all()).map((id) => [id, get(id)] as const);
      return Object.fromEntries(found.filter(([, output]) => output !== undefined)) as JsonObject;
    };
    return { get, all };
  }

  #rootScope(): Scope {
    const { snapshot, env } = this.#run;
    if (this.#root?.data !== snapshot.data) this.#root = scopeIn(snapshot, env);
    return this.#root;
  }

  /** The items of the blocks around the node by their names; null where there are none. */
  overlayOf(node: NodePlace): JsonObject | null {
    if (node.items < 0) return null;
    const items: (readonly [string, JsonValue])[] = [];
    for (const [at, index] of node.loops.entries()) {
      const around = this.#run.plan.nodes[index]!;
      if (around.kind.repeats !== 'items') continue;
      if (node.lanes.includes(index)) items.push(...this.#mergedIn(node, index));
      const record = this.#run.execution.o[index]!;
      items.push(...around.kind.item(this.#run, around, record, node.slots[at]!));
    }
    // fromEntries defines own properties, whatever their names are.
    return Object.fromEntries(items);
  }

  /** What the item has merged; items of a lane further in do not see what their siblings have. */
  #mergedIn(node: NodePlace, lane: number): (readonly [string, JsonValue])[] {
    const { nodes, indexOf } = this.#run.plan;
    const next = nodes[node.lanes[node.lanes.indexOf(lane) + 1] ?? -1];
    const { index: from, end } = nodes[next?.first ?? -1] ?? { index: 0, end: 0 };
    const isApart = ({ block }: OwnOutput) => {
      const at = indexOf.get(block) ?? -1;
      return at <= from || at >= end;
    };
    return mergedOf(this.#run.lanes.ownIn(node, lane).filter(isApart));
  }
}

/** What expressions see outside of all blocks that hand out items. */
export function scopeIn(snapshot: Snapshot, { now, random }: Pick<Env, 'now' | 'random'>): Scope {
  const { outputs } = snapshot;
  return {
    data: snapshot.data,
    config: snapshot.config,
    outputs: {
      get: (blockId) => outputs.get(blockId),
      all: () => Object.fromEntries(outputs),
    },
    // A copy, since the section changes with every step and values of a scope may be kept.
    runtime: { ...snapshot.runtime },
    instanceId: snapshot.id,
    now,
    random,
  };
}
