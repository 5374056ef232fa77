/**
 * What the expressions of a node see: the data, under the items of the loops around it and a caught error, and the
 * outputs. A node in a concurrent item sees only its own item (docs/blocks.md).
 */

import type { CatchingRecord, ForEachRecord, OpenRecord } from '../../schema/execution.js';
import type { JsonObject, JsonValue } from '../base/json.js';
import { caughtBy, ERROR_KEY } from './caught.js';
import type { Evaluation } from './evaluation.js';
import type { Scope } from './expression/scope.js';
import { mergedOf, type OwnOutput, ownIn } from './loop-items.js';
import { latestOutputs, outputsIn } from './outputs-view.js';
import { iterationAt } from './paths.js';
import type { NodePlace } from './plan-nodes.js';
import type { Env, Snapshot } from './progress.js';

interface Known {
  readonly loop: OpenRecord | undefined;
  readonly iteration: number;
  readonly caught: number;
  readonly under: Scope;
  readonly scope: Scope;
}

/** The scopes of one turn. The last one is cached, since neighbouring nodes mostly see the same. */
export class Scopes {
  readonly #run: Evaluation;
  #root: { readonly data: JsonObject; readonly scope: Scope } | undefined;
  #known: Known | undefined;

  constructor(run: Evaluation) {
    this.#run = run;
  }

  forget(): void {
    this.#root = undefined;
  }

  /** Call when outputs of items have changed, or an error was caught. */
  forgetItem(): void {
    this.#known = undefined;
  }

  of(node: NodePlace): Scope {
    const under = this.#rootScope();
    const { caught, loops, slots } = node;
    if (loops.length === 0 && caught < 0) return under;
    const loop = this.#run.execution.o[loops.at(-1) ?? -1];
    const iteration = loop === undefined ? 0 : iterationAt(loop, slots.at(-1)!);
    const known = this.#known;
    if (known?.loop === loop && known?.iteration === iteration && known.caught === caught) {
      if (known.under === under) return known.scope;
    }
    const over = this.overlayOf(node);
    const data = over === null ? under.data : layered(under.data, over);
    const outputs = loops.length === 0 ? under.outputs : outputsIn(this.#run, node);
    const scope = { ...under, data, outputs };
    this.#known = { loop, iteration, caught, under, scope };
    return scope;
  }

  #rootScope(): Scope {
    const { snapshot, env } = this.#run;
    if (this.#root?.data !== snapshot.data) {
      this.#root = { data: snapshot.data, scope: scopeIn(snapshot, env) };
    }
    return this.#root.scope;
  }

  overlayOf(node: NodePlace): JsonObject | null {
    const error = this.#errorOf(node);
    if (node.items < 0 && error === undefined) return null;
    const over: (readonly [string, JsonValue])[] = [];
    for (const [at, index] of node.loops.entries()) {
      const around = this.#run.plan.nodes[index]!;
      if (around.kind.repeats !== 'items') continue;
      const record = this.#run.execution.o[index]!;
      if (node.concurrentLoops.includes(index)) {
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

  /** What steps of this item have merged, without those in concurrent loops further inside. */
  #mergedIn(node: NodePlace, loop: number): (readonly [string, JsonValue])[] {
    const { nodes, indexOf } = this.#run.plan;
    const isOwn = ({ block }: OwnOutput) => {
      const { concurrentLoops = [] } = nodes[indexOf.get(block) ?? -1] ?? {};
      return nodes[concurrentLoops.at(-1) ?? -1]?.first === nodes[loop]!.first;
    };
    return mergedOf(ownIn(this.#run, node, loop).filter(isOwn));
  }

  /** `data._error` as the node sees it; undefined: as in the data. */
  #errorOf({ caught }: NodePlace): JsonObject | null | undefined {
    const { execution, snapshot } = this.#run;
    if (caught >= 0) return (execution.o[caught] as CatchingRecord | undefined)?.m ?? null;
    return errorOutside(snapshot);
  }
}

/** What expressions outside of loops and catching blocks see. */
export function scopeIn(snapshot: Snapshot, { now, random }: Pick<Env, 'now' | 'random'>): Scope {
  const { data, outputs } = snapshot;
  const error = errorOutside(snapshot);
  return {
    data: error === undefined ? data : layered(data, { [ERROR_KEY]: error }),
    config: snapshot.config,
    outputs: latestOutputs(outputs),
    // The section changes with every step, while values of a scope may be kept.
    runtime: { ...snapshot.runtime },
    instanceId: snapshot.id,
    now,
    random,
  };
}

/** Only lists of the catching block see a caught error; the data contains it for people. */
function errorOutside({ error, data }: Snapshot): JsonObject | null | undefined {
  if (error !== undefined) return error;
  return caughtBy(data) === undefined ? undefined : null;
}

/** Neither the two objects nor the result may be changed afterwards. */
export function layered(under: JsonObject, over: JsonObject): JsonObject {
  return new Proxy<JsonObject>({}, new Layers(under, over));
}

/** Looks up single keys in the two layers; reading all keys, as JSON.stringify does, builds the merged object once. */
class Layers implements ProxyHandler<JsonObject> {
  readonly #under: JsonObject;
  readonly #over: JsonObject;
  #merged: JsonObject | undefined;

  constructor(under: JsonObject, over: JsonObject) {
    this.#under = under;
    this.#over = over;
  }

  get(target: JsonObject, key: string): unknown {
    const layer = this.#layerOf(key);
    return layer === undefined ? Reflect.get(target, key) : layer[key];
  }

  has(target: JsonObject, key: string): boolean {
    return this.#layerOf(key) !== undefined || Reflect.has(target, key);
  }

  getOwnPropertyDescriptor(_target: JsonObject, key: string): PropertyDescriptor | undefined {
    const layer = this.#layerOf(key);
    if (layer === undefined) return undefined;
    return { value: layer[key], writable: true, enumerable: true, configurable: true };
  }

  ownKeys(): string[] {
    this.#merged ??= { ...this.#under, ...this.#over };
    return Object.keys(this.#merged);
  }

  #layerOf(key: string): JsonObject | undefined {
    if (Object.hasOwn(this.#over, key)) return this.#over;
    return Object.hasOwn(this.#under, key) ? this.#under : undefined;
  }
}
