/**
 * Compiles a definition into a plan, with every check on the tree as a whole: the shapes of single
 * blocks have been checked by their schemas, and what they mean is the matter of their kinds. What is
 * odd without being wrong is told when a definition is stored (`lint/definition.ts`).
 */

import type { Block } from '../../schema/blocks.js';
import type { BlockCompiler } from './block-compiler.js';
import { kindOf } from './blocks/kinds.js';
import { type Condition, type Parsed, parseCondition } from './condition.js';
import type { JsonObject, JsonValue } from './json.js';
import type { NodePlace, Plan, PlanNode, SchemaCheck } from './plan-nodes.js';
import { compileTemplate, type Template } from './template.js';
import { ALONE, type Crowd, TreeRules } from './tree-rules.js';

export type { Plan, PlanNode, SchemaCheck } from './plan-nodes.js';

export type CompiledPlan =
  | { readonly ok: true; readonly plan: Plan }
  | { readonly ok: false; readonly message: string };

export interface Definition {
  readonly id: string;
  readonly name?: string;
  readonly version?: number;
  readonly blocks: readonly Block[];
}

/**
 * Compiles a definition whose shape is valid. `ok: false` says what a caller must change (400).
 *
 * @param compileSchema makes a check of an `output_schema`; without it such steps are refused,
 *   since to ignore the schema would change what the step means (docs/decisions/0018-fields-that-are-not-supported.md)
 */
export function compilePlan(
  definition: Definition,
  compileSchema?: (schema: JsonObject) => SchemaCheck,
): CompiledPlan {
  const compiler = new PlanCompiler(compileSchema);
  try {
    const roots = compiler.list(definition.blocks, ROOT, 0);
    return { ok: true, plan: compiler.finish(definition, roots) };
  } catch (error) {
    if (error instanceof Refusal) return { ok: false, message: error.message };
    throw error;
  }
}

/** Leaves the recursion with what is wrong; never leaves this module. */
class Refusal extends Error {}

interface Surroundings {
  readonly parent: number;
  readonly depth: number;
  readonly loops: readonly number[];
  readonly slots: readonly number[];
  readonly lanes: readonly number[];
  readonly collectors: readonly number[];
  readonly items: number;
  readonly crowd: Crowd;
}

/** From where on in a list blocks may give the last output of an item, and what is around those. */
interface Giving {
  readonly from: number;
  readonly around: Surroundings;
}

const NONE: readonly number[] = [];
const ROOT: Surroundings = {
  parent: -1,
  depth: 0,
  loops: NONE,
  slots: NONE,
  lanes: NONE,
  collectors: NONE,
  items: -1,
  crowd: ALONE,
};

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** Compiles the tree; what it does for the kinds of blocks is at its end. */
class PlanCompiler implements BlockCompiler {
  readonly #compileSchema: ((schema: JsonObject) => SchemaCheck) | undefined;
  readonly #nodes: Writable<NodePlace>[] = [];
  readonly #indexOf = new Map<string, number>();
  readonly #details = new Map<Block, object>();
  readonly #rules = new TreeRules();
  #outputRefs: 'all' | Set<string> = new Set();
  #hasEffects = false;
  /** The one whose kind is compiling it: what refusals are about. */
  #block: Block | undefined;

  constructor(compileSchema: ((schema: JsonObject) => SchemaCheck) | undefined) {
    this.#compileSchema = compileSchema;
  }

  list(blocks: readonly Block[], around: Surroundings, branch: number, giving?: Giving): number[] {
    return blocks.map((block, position) => {
      const gives = giving !== undefined && position >= giving.from;
      return this.#node(block, gives ? giving.around : around, branch, position);
    });
  }

  finish({ id, name, version }: Definition, roots: readonly number[]): Plan {
    const refs = this.#outputRefs;
    for (const node of this.#nodes) node.isRead = refs === 'all' || refs.has(node.id);
    // Each kind has compiled the details of its own nodes.
    const nodes = this.#nodes as readonly PlanNode[];
    return {
      sequenceId: id,
      name: name ?? null,
      version: version ?? null,
      nodes,
      roots,
      indexOf: this.#indexOf,
      outputRefs: refs,
      isStepOnly: nodes.every(({ kind }) => kind.isLeaf),
      hasEffects: this.#hasEffects,
    };
  }

  #node(block: Block, around: Surroundings, branch: number, position: number): number {
    const depth = around.depth + 1;
    const index = this.#nodes.length;
    const kind = kindOf(block);
    const details = this.#details.get(block) ?? this.#compile(block, around, index);
    const place: NodePlace = {
      index,
      first: this.#indexOf.get(block.id)!,
      type: block.type,
      id: block.id,
      kind,
      parent: around.parent,
      branch,
      position,
      depth,
      end: index + 1,
      lists: [],
      loops: around.loops,
      slots: around.slots,
      lanes: around.lanes,
      collectors: around.collectors,
      items: around.items,
      isRead: false,
    };
    // Not by a spread: with this many fields that makes objects whose every access is slow.
    const node = Object.assign(place, details) as Writable<NodePlace>;
    this.#nodes.push(node);
    node.lists = this.#lists(block, node, around);
    node.end = this.#nodes.length;
    return index;
  }

  /** Checks and compiles a block; what comes of it is the same for all its nodes. */
  #compile(block: Block, { depth, crowd }: Surroundings, index: number): object {
    const problem = this.#rules.problemOf(block.id, depth + 1);
    if (problem !== undefined) throw new Refusal(problem);
    const crowded = this.#rules.crowdedBy(crowd);
    if (crowded !== undefined) throw new Refusal(crowded.problem);
    this.#indexOf.set(block.id, index);
    this.#block = block;
    const details = kindOf(block).compile(block, this);
    // Only blocks that have several nodes are looked for again.
    if (crowd.times > 1) this.#details.set(block, details);
    return details;
  }

  #lists(block: Block, node: NodePlace, around: Surroundings): number[][] {
    const { kind, index, depth } = node;
    const lists = kind.lists(block);
    if (kind.repeats === 'never') {
      const inside = { ...around, parent: index, depth };
      return lists.map((list, number) => this.list(list, inside, number));
    }
    const copies = kind.copies(node);
    const loops = [...around.loops, index];
    const hasItems = kind.repeats === 'items';
    const inside = {
      parent: index,
      depth,
      loops,
      lanes: copies > 1 ? [...around.lanes, index] : around.lanes,
      collectors: around.collectors,
      items: hasItems ? index : around.items,
      crowd: copies > 1 ? { id: block.id, times: around.crowd.times * copies } : around.crowd,
    };
    const collectors = hasItems ? [...around.collectors, index] : around.collectors;
    const from = kind.lastGiver(block);
    const all = copies > 1 ? Array.from({ length: copies }, () => lists[0]!) : lists;
    return all.map((list, slot) => {
      const own = { ...inside, slots: [...around.slots, slot] };
      return this.list(list, own, slot, { from, around: { ...own, collectors } });
    });
  }

  // -------------------------------------------------------------- for the kinds

  warn(): void {}

  refuse(_member: string, message: string): never {
    throw new Refusal(`${this.#block?.type} ${this.#block?.id}: ${message}`);
  }

  expression(text: string): Parsed<Condition> {
    const parsed = parseCondition(text);
    if (parsed.ok) this.reads(parsed.value.outputs);
    return parsed;
  }

  template(value: JsonValue): Template {
    const template = compileTemplate(value);
    this.reads(template.outputs);
    return template;
  }

  reads(outputs: 'all' | ReadonlySet<string>): void {
    if (this.#outputRefs === 'all') return;
    if (outputs === 'all') this.#outputRefs = 'all';
    else for (const id of outputs) this.#outputRefs.add(id);
  }

  outputSchema(schema: JsonObject): SchemaCheck {
    return (
      this.#compileSchema?.(schema) ??
      this.refuse('output_schema', 'output_schema is not supported')
    );
  }

  noteEffect(): void {
    this.#hasEffects = true;
  }
}
