/**
 * Compiles a definition into a plan, with every check on the tree as a whole: the shapes of single
 * blocks have been checked by their schemas, and what they mean is the matter of their kinds. What is
 * odd without being wrong is told when a definition is stored (`lint/definition.ts`).
 */

import {
  type Block,
  HOOK_LISTS,
  HOOK_TIMEOUT_MS,
  type HookList,
  type HookStep,
  type Hooks,
  kindName,
} from '../../schema/blocks.js';
import type { JsonObject, JsonValue } from '../base/json.js';
import { timeLimit } from '../base/time.js';
import { type BlockCompiler, guardOf, NO_SECRETS } from './block-compiler.js';
import { kindOf } from './blocks/kinds.js';
import { resultBlocks } from './blocks/results.js';
import { type Condition, type Parsed, parseCondition } from './condition.js';
import type { NodePlace, Plan, PlanNode, SchemaCheck } from './plan-nodes.js';
import { compileTemplate, type Template } from './template.js';
import { ALONE, type Crowd, TreeRules } from './tree-rules.js';

export type { Plan, PlanNode, SchemaCheck } from './plan-nodes.js';

export type CompiledPlan =
  | { readonly ok: true; readonly plan: Plan }
  | { readonly ok: false; readonly message: string };

export interface Definition extends Hooks {
  readonly id: string;
  readonly name?: string;
  readonly version?: number;
  readonly blocks: readonly Block[];
}

type Compile = (schema: JsonObject) => SchemaCheck;

/**
 * Compiles a definition whose shape is valid. `ok: false` says what a caller must change (400).
 *
 * @param compileSchema makes a check of an `output_schema`; without it such steps are refused,
 *   since to ignore the schema would change what the step means (docs/decisions/0017-unknown-fields.md)
 */
export function compilePlan(definition: Definition, compileSchema?: Compile): CompiledPlan {
  const rules = new TreeRules();
  const compiler = new PlanCompiler(rules, compileSchema);
  try {
    const roots = compiler.list(definition.blocks, ROOT, 0);
    const hooks = compileHooks(definition, rules);
    // What hooks read, of blocks and of one another, is kept for them.
    for (const list of HOOK_LISTS) compiler.reads(hooks[list]?.outputRefs ?? NONE);
    const plan = compiler.finish(definition, roots);
    return { ok: true, plan: Object.keys(hooks).length === 0 ? plan : { ...plan, hooks } };
  } catch (error) {
    if (error instanceof Refusal) return { ok: false, message: error.message };
    throw error;
  }
}

const NONE: ReadonlySet<string> = new Set();

/** A plan of its own for each list: they run when that of the blocks has ended. */
function compileHooks(definition: Definition, rules: TreeRules): NonNullable<Plan['hooks']> {
  const hooks: { [List in HookList]?: Plan } = {};
  for (const list of HOOK_LISTS) {
    const steps = definition[list] ?? [];
    if (steps.length === 0) continue;
    const compiler = new PlanCompiler(rules, undefined);
    const roots = compiler.list(steps.map(asStep), ROOT, 0);
    hooks[list] = compiler.finish({ ...definition, blocks: [] }, roots);
  }
  return hooks;
}

/** What else a hook may have is false, which is absent. */
function asStep({ id, when, handler, params, timeout }: HookStep): Block {
  const most = Math.min(timeout ?? HOOK_TIMEOUT_MS, HOOK_TIMEOUT_MS);
  return { type: 'step', id, when: when ?? null, handler, params: params ?? null, timeout: most };
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
  readonly caught: number;
  readonly crowd: Crowd;
}

/** From where on in a list blocks may give the last output of an item, and what is around those. */
interface Giving {
  readonly from: number;
  readonly around: Surroundings;
}

const NO_NODES: readonly number[] = [];
const ROOT: Surroundings = {
  parent: -1,
  depth: 0,
  loops: NO_NODES,
  slots: NO_NODES,
  lanes: NO_NODES,
  collectors: NO_NODES,
  items: -1,
  caught: -1,
  crowd: ALONE,
};

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** Compiles the tree; what it does for the kinds of blocks is at its end. */
class PlanCompiler implements BlockCompiler {
  readonly #compileSchema: Compile | undefined;
  readonly #nodes: Writable<NodePlace>[] = [];
  readonly #indexOf = new Map<string, number>();
  readonly #details = new Map<Block, object>();
  readonly #rules: TreeRules;
  #outputRefs: 'all' | Set<string> = new Set();
  #hasEffects = false;
  /** The one whose kind is compiling it: what refusals are about. */
  #block: Block | undefined;

  /** @param rules of the definition as a whole */
  constructor(rules: TreeRules, compileSchema: Compile | undefined) {
    this.#rules = rules;
    this.#compileSchema = compileSchema;
  }

  list(blocks: readonly Block[], around: Surroundings, branch: number, giving?: Giving): number[] {
    return blocks.map((block, position) => {
      const gives = giving !== undefined && position >= giving.from;
      return this.#node(block, gives ? giving.around : around, branch, position);
    });
  }

  finish({ id, name, version }: Definition, roots: readonly number[]): Plan {
    for (const { kind, lists } of this.#nodes) {
      if (kind.tellsResults) for (const list of lists) this.reads(resultBlocks(this.#nodes, list));
    }
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
      lanes: nodes.flatMap(({ kind, lists, index }) =>
        kind.repeats === 'items' && lists.length > 1 ? [index] : [],
      ),
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
    const kind = kindOf(block);
    const details = this.#details.get(block) ?? this.#compile(block, around, index);
    this.#block = block;
    const place: NodePlace = {
      index,
      first: this.#indexOf.get(block.id)!,
      type: kindName(block),
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
      caught: around.caught,
      when: guardOf(block, this),
      timeoutMs: timeLimit(block.timeout),
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
    const kind = kindOf(block);
    for (const { id } of kind.names(block)) {
      const clash = this.#rules.claim(id, `${block.type} step`);
      if (clash !== undefined) throw new Refusal(clash);
    }
    this.#indexOf.set(block.id, index);
    this.#block = block;
    const details = kind.compile(block, this);
    // Only blocks that have several nodes are looked for again.
    if (crowd.times > 1) this.#details.set(block, details);
    return details;
  }

  #lists(block: Block, node: NodePlace, around: Surroundings): number[][] {
    const { kind, index, depth } = node;
    const lists = kind.lists(block);
    if (kind.repeats === 'never') {
      return lists.map((list, number) => {
        const caught = kind.seesError(number) ? index : around.caught;
        return this.list(list, { ...around, parent: index, depth, caught }, number);
      });
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
      const caught = kind.seesError(slot) ? index : around.caught;
      const own = { ...inside, caught, slots: [...around.slots, slot] };
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
