/**
 * What differs between two versions of one block (04 §6). Values are compared as JSON, whatever the
 * order of keys; null is absent, and where a field of a composite block has a default, so is that.
 * Pure.
 */

import {
  type Block,
  type ForEachBlock,
  ITEM_VAR_DEFAULT,
  type LoopBlock,
  MAX_ITERATIONS_DEFAULT,
  type StepBlock,
} from '../../../schema/blocks.js';
import { PURE_HANDLERS } from '../builtin.js';
import { canonicalText, clip, compareText, isDeepEqual } from '../expression/bounds.js';
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../json.js';
import { conditionsOf, nameOf } from './block-tree.js';
import type { DiffCategory, Entry, Severity } from './diff-entry.js';

/** What workers do is not known, so it counts as an effect; of the built-ins one reaches outside. */
export function effectSeverity(block: Block): Severity {
  if (block.type !== 'step') return 'behavioral';
  const { handler } = block;
  return PURE_HANDLERS.has(handler) || handler === 'sleep' ? 'behavioral' : 'side_effect_risk';
}

/** The differences in what the block itself says; its place and the blocks inside are not looked at. */
export function blockChanges(before: Block, after: Block): Entry[] {
  const own = changesOf(before, after);
  return own.map(({ category, severity = 'behavioral', what }) => ({
    category,
    severity,
    block_id: after.id,
    summary: `${nameOf(after)}: ${what}`,
  }));
}

interface Change {
  readonly category: DiffCategory;
  /** Default: behavioral. */
  readonly severity?: Severity;
  /** In words that follow the name of the block. */
  readonly what: string;
}

function changesOf(before: Block, after: Block): Change[] {
  if (before.type === 'step' && after.type === 'step') return stepChanges(before, after);
  if (before.type === 'loop' && after.type === 'loop') return loopChanges(before, after);
  if (before.type === 'for_each' && after.type === 'for_each') return loopChanges(before, after);
  if (before.type === 'parallel' && after.type === 'parallel') {
    return branchesChange(before.branches.length, after.branches.length);
  }
  if (before.type === 'race' && after.type === 'race') {
    return [
      ...changed('race_changed', 'semantics', semanticsOf(before), semanticsOf(after)),
      ...branchesChange(before.branches.length, after.branches.length),
    ];
  }
  if (before.type === 'router' && after.type === 'router') {
    return [
      ...changed('router_changed', 'routes', conditionsOf(before), conditionsOf(after)),
      ...presenceChange('default list', before.default, after.default),
    ];
  }
  if (before.type === 'try_catch' && after.type === 'try_catch') {
    return presenceChange('finally list', before.finally_block, after.finally_block);
  }
  return [
    {
      category: 'block_type_changed',
      severity: effectSeverity(after),
      what: `was a ${before.type} before`,
    },
  ];
}

// ---------------------------------------------------------------- steps

/** Fields that are compared as they are. */
const STEP_FIELDS = [
  ['retry', 'retry_changed'],
  ['timeout', 'timeout_changed'],
  ['delay', 'delay_changed'],
  ['rate_limit_key', 'rate_limit_changed'],
  ['queue_name', 'queue_changed'],
  ['send_window', 'send_window_changed'],
  ['output_schema', 'output_schema_changed'],
  ['when', 'when_guard_changed'],
] as const satisfies readonly (readonly [keyof StepBlock, DiffCategory])[];

/** Objects of our own fields, of which those that are null are absent, too. */
const SETTINGS: ReadonlySet<string> = new Set(['retry', 'delay', 'send_window']);

function stepChanges(before: StepBlock, after: StepBlock): Change[] {
  const changes: Change[] = [];
  if (before.handler !== after.handler) {
    changes.push({
      category: 'handler_changed',
      severity: 'side_effect_risk',
      what: `handler changes from ${clip(before.handler)} to ${clip(after.handler)}`,
    });
  }
  const [paramsBefore, paramsAfter] = [before.params ?? null, after.params ?? null];
  if (!isDeepEqual(paramsBefore, paramsAfter)) {
    changes.push({
      category: 'params_changed',
      severity: effectSeverity(after),
      what: `params change${changedKeys(paramsBefore, paramsAfter)}`,
    });
  }
  for (const [field, category] of STEP_FIELDS) {
    changes.push(...changed(category, field, fieldOf(before, field), fieldOf(after, field)));
  }
  const isCancellable = (block: StepBlock) => block.cancellable ?? true;
  changes.push(
    ...changed('cancellable_changed', 'cancellable', isCancellable(before), isCancellable(after)),
  );
  return changes;
}

/** False may have been stored for absent by a version that did not know the field yet. */
function fieldOf(block: StepBlock, field: (typeof STEP_FIELDS)[number][0]): JsonValue {
  const value = (block[field] ?? null) as JsonValue;
  if (value === false) return null;
  return SETTINGS.has(field) && isJsonObject(value) ? withoutAbsent(value) : value;
}

function withoutAbsent(settings: JsonObject): JsonObject {
  const set = Object.entries(settings).filter(([, value]) => value !== null && value !== false);
  return Object.fromEntries(set);
}

/** Values stay out of the summary: parameters may hold what not everybody should read. */
function changedKeys(before: JsonValue, after: JsonValue): string {
  const [a, b] = [before ?? {}, after ?? {}];
  if (!isJsonObject(a) || !isJsonObject(b)) return '';
  const keys = Object.keys({ ...a, ...b });
  const differ = keys.filter((key) => !isSame(ownValue(a, key), ownValue(b, key)));
  return differ.length === 0 ? '' : `: ${listed(differ)}`;
}

function isSame(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  return a === undefined || b === undefined ? a === b : isDeepEqual(a, b);
}

// ---------------------------------------------------------------- composite blocks

const semanticsOf = ({ semantics }: Extract<Block, { type: 'race' }>) =>
  semantics ?? 'first_to_resolve';

type Repeating = LoopBlock | ForEachBlock;

function loopChanges(before: Repeating, after: Repeating): Change[] {
  const [old, now] = [termsOf(before), termsOf(after)];
  return Object.entries(now).flatMap(([term, value]) =>
    changed('loop_changed', term, old[term] ?? null, value),
  );
}

/** What says how often the body runs, and with which item. */
function termsOf(block: Repeating): Record<string, string | number> {
  const max_iterations = block.max_iterations ?? MAX_ITERATIONS_DEFAULT;
  if (block.type === 'loop') return { condition: block.condition, max_iterations };
  const { collection, item_var } = block;
  return { collection, item_var: item_var ?? ITEM_VAR_DEFAULT, max_iterations };
}

function branchesChange(before: number, after: number): Change[] {
  return changed('structure_changed', 'the number of branches', before, after);
}

function presenceChange(list: string, before: unknown, after: unknown): Change[] {
  const [had, has] = [before != null, after != null];
  if (had === has) return [];
  return [{ category: 'structure_changed', what: `the ${list} is ${has ? 'added' : 'removed'}` }];
}

// ---------------------------------------------------------------- words

function changed(
  category: DiffCategory,
  field: string,
  before: JsonValue,
  after: JsonValue,
): Change[] {
  if (isDeepEqual(before, after)) return [];
  return [{ category, what: `${field} changes from ${shown(before)} to ${shown(after)}` }];
}

function shown(value: JsonValue): string {
  return value === null ? 'none' : clip(canonicalText(value));
}

const LISTED_MAX = 5;

/** The first of the names in order, each cut to a readable length, and how many are beyond. */
export function listed(names: readonly string[]): string {
  const sorted = [...names].sort(compareText);
  const first = sorted.slice(0, LISTED_MAX).map((name) => clip(name));
  const more = names.length - first.length;
  return more === 0 ? first.join(', ') : `${first.join(', ')} and ${more} more`;
}
