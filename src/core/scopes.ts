/**
 * What the expressions of a node see: data, under the items of the blocks around it and the error that is
 * caught there, and the outputs. Of items that run side by side a node sees its own alone (docs/blocks.md).
 */

import type { CatchingRecord, ForEachRecord, OpenRecord } from '../../schema/execution.js';
import type { JsonObject, JsonValue } from '../base/json.js';
import { caughtBy, ERROR_KEY } from './caught.js';
import type { Scope } from './condition.js';
import type { Evaluation } from './evaluation.js';
import { mergedOf, type OwnOutput } from './item-outputs.js';
import { layered } from './layered.js';
import { latestOutputs, outputsIn } from './outputs-view.js';
import { passOf } from './paths.js';
import type { NodePlace } from './plan-nodes.js';
import type { Env, Snapshot } from './progress.js';

/** A scope with what it was made for. */
interface Known {
  readonly loop: OpenRecord | undefined;
  readonly pass: number;
  readonly caught: number;
  readonly under: Scope;
  readonly scope: Scope;
}

/** The scopes of one turn. The last ones are kept, since neighbours mostly see the same. */
export class Scopes {
  readonly #run: Evaluation;
  #root: { readonly data: JsonObject; readonly scope: Scope } | undefined;
  #known: Known | undefined;

  constructor(run: Evaluation) {
    this.#run = run;
  }

  /** The section `runtime` has changed. */
  forget(): void {
    this.#root = undefined;
  }

  /** What the items have given has changed, or an error was caught. */
  forgetItem(): void {
    this.#known = undefined;
  }

  /** What expressions at this node see. */
  of(node: NodePlace): Scope {
    const under = this.#rootScope();
    const { caught, loops, slots } = node;
    if (loops.length === 0 && caught < 0) return under;
    const loop = this.#run.execution.o[loops.at(-1) ?? -1];
    const pass = loop === undefined ? 0 : passOf(loop, slots.at(-1)!);
    const known = this.#known;
    if (known?.loop === loop && known?.pass === pass && known.caught === caught) {
      if (known.under === under) return known.scope;
    }
    const over = this.overlayOf(node);
    const data = over === null ? under.data : layered(under.data, over);
    const outputs = loops.length === 0 ? under.outputs : outputsIn(this.#run, node);
    const scope = { ...under, data, outputs };
    this.#known = { loop, pass, caught, under, scope };
    return scope;
  }

  #rootScope(): Scope {
    const { snapshot, env } = this.#run;
    if (this.#root?.data !== snapshot.data) {
      this.#root = { data: snapshot.data, scope: scopeIn(snapshot, env) };
    }
    return this.#root.scope;
  }

  /** What lies over context.data for the node; null where nothing does. */
  overlayOf(node: NodePlace): JsonObject | null {
    const error = this.#errorOf(node);
    if (node.items < 0 && error === undefined) return null;
    const over: (readonly [string, JsonValue])[] = [];
    for (const [at, index] of node.loops.entries()) {
      const around = this.#run.plan.nodes[index]!;
      if (around.kind.repeats !== 'items') continue;
      const record = this.#run.execution.o[index]!;
      if (node.lanes.includes(index)) {
        for (const [key, [, before]] of Object.entries((record as ForEachRecord).t ?? {})) {
          over.push([key, before]);
        }
        over.push(...this.#mergedIn(node, index));
      }
      over.push(...around.kind.item(this.#run, around, record, node.slots[at]!));
    }
    if (error !== undefined) over.push([ERROR_KEY, error]);
    // fromEntries defines own properties, whatever their names are.
    return Object.fromEntries(over);
  }

  /** What steps of the item have merged that are in no item further in. */
  #mergedIn(node: NodePlace, lane: number): (readonly [string, JsonValue])[] {
    const { nodes, indexOf } = this.#run.plan;
    const isOwn = ({ block }: OwnOutput) => {
      const { lanes = [] } = nodes[indexOf.get(block) ?? -1] ?? {};
      return nodes[lanes.at(-1) ?? -1]?.first === nodes[lane]!.first;
    };
    return mergedOf(this.#run.lanes.ownIn(node, lane).filter(isOwn));
  }

  /** What the node sees as `data._error`; undefined: what the data says. */
  #errorOf({ caught }: NodePlace): JsonObject | null | undefined {
    const { execution, snapshot } = this.#run;
    if (caught >= 0) return (execution.o[caught] as CatchingRecord | undefined)?.m ?? null;
    return errorOutside(snapshot);
  }
}

/** What expressions outside of all blocks that hand out items or errors see. */
export function scopeIn(snapshot: Snapshot, { now, random }: Pick<Env, 'now' | 'random'>): Scope {
  const { data, outputs } = snapshot;
  const error = errorOutside(snapshot);
  return {
    data: error === undefined ? data : layered(data, { [ERROR_KEY]: error }),
    config: snapshot.config,
    outputs: latestOutputs(outputs),
    // A copy, since the section changes with every step and values of a scope may be kept.
    runtime: { ...snapshot.runtime },
    instanceId: snapshot.id,
    now,
    random,
  };
}

/** What is caught belongs to the block that has caught it; the data shows it to people. */
function errorOutside({ error, data }: Snapshot): JsonObject | null | undefined {
  if (error !== undefined) return error;
  return caughtBy(data) === undefined ? undefined : null;
}
