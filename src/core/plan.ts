/**
 * Compiles a definition into a plan, with every check on the tree as a whole: the shapes of single
 * blocks have been checked by their schemas, and what they mean is the matter of their kinds. What is
 * odd without being wrong is told when a definition is stored (`lint/definition.ts`).
 */

import type { Block } from '../../schema/blocks.js';
import { type BlockCompiler, NO_SECRETS } from './block-compiler.js';
import { kindOf } from './blocks/kinds.js';
import { type Condition, type Parsed, parseCondition } from './condition.js';
import type { JsonObject, JsonValue } from './json.js';
import type { NodePlace, Plan, PlanNode, SchemaCheck } from './plan-nodes.js';
import { compileTemplate, type Template } from './template.js';
import { TreeRules } from './tree-rules.js';

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
  readonly items: number;
}

const ROOT: Surroundings = { parent: -1, depth: 0, loops: [], items: -1 };

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** Compiles the tree; what it does for the kinds of blocks is at its end. */
class PlanCompiler implements BlockCompiler {
  readonly #compileSchema: ((schema: JsonObject) => SchemaCheck) | undefined;
  readonly #nodes: Writable<NodePlace>[] = [];
  readonly #indexOf = new Map<string, number>();
  readonly #rules = new TreeRules();
  #outputRefs: 'all' | Set<string> = new Set();
  #hasEffects = false;
  /** The one whose kind is compiling it: what refusals are about. */
  #block: Block | undefined;

  constructor(compileSchema: ((schema: JsonObject) => SchemaCheck) | undefined) {
    this.#compileSchema = compileSchema;
  }

  list(blocks: readonly Block[], around: Surroundings, branch: number): number[] {
    return blocks.map((block, position) => this.#node(block, around, branch, position));
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
      hasGates: nodes.some((node) => node.type === 'step' && node.gate !== undefined),
    };
  }

  #node(block: Block, around: Surroundings, branch: number, position: number): number {
    const depth = around.depth + 1;
    const index = this.#nodes.length;
    const problem = this.#rules.problemOf(block.id, depth);
    if (problem !== undefined) throw new Refusal(problem);
    this.#indexOf.set(block.id, index);
    const kind = kindOf(block);
    const place: NodePlace = {
      index,
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
      items: around.items,
      isRead: false,
    };
    this.#block = block;
    // Not by a spread: with this many fields that makes objects whose every access is slow.
    const node = Object.assign(place, kind.compile(block, this)) as Writable<NodePlace>;
    this.#nodes.push(node);
    const inside: Surroundings = {
      parent: index,
      depth,
      loops: kind.repeats === 'never' ? around.loops : [...around.loops, index],
      items: kind.repeats === 'items' ? index : around.items,
    };
    node.lists = kind.lists(block).map((list, number) => this.list(list, inside, number));
    node.end = this.#nodes.length;
    return index;
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

  template(value: JsonValue, member: string, use?: 'call'): Template {
    const template = compileTemplate(value);
    if (template.hasSecrets && use !== 'call') this.refuse(member, NO_SECRETS);
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
