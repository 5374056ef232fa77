/**
 * Compiles a definition into a plan, with every check on the tree as a whole (01 §4.3): the shapes
 * of single blocks have been checked by their schemas. Expressions that do not parse are warnings,
 * because each has a meaning when it is reached: a condition is false, a step fails.
 */

import {
  type Block,
  type ForEachBlock,
  ITEM_VAR_DEFAULT,
  type LoopBlock,
  MAX_ITERATIONS_DEFAULT,
  RETRY_DEFAULTS,
  type RouterBlock,
  type StepBlock,
} from '../../schema/blocks.js';
import { BUILTIN_NAMES, PURE_HANDLERS } from './builtin.js';
import { type Condition, conditionOutputs, type Parsed, parseCondition } from './condition.js';
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from './json.js';
import type {
  ForEachNode,
  LoopNode,
  NodePlace,
  Plan,
  PlanNode,
  RetryPolicy,
  RouterNode,
  SchemaCheck,
  StepNode,
} from './plan-nodes.js';
import { handlerWarning, templateWarnings } from './plan-warnings.js';
import { compileTemplate, templateOutputs } from './template.js';
import type { DelayTimes } from './timing.js';

export type { Plan, PlanNode, SchemaCheck } from './plan-nodes.js';

/** 06 row 64: limits of ours, against stacks and turns without end. */
export const DEPTH_MAX = 64;
export const BLOCKS_MAX = 5_000;

/** More would make the reply to a creation larger than the definition. */
const WARNINGS_MAX = 100;

export type CompiledPlan =
  | { readonly ok: true; readonly plan: Plan }
  | { readonly ok: false; readonly message: string };

export interface Definition {
  readonly id: string;
  readonly blocks: readonly Block[];
}

/**
 * Compiles a definition whose shape is valid. `ok: false` says what a caller must change (400).
 *
 * @param compileSchema makes a check of an `output_schema`; without it such steps are refused,
 *   since to ignore the schema would change what the step means (06 row 39)
 */
export function compilePlan(
  definition: Definition,
  compileSchema?: (schema: JsonObject) => SchemaCheck,
): CompiledPlan {
  const compiler = new Compiler(compileSchema);
  try {
    const roots = compiler.list(definition.blocks, ROOT, 0);
    return { ok: true, plan: compiler.finish(definition.id, roots) };
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
  readonly forEach: number;
}

const ROOT: Surroundings = { parent: -1, depth: 0, loops: [], forEach: -1 };

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** What a kind of block adds to its place in the tree. */
type Details<N extends PlanNode> = N extends PlanNode ? Omit<N, keyof NodePlace> : never;

class Compiler {
  readonly #compileSchema: ((schema: JsonObject) => SchemaCheck) | undefined;
  readonly #nodes: Writable<PlanNode>[] = [];
  readonly #indexOf = new Map<string, number>();
  readonly #warnings: string[] = [];
  readonly #handlers = new Map<string, readonly string[]>();
  #outputRefs: 'all' | Set<string> = new Set();

  constructor(compileSchema: ((schema: JsonObject) => SchemaCheck) | undefined) {
    this.#compileSchema = compileSchema;
  }

  list(blocks: readonly Block[], around: Surroundings, branch: number): number[] {
    return blocks.map((block, position) => this.#node(block, around, branch, position));
  }

  finish(sequenceId: string, roots: readonly number[]): Plan {
    const refs = this.#outputRefs;
    for (const node of this.#nodes) node.isRead = refs === 'all' || refs.has(node.id);
    const nodes = this.#nodes as PlanNode[];
    return {
      sequenceId,
      nodes,
      roots,
      indexOf: this.#indexOf,
      outputRefs: refs,
      isStepOnly: nodes.every(({ type }) => type === 'step'),
      hasEffects: nodes.some((node) => node.type === 'step' && node.kind !== 'pure'),
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
    const place: NodePlace = {
      index,
      id: block.id,
      parent: around.parent,
      branch,
      position,
      depth,
      end: index + 1,
      lists: [],
      loops: around.loops,
      forEach: around.forEach,
      isRead: false,
    };
    // Not by a spread: with this many fields that makes objects whose every access is slow.
    const node = Object.assign(place, this.#details(block)) as Writable<PlanNode>;
    this.#nodes.push(node);
    const iterates = block.type === 'loop' || block.type === 'for_each';
    const inside: Surroundings = {
      parent: index,
      depth,
      loops: iterates ? [...around.loops, index] : around.loops,
      forEach: block.type === 'for_each' ? index : around.forEach,
    };
    node.lists = childLists(block).map((list, number) => this.list(list, inside, number));
    node.end = this.#nodes.length;
    return index;
  }

  #details(block: Block): Details<PlanNode> {
    switch (block.type) {
      case 'step':
        return this.#step(block);
      case 'router':
        return this.#router(block);
      case 'loop':
        return this.#loop(block);
      case 'for_each':
        return this.#forEach(block);
      case 'race':
        return { type: 'race', semantics: block.semantics ?? 'first_to_resolve' };
      case 'parallel':
      case 'try_catch':
        return { type: block.type };
    }
  }

  #step(block: StepBlock): Details<StepNode> {
    const pure = PURE_HANDLERS.get(block.handler);
    const about = `step ${block.id}`;
    this.#warn(about, this.#handlerWarning(block.handler));
    const params = (block.params ?? undefined) as JsonObject | undefined;
    const template = params === undefined ? undefined : compileTemplate(params);
    if (template !== undefined) {
      this.#reads(templateOutputs(template));
      this.#warn(about, templateWarnings(params!));
    }
    if (block.handler === 'assert') this.#assertion(params);
    const when = block.when == null ? undefined : parseCondition(block.when);
    if (when?.ok === true) this.#reads(conditionOutputs(when.value));
    if (when?.ok === false) this.#warn(about, [`will fail: when does not parse: ${when.message}`]);
    return {
      type: 'step',
      handler: block.handler,
      kind: stepKind(block.handler),
      pure,
      params: template,
      when,
      delay: delayTimes(block),
      retry: this.#retry(block),
      timeoutMs: block.timeout ?? null,
      rateLimitKey: block.rate_limit_key ?? null,
      queueName: block.queue_name ?? null,
      isCancellable: block.cancellable ?? true,
      checkOutput: this.#outputCheck(block),
    };
  }

  /** Definitions name few handlers many times. */
  #handlerWarning(handler: string): readonly string[] {
    let warning = this.#handlers.get(handler);
    if (warning === undefined) {
      warning = BUILTIN_NAMES.has(handler) ? [] : handlerWarning(handler);
      this.#handlers.set(handler, warning);
    }
    return warning;
  }

  /** `assert` parses its condition when it runs, so what it reads is not in the template. */
  #assertion(params: JsonObject | undefined): void {
    const text = params === undefined ? undefined : ownValue(params, 'condition');
    if (typeof text !== 'string') return;
    const parsed = parseCondition(text);
    this.#reads(text.includes('{{') || !parsed.ok ? 'all' : conditionOutputs(parsed.value));
  }

  #retry(block: StepBlock): RetryPolicy | undefined {
    const { retry } = block;
    if (retry == null) return undefined;
    const retryIf = retry.retry_if == null ? undefined : parseCondition(retry.retry_if);
    if (retryIf?.ok === true) this.#reads(conditionOutputs(retryIf.value));
    if (retryIf?.ok === false) {
      this.#warn(`step ${block.id}`, [`will not retry: ${retryIf.message}`]);
    }
    const maxBackoff = retry.max_backoff ?? RETRY_DEFAULTS.max_backoff;
    return {
      maxAttempts: retry.max_attempts,
      initial_backoff: retry.initial_backoff ?? RETRY_DEFAULTS.initial_backoff,
      max_backoff: maxBackoff,
      backoff_multiplier: retry.backoff_multiplier ?? RETRY_DEFAULTS.backoff_multiplier,
      retryIf,
      nonRetryableCodes: new Set(retry.non_retryable_codes ?? []),
    };
  }

  #outputCheck(block: StepBlock): SchemaCheck | undefined {
    if (block.output_schema == null) return undefined;
    if (this.#compileSchema === undefined) {
      throw new Refusal(`step ${block.id}: output_schema is not supported`);
    }
    return this.#compileSchema(block.output_schema as JsonObject);
  }

  #router(block: RouterBlock): Details<RouterNode> {
    const conditions = (block.routes ?? []).map(({ condition }) =>
      this.#lenient(`router ${block.id}`, condition),
    );
    return { type: 'router', conditions };
  }

  #loop(block: LoopBlock): Details<LoopNode> {
    return {
      type: 'loop',
      condition: this.#lenient(`loop ${block.id}`, block.condition),
      maxIterations: block.max_iterations ?? MAX_ITERATIONS_DEFAULT,
    };
  }

  #forEach(block: ForEachBlock): Details<ForEachNode> {
    const text = block.collection.trim();
    const template = text.includes('{{') ? compileTemplate(text) : undefined;
    if (template !== undefined) {
      this.#reads(templateOutputs(template));
      this.#warn(`for_each ${block.id}`, templateWarnings(text));
    }
    return {
      type: 'for_each',
      collection: template ?? text.split('.'),
      itemVar: block.item_var ?? ITEM_VAR_DEFAULT,
      maxIterations: block.max_iterations ?? MAX_ITERATIONS_DEFAULT,
    };
  }

  /** A condition that counts as false when it does not parse (02 §10). */
  #lenient(about: string, text: string): Condition | undefined {
    const parsed: Parsed<Condition> = parseCondition(text);
    if (!parsed.ok) {
      this.#warn(about, [`has a condition that does not parse and is false: ${parsed.message}`]);
      return undefined;
    }
    this.#reads(conditionOutputs(parsed.value));
    return parsed.value;
  }

  #reads(refs: 'all' | ReadonlySet<string>): void {
    if (this.#outputRefs === 'all') return;
    if (refs === 'all') this.#outputRefs = 'all';
    else for (const id of refs) this.#outputRefs.add(id);
  }

  #warn(about: string, problems: readonly string[]): void {
    for (const problem of problems) {
      if (this.#warnings.length < WARNINGS_MAX) this.#warnings.push(`${about} ${problem}`);
    }
  }
}

/** The child lists of a block, in the order in which its kind of node counts them. */
function childLists(block: Block): readonly (readonly Block[])[] {
  switch (block.type) {
    case 'step':
      return [];
    case 'parallel':
    case 'race':
      return block.branches;
    case 'router':
      return [...(block.routes ?? []).map(({ blocks }) => blocks), block.default ?? []];
    case 'try_catch':
      return [block.try_block, block.catch_block, block.finally_block ?? []];
    case 'loop':
    case 'for_each':
      return [block.body];
  }
}

function stepKind(handler: string): StepNode['kind'] {
  if (PURE_HANDLERS.has(handler)) return 'pure';
  if (handler === 'sleep') return 'sleep';
  return BUILTIN_NAMES.has(handler) ? 'in_process' : 'external';
}

function delayTimes(block: StepBlock): DelayTimes | undefined {
  const { delay } = block;
  if (delay == null) return undefined;
  return {
    duration: delay.duration ?? 0,
    business_days_only: delay.business_days_only ?? false,
    jitter: delay.jitter ?? 0,
    holidays: delay.holidays ?? [],
  };
}

/** The days of `context.config.holidays`, for delays; anything that is no text is left out. */
export function configHolidays(config: JsonObject): readonly string[] {
  const days: JsonValue | undefined = isJsonObject(config) ? ownValue(config, 'holidays') : null;
  return Array.isArray(days) ? days.filter((day) => typeof day === 'string') : [];
}
