/**
 * Compiles a definition into a plan, with every check on the tree as a whole: the shapes of single
 * blocks have been checked by their schemas, and what they mean is the matter of their kinds.
 * Expressions that do not parse are warnings, because each has a meaning when it is reached: a
 * condition is false, a step fails.
 */

import { BLOCKS_MAX, type Block, DEPTH_MAX } from '../../schema/blocks.js';
import { kindOf } from './blocks/kinds.js';
import { type Condition, type Parsed, parseCondition } from './condition.js';
import type { JsonObject, JsonValue } from './json.js';
import type { NodePlace, Plan, PlanNode, SchemaCheck } from './plan-nodes.js';
import { handlerWarnings, templateWarnings } from './plan-warnings.js';
import { compileTemplate, type Template } from './template.js';

export type { Plan, PlanNode, SchemaCheck } from './plan-nodes.js';

/** More would make the reply to a creation larger than the definition. */
const WARNINGS_MAX = 100;

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
export class PlanCompiler {
  readonly #compileSchema: ((schema: JsonObject) => SchemaCheck) | undefined;
  readonly #nodes: Writable<NodePlace>[] = [];
  readonly #indexOf = new Map<string, number>();
  readonly #warnings: string[] = [];
  readonly #handlers = new Map<string, readonly string[]>();
  #outputRefs: 'all' | Set<string> = new Set();
  #hasEffects = false;
  /** The one whose kind is compiling it: what warnings and refusals are about. */
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
      warnings: this.#warnings,
    };
  }

  #node(block: Block, around: Surroundings, branch: number, position: number): number {
    const depth = around.depth + 1;
    const index = this.#nodes.length;
    if (depth > DEPTH_MAX) {
      throw new Refusal(`block ${block.id} is nested deeper than ${DEPTH_MAX} levels`);
    }
    if (index >= BLOCKS_MAX) throw new Refusal(`a sequence has at most ${BLOCKS_MAX} blocks`);
    if (this.#indexOf.has(block.id)) throw new Refusal(`block id ${block.id} is not unique`);
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

  /** What is probably a mistake, in words that follow the name of the block. Never fatal. */
  warn(problem: string): void {
    if (this.#warnings.length >= WARNINGS_MAX) return;
    this.#warnings.push(`${this.#block?.type} ${this.#block?.id} ${problem}`);
  }

  /** The definition is not accepted (400). */
  refuse(problem: string): never {
    throw new Refusal(`${this.#block?.type} ${this.#block?.id}: ${problem}`);
  }

  /** Warns of a name that is not built in but resembles one that is. Few names come many times. */
  checkHandler(name: string): void {
    let problems = this.#handlers.get(name);
    if (problems === undefined) {
      problems = handlerWarnings(name);
      this.#handlers.set(name, problems);
    }
    for (const problem of problems) this.warn(problem);
  }

  /** Parses an expression that the block will evaluate. */
  expression(text: string): Parsed<Condition> {
    const parsed = parseCondition(text);
    if (parsed.ok) this.reads(parsed.value.outputs);
    return parsed;
  }

  /** The same where what does not parse counts as false (docs/reference/expressions.md). */
  condition(text: string): Condition | undefined {
    const parsed = this.expression(text);
    if (parsed.ok) return parsed.value;
    this.warn(`has a condition that does not parse and is false: ${parsed.message}`);
    return undefined;
  }

  /** Compiles a value with templates that the block will render. */
  template(value: JsonValue): Template {
    const template = compileTemplate(value);
    this.reads(template.outputs);
    for (const problem of templateWarnings(value)) this.warn(problem);
    return template;
  }

  /** Outputs that the block reads, if not by an expression or template from here. */
  reads(outputs: 'all' | ReadonlySet<string>): void {
    if (this.#outputRefs === 'all') return;
    if (outputs === 'all') this.#outputRefs = 'all';
    else for (const id of outputs) this.#outputRefs.add(id);
  }

  /** The check of an `output_schema`. */
  outputSchema(schema: JsonObject): SchemaCheck {
    return this.#compileSchema?.(schema) ?? this.refuse('output_schema is not supported');
  }

  /** The block acts on the world outside, so that its instances do more than one commit. */
  noteEffect(): void {
    this.#hasEffects = true;
  }
}
