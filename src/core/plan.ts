/** Compiles a valid definition into a plan, and checks the rules for the tree as a whole. */

import {
  type Block,
  HOOK_LISTS,
  HOOK_TIMEOUT_MS,
  type HookList,
  type HookStep,
  type Hooks,
  kindName,
} from '../../schema/blocks.js';
import type { CancelOnMember } from '../../schema/cancel-on.js';
import type { FlowLimits } from '../../schema/flow-limits.js';
import type { SearchableMember } from '../../schema/search.js';
import type { JsonObject, JsonValue } from '../base/json.js';
import { timeLimit } from '../base/time.js';
import { type BlockCompiler, guardOf, NO_SECRETS } from './block-compiler.js';
import { kindOf } from './blocks/kinds.js';
import { resultBlocks } from './blocks/results.js';
import { compileCancelOn } from './cancel-on.js';
import { type Condition, parseCondition } from './condition.js';
import { compileFlow } from './flow-limits.js';
import { type Parsed, parsing, Refusal, type Refused } from './parsed.js';
import type { NodePlace, Plan, PlanNode, SchemaCheck } from './plan-nodes.js';
import { searchPaths } from './search-terms.js';
import { compileTemplate, type Template } from './template.js';
import { type Copies, ONE_COPY, TreeRules } from './tree-rules.js';

export type { Plan, PlanNode, SchemaCheck } from './plan-nodes.js';
export type CompiledPlan = { readonly ok: true; readonly plan: Plan } | Refused;

export interface Definition extends Hooks, FlowLimits, CancelOnMember, SearchableMember {
  readonly id: string;
  readonly name?: string;
  readonly version?: number;
  readonly blocks: readonly Block[];
}

type Compile = (schema: JsonObject) => SchemaCheck;

/**
 * `ok: false`: the definition is refused (400), with the reason.
 * @param compileSchema compiles an `output_schema`; without it steps with one are refused, since ignoring the schema
 * would change what the step means (docs/decisions/0017-unknown-fields.md)
 */
export function compilePlan(definition: Definition, compileSchema?: Compile): CompiledPlan {
  const rules = new TreeRules();
  const compiler = new PlanCompiler(rules, compileSchema);
  const parsed = parsing(() => {
    const roots = compiler.list(definition.blocks, ROOT, 0);
    const hooks = compileHooks(definition, rules);
    // The outputs that hooks read are kept as well.
    for (const list of HOOK_LISTS) compiler.reads(hooks[list]?.outputRefs ?? NONE);
    const plan = compiler.finish(definition, roots);
    const flow = compileFlow(definition);
    const cancelOn = compileCancelOn(definition.cancel_on ?? []);
    const searchable = searchPaths(definition.searchable ?? []);
    return {
      ...plan,
      ...(Object.keys(hooks).length === 0 ? {} : { hooks }),
      ...(flow === undefined ? {} : { flow }),
      ...(cancelOn.length > 0 && { cancelOn }),
      ...(searchable.length > 0 && { searchable }),
    };
  });
  return parsed.ok ? { ok: true, plan: parsed.value } : parsed;
}

const NONE: ReadonlySet<string> = new Set();

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

/** Members that hooks do not support may be stored as false, which counts as absent. */
function asStep({ id, when, handler, params, timeout }: HookStep): Block {
  const most = Math.min(timeout ?? HOOK_TIMEOUT_MS, HOOK_TIMEOUT_MS);
  return { type: 'step', id, when: when ?? null, handler, params: params ?? null, timeout: most };
}

interface Enclosing
  extends Pick<
    NodePlace,
    'parent' | 'loops' | 'slots' | 'concurrentLoops' | 'collectors' | 'items' | 'caught'
  > {
  readonly depth: number;
  readonly copies: Copies;
}

/** The position from which blocks may give the last output of an item, and the `Enclosing` of these blocks. */
interface Giving {
  readonly from: number;
  readonly around: Enclosing;
}

const NO_NODES: readonly number[] = [];
const ROOT: Enclosing = {
  parent: -1,
  depth: 0,
  loops: NO_NODES,
  slots: NO_NODES,
  concurrentLoops: NO_NODES,
  collectors: NO_NODES,
  items: -1,
  caught: -1,
  copies: ONE_COPY,
};

type Writable<T> = { -readonly [K in keyof T]: T[K] };

class PlanCompiler implements BlockCompiler {
  readonly #compileSchema: Compile | undefined;
  readonly #nodes: Writable<NodePlace>[] = [];
  readonly #indexOf = new Map<string, number>();
  readonly #details = new Map<Block, object>();
  readonly #rules: TreeRules;
  #outputRefs: 'all' | Set<string> = new Set();
  /** The block that is being compiled, for the messages of refusals. */
  #block: Block | undefined;

  /** @param rules shared by all plans of the definition */
  constructor(rules: TreeRules, compileSchema: Compile | undefined) {
    this.#rules = rules;
    this.#compileSchema = compileSchema;
  }

  list(blocks: readonly Block[], around: Enclosing, branch: number, giving?: Giving): number[] {
    return blocks.map((block, position) => {
      const gives = giving !== undefined && position >= giving.from;
      return this.#node(block, gives ? giving.around : around, branch, position);
    });
  }

  finish({ id, name, version }: Definition, roots: readonly number[]): Plan {
    for (const { kind, lists } of this.#nodes) {
      if (kind.reportsResult) for (const list of lists) this.reads(resultBlocks(this.#nodes, list));
    }
    const refs = this.#outputRefs;
    for (const node of this.#nodes) node.isRead = refs === 'all' || refs.has(node.id);
    const nodes = this.#nodes as readonly PlanNode[];
    return {
      sequenceId: id,
      name: name ?? null,
      version: version ?? null,
      nodes,
      roots,
      concurrentLoops: nodes.flatMap(({ kind, lists, index }) =>
        kind.repeats === 'items' && lists.length > 1 ? [index] : [],
      ),
      indexOf: this.#indexOf,
      outputRefs: refs,
      isStepOnly: nodes.every(({ kind }) => kind.isLeaf),
      hasGates: nodes.some((node) => node.type === 'step' && node.gate !== undefined),
    };
  }

  #node(block: Block, around: Enclosing, branch: number, position: number): number {
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
      end: index + 1,
      lists: [],
      loops: around.loops,
      slots: around.slots,
      concurrentLoops: around.concurrentLoops,
      collectors: around.collectors,
      items: around.items,
      caught: around.caught,
      when: guardOf(block, this),
      timeoutMs: timeLimit(block.timeout),
      isRead: false,
    };
    // A spread with this many members makes objects whose every access is slow.
    const node = Object.assign(place, details) as Writable<NodePlace>;
    this.#nodes.push(node);
    node.lists = this.#lists(block, node, around);
    node.end = this.#nodes.length;
    return index;
  }

  /** Checks and compiles a block; all nodes of the block share the result. */
  #compile(block: Block, { depth, copies }: Enclosing, index: number): object {
    const problem = this.#rules.problemOf(block.id, depth + 1);
    if (problem !== undefined) throw new Refusal(problem);
    const exceeded = this.#rules.exceededBy(copies);
    if (exceeded !== undefined) throw new Refusal(exceeded.problem);
    const kind = kindOf(block);
    for (const { id } of kind.names(block)) {
      const clash = this.#rules.claim(id, `${block.type} step`);
      if (clash !== undefined) throw new Refusal(clash);
    }
    this.#indexOf.set(block.id, index);
    this.#block = block;
    const details = kind.compile(block, this);
    if (copies.times > 1) this.#details.set(block, details);
    return details;
  }

  #lists(block: Block, node: NodePlace, around: Enclosing): number[][] {
    const { kind, index } = node;
    const depth = around.depth + 1;
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
      concurrentLoops: copies > 1 ? [...around.concurrentLoops, index] : around.concurrentLoops,
      collectors: around.collectors,
      items: hasItems ? index : around.items,
      copies: copies > 1 ? { id: block.id, times: around.copies.times * copies } : around.copies,
    };
    const collectors = hasItems ? [...around.collectors, index] : around.collectors;
    const from = kind.lastOutputFrom(block);
    const all = copies > 1 ? Array.from({ length: copies }, () => lists[0]!) : lists;
    return all.map((list, slot) => {
      const caught = kind.seesError(slot) ? index : around.caught;
      const own = { ...inside, caught, slots: [...around.slots, slot] };
      return this.list(list, own, slot, { from, around: { ...own, collectors } });
    });
  }

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
}
