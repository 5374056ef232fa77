/**
 * The values that expressions of a node see: context.data, on top of it the items of enclosing loops and a caught error,
 * and the outputs (docs/reference/expressions.md). Outside of loops the latest output of a block is visible; in an item
 * or a run of a saga, the output of the same item or run; in a loop, the output of the latest iteration until the block
 * begins in the current one. Outputs of failed blocks, and of blocks that the iteration has skipped, are not visible.
 */

import type { CatchingRecord, ForEachRecord, OpenRecord } from '../../schema/execution.js';
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../base/json.js';
import type { Evaluation } from './evaluation.js';
import type { OutputsView, Scope } from './expression/scope.js';
import { isErrorRow } from './failures.js';
import { mergedOf, type OwnOutput, ownIn } from './loop-items.js';
import { isFailure } from './owed.js';
import { copyOf, iterationAt } from './paths.js';
import type { NodePlace, PlanNode } from './plan-nodes.js';
import type { Env, KeptOutput, Snapshot } from './progress.js';

interface Known {
  readonly loop: OpenRecord | undefined;
  readonly iteration: number;
  readonly caught: number;
  readonly under: Scope;
  readonly scope: Scope;
}

/** The scopes of one turn. The last scope is cached, since neighbouring nodes mostly share it. */
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

  /** Call when values that items see have changed, or an error was caught. */
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
    const names: (readonly [string, JsonValue])[] = [];
    for (const [at, index] of node.loops.entries()) {
      const around = this.#run.plan.nodes[index]!;
      if (around.kind.repeats !== 'items') continue;
      const record = this.#run.execution.o[index] as ForEachRecord;
      const slot = node.slots[at]!;
      if (node.concurrentLoops.includes(index)) {
        for (const [key, [, before]] of Object.entries(record.t ?? {})) over.push([key, before]);
        over.push(...this.#mergedIn(node, index));
        over.push(...Object.entries(record.v?.[iterationAt(record, slot)] ?? {}));
      }
      names.push(...around.kind.item(this.#run, around, record, slot));
    }
    // They hide what is merged in them, and what is changed from outside.
    over.push(...names);
    if (error !== undefined) over.push([ERROR_KEY, error]);
    // fromEntries defines own properties, whatever their names are.
    return Object.fromEntries(over);
  }

  /** The members that steps of this item have merged, without steps in inner concurrent loops. */
  #mergedIn(node: NodePlace, loop: number): (readonly [string, JsonValue])[] {
    const { nodes, indexOf } = this.#run.plan;
    const isOwn = ({ block }: OwnOutput) => {
      const { concurrentLoops = [] } = nodes[indexOf.get(block) ?? -1] ?? {};
      return nodes[concurrentLoops.at(-1) ?? -1]?.first === nodes[loop]!.first;
    };
    return mergedOf(ownIn(this.#run, node, loop).filter(isOwn));
  }

  /** `data._error` as the node sees it; undefined: unchanged. */
  #errorOf({ caught }: NodePlace): JsonObject | null | undefined {
    const { execution, snapshot } = this.#run;
    if (caught >= 0) return (execution.o[caught] as CatchingRecord | undefined)?.m ?? null;
    return errorOutside(snapshot);
  }
}

/** The scope outside of loops and catching blocks. */
export function scopeIn(snapshot: Snapshot, { now, random }: Pick<Env, 'now' | 'random'>): Scope {
  const { data, outputs } = snapshot;
  const error = errorOutside(snapshot);
  return {
    data: error === undefined ? data : layered(data, { [ERROR_KEY]: error }),
    config: snapshot.config,
    outputs: viewOf(
      () => outputs.keys(),
      (blockId) => outputs.get(blockId)?.output,
    ),
    // The section changes with every step, while values of a scope may be kept.
    runtime: { ...snapshot.runtime },
    instanceId: snapshot.id,
    now,
    random,
  };
}

/** The error outside of catching blocks. The data contains a caught error for people, but expressions do not see it. */
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

/** The outputs that a node inside loops sees; the view follows the run. */
export function outputsIn(run: Evaluation, reader: NodePlace): OutputsView {
  const { plan, snapshot } = run;
  const ids = () => {
    const own = reader.concurrentLoops.flatMap((loop) => ownIn(run, reader, loop));
    return new Set([...snapshot.outputs.keys(), ...own.map(({ block }) => block)]);
  };
  return viewOf(ids, (blockId) => {
    const block = plan.nodes[plan.indexOf.get(blockId) ?? -1];
    if (block === undefined) return snapshot.outputs.get(blockId)?.output;
    const kept = keptFor(run, reader, block);
    if (kept === undefined) return undefined;
    const common = commonLoops(run, reader, block);
    if (common > 0 && isErrorRow(kept.output)) return undefined;
    return isOfCurrentIteration(run, reader, block, kept.iteration, common)
      ? kept.output
      : undefined;
  });
}

function viewOf(ids: () => Iterable<string>, get: OutputsView['get']): OutputsView {
  const all = () => {
    const found = Array.from(ids(), (id) => [id, get(id)] as const);
    return Object.fromEntries(found.filter(([, output]) => output !== undefined)) as JsonObject;
  };
  return { get, all };
}

/** A node in a concurrent item sees only the outputs of its own item. */
function keptFor(run: Evaluation, reader: NodePlace, block: PlanNode): KeptOutput | undefined {
  const { nodes } = run.plan;
  const loop = reader.concurrentLoops.findLast((index) => {
    const { index: from, end } = nodes[nodes[index]!.first]!;
    return from < block.index && block.index < end;
  });
  if (loop === undefined) return run.snapshot.outputs.get(block.id);
  return ownIn(run, reader, loop).find((own) => own.block === block.id);
}

function commonLoops({ plan }: Evaluation, reader: NodePlace, block: PlanNode): number {
  const { nodes } = plan;
  const first = (index: number | undefined) => (index === undefined ? -1 : nodes[index]!.first);
  const apart = reader.loops.findIndex((loop, at) => nodes[loop]!.first !== first(block.loops[at]));
  return apart < 0 ? reader.loops.length : apart;
}

function isOfCurrentIteration(
  run: Evaluation,
  reader: NodePlace,
  block: PlanNode,
  iteration: string,
  common: number,
): boolean {
  const { execution, plan } = run;
  const path = iteration.split('.');
  const loops = reader.loops.slice(0, common);
  const apart = loops.findIndex(
    (loop, at) => Number(path[at]) !== iterationAt(execution.o[loop], reader.slots[at]!),
  );
  if (apart < 0) return true;
  const isCarried = loops.slice(apart).every((loop) => plan.nodes[loop]!.kind.carriesOutputs);
  return isCarried && !hasReached(run, reader, block, loops.at(-1)!);
}

/** Whether the current iteration has reached the block. The result is the same for all tries of a step. */
function hasReached(run: Evaluation, reader: NodePlace, block: PlanNode, loop: number): boolean {
  const { execution, plan } = run;
  const chain: PlanNode[] = [];
  const slotIn = ({ first }: PlanNode) => {
    const at = reader.loops.findIndex((index) => plan.nodes[index]!.first === first);
    return reader.slots[at] ?? 0;
  };
  let node = copyOf(plan, block, slotIn);
  for (; node !== undefined && node.index !== loop; node = plan.nodes[node.parent]) {
    chain.unshift(node);
  }
  for (const [at, place] of chain.entries()) {
    if (execution.d[place.index] !== undefined) return true;
    const record = execution.o[place.index];
    if (record === undefined) return isSkippedOver(run, place);
    const inner = chain[at + 1];
    if (inner === undefined) return place.index !== reader.index;
    const isReached =
      execution.o[inner.index] !== undefined || execution.d[inner.index] !== undefined;
    if (!isReached && !place.kind.awaits(record, inner.branch)) return true;
  }
  return false;
}

function isSkippedOver({ plan, execution }: Evaluation, node: PlanNode): boolean {
  const list = plan.nodes[node.parent]?.lists[node.branch] ?? [];
  return list.slice(0, node.position).some((index) => isFailure(execution.d[index]?.[0]));
}

export const ERROR_KEY = '_error';

export function catchError(run: Evaluation, record: CatchingRecord, error: JsonObject): void {
  record.m = error;
  run.snapshot.data = { ...run.snapshot.data, [ERROR_KEY]: error };
  run.scopes.forgetItem();
}

/** For a block that has ended without a failure: errors caught inside are handled, also in losers of a race. */
export function clearError({ snapshot, plan }: Evaluation, { first, index, end }: NodePlace): void {
  const block = caughtBy(snapshot.data);
  const place = block === undefined ? -1 : (plan.indexOf.get(block) ?? -1) - first;
  if (place >= 0 && place < end - index) dropError(snapshot);
}

/** For an instance that was completed by request. */
export function clearErrors({ snapshot }: Evaluation): void {
  if (caughtBy(snapshot.data) !== undefined) dropError(snapshot);
}

function dropError(snapshot: Snapshot): void {
  const { [ERROR_KEY]: _over, ...rest } = snapshot.data;
  snapshot.data = rest;
}

/** The block whose error the data shows; undefined when it shows no caught error. */
export function caughtBy(data: JsonObject): string | undefined {
  const error = ownValue(data, ERROR_KEY);
  if (error === undefined || !isJsonObject(error)) return undefined;
  const { source, block_id: block } = error;
  const isCaught = source === 'try_catch' || source === 'saga';
  return isCaught && typeof block === 'string' ? block : undefined;
}
