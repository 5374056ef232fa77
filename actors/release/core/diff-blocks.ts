/**
 * The differences between two versions of one block (docs/releases.md). Members are compared as JSON: key order does
 * not matter, null equals absent, and a default equals absent. Nested blocks are compared separately. Pure.
 */

import {
  type Block,
  ITEM_VAR_DEFAULT,
  kindName,
  MAX_ITERATIONS_DEFAULT,
  type SagaBlock,
  type StepBlock,
} from '../../../schema/blocks.js';
import {
  type DiffCategory,
  type Entry,
  entryOf,
  type Severity,
} from '../../../schema/diff-entry.js';
import { canonicalText, clip, compareText, isDeepEqual } from '../../../src/base/bounds.js';
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../../../src/base/json.js';
import { PURE_HANDLERS } from '../../../src/core/builtin.js';
import { conditionsOf, isSplit, nameOf, type PlacedBlock } from './block-tree.js';

/** Handlers without external effects, including waits. */
const NO_EFFECT = new Set([...PURE_HANDLERS.keys(), 'sleep', 'wait_for_event']);

/** Steps of external workers count as effects, because their work is unknown. */
export function effectSeverity(block: Block): Severity {
  if (block.type === 'sub_sequence') return 'side_effect_risk';
  if (block.type !== 'step') return 'behavioral';
  const { handler } = block;
  return NO_EFFECT.has(handler) ? 'behavioral' : 'side_effect_risk';
}

/** Differences of the block's own members, without its place and nested blocks. */
export function blockChanges(before: PlacedBlock, after: PlacedBlock): Entry[] {
  const { block } = after;
  return changesOf(before, after).map(({ category, severity = 'behavioral', what }) =>
    entryOf(category, `${nameOf(block)}: ${what}`, { severity, block_id: block.id }),
  );
}

interface Change {
  readonly category: DiffCategory;
  /** Default: behavioral. */
  readonly severity?: Severity;
  /** Follows the name of the block in a sentence. */
  readonly what: string;
}

function changesOf(before: PlacedBlock, after: PlacedBlock): Change[] {
  const [old, now] = [before.block, after.block];
  if (kindName(old) !== kindName(now)) {
    const what = `was a ${kindName(old)} before`;
    return [{ category: 'block_type_changed', severity: effectSeverity(now), what }];
  }
  const changes = old.type === 'step' && now.type === 'step' ? workChanges(old, now) : [];
  for (const name of Object.keys(after.members)) {
    if (COMPARED_APART.has(`${now.type}.${name}`)) continue;
    for (const change of memberChange(name, before, after)) changes.push(change);
  }
  return changes;
}

const COMPARED_APART = new Set(['step.handler', 'step.params', 'ab_split.type', 'a_b_split.type']);

function workChanges(before: StepBlock, after: StepBlock): Change[] {
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
  return changes;
}

/** Values stay out of the summary: parameters may be confidential. */
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

type Member = { readonly category: DiffCategory; readonly byDefault?: JsonValue };

const TIMEOUT: Member = { category: 'timeout_changed' };
const LOOP: Member = { category: 'loop_changed' };
const PASSES: Member = { category: 'loop_changed', byDefault: MAX_ITERATIONS_DEFAULT };

/** Members with a specific category. Their values are shown. */
const MEMBERS: Readonly<Record<string, Member>> = {
  'step.retry': { category: 'retry_changed' },
  'step.queue_timeout': { category: 'timeout_changed' },
  'step.deadline': { category: 'timeout_changed' },
  'step.delay': { category: 'delay_changed' },
  'step.rate_limit_key': { category: 'rate_limit_changed' },
  'step.queue_name': { category: 'queue_changed' },
  'step.send_window': { category: 'send_window_changed' },
  'step.output_schema': { category: 'output_schema_changed' },
  'step.merge_output': { category: 'params_changed', byDefault: true },
  'step.cancellable': { category: 'cancellable_changed', byDefault: true },
  'race.semantics': { category: 'race_changed', byDefault: 'first_to_resolve' },
  'router.routes': { category: 'router_changed' },
  'ab_split.variants': { category: 'split_changed' },
  'saga.steps': { category: 'saga_changed' },
  'loop.condition': LOOP,
  'loop.max_iterations': PASSES,
  'for_each.collection': LOOP,
  'for_each.item_var': { category: 'loop_changed', byDefault: ITEM_VAR_DEFAULT },
  'for_each.index_var': LOOP,
  'for_each.concurrency': { category: 'loop_changed', byDefault: 1 },
  'for_each.max_iterations': PASSES,
  'sub_sequence.sequence_name': { category: 'sub_sequence_changed' },
  'sub_sequence.version': { category: 'sub_sequence_changed' },
};

const WHEN: Member = { category: 'when_guard_changed' };

function memberOf(block: Block, name: string): Member | undefined {
  return name === 'when' ? WHEN : MEMBERS[`${kindName(block)}.${name}`];
}

/** Members that hold only blocks are compared by presence or by the number of lists. */
function memberChange(name: string, before: PlacedBlock, after: PlacedBlock): Change[] {
  const [old, now] = [contentOf(before, name), contentOf(after, name)];
  if (old === BLOCKS || now === BLOCKS) return presenceChange(name, old === BLOCKS, now === BLOCKS);
  if (isListOfLists(old) && isListOfLists(now)) {
    return changed('structure_changed', `the number of ${name}`, old.length, now.length);
  }
  if (name === 'on_deadline_breach') return breachChange(old, now);
  if (name === 'wait_for_input') return gateChange(old, now);
  const member = name === 'timeout' ? TIMEOUT : memberOf(after.block, name);
  if (member !== undefined) return changed(member.category, name, old, now);
  // Values of other members may be confidential.
  return isDeepEqual(old, now) ? [] : [{ category: 'params_changed', what: `${name} changes` }];
}

/** Placeholder for a list of blocks in a member; no definition can contain it. */
const BLOCKS = '\0blocks';

function contentOf({ block, members, lists }: PlacedBlock, name: string): JsonValue {
  if (block.type === 'router' && name === 'routes') return conditionsOf(block);
  if (block.type === 'saga' && name === 'steps') return stepsIn(block);
  if (isSplit(block) && name === 'variants') {
    return block.variants.map(({ name: variant, weight }) => ({ name: variant, weight }));
  }
  const byDefault = memberOf(block, name)?.byDefault;
  const value = ownValue(block as unknown as JsonObject, name) ?? byDefault ?? null;
  // Older versions stored false for an absent member.
  if (value === false && byDefault === undefined) return null;
  if (members[name]?.properties !== undefined && isJsonObject(value)) return withoutAbsent(value);
  return lists.length === 0 ? value : withoutBlocks(value, new Set<unknown>(lists));
}

/** Blocks of actions and compensations are compared separately; here only their presence counts. */
function stepsIn({ steps }: SagaBlock): JsonValue {
  return steps.map(({ id, compensation }) => ({
    id,
    is_compensated: [compensation ?? []].flat().length > 0,
  }));
}

/** A breach handler may have external effects. */
function breachChange(old: JsonValue, now: JsonValue): Change[] {
  if (isDeepEqual(old, now)) return [];
  const handler = isJsonObject(now) ? ownValue(now, 'handler') : undefined;
  const isPure = typeof handler !== 'string' || PURE_HANDLERS.has(handler);
  const severity = isPure ? 'behavioral' : 'side_effect_risk';
  return [{ category: 'timeout_changed', severity, what: 'on_deadline_breach changes' }];
}

/** Who may answer is shown apart: the text of a gate is clipped. */
function gateChange(old: JsonValue, now: JsonValue): Change[] {
  const category = 'approval_gate_changed';
  const [before, after] = [gateIn(old), gateIn(now)];
  return [
    ...changed(category, 'wait_for_input', before.rest, after.rest),
    ...changed(category, 'approvers', namesOf(before.groups), namesOf(after.groups)),
  ];
}

function gateIn(gate: JsonValue): { readonly groups: readonly string[]; readonly rest: JsonValue } {
  if (!isJsonObject(gate)) return { groups: [], rest: null };
  const { approvers, ...rest } = gate;
  return { groups: [...((approvers ?? []) as string[])].sort(compareText), rest };
}

const namesOf = (groups: readonly string[]) => (groups.length === 0 ? null : groups.join(', '));

function withoutBlocks(value: JsonValue, lists: ReadonlySet<unknown>): JsonValue {
  if (lists.has(value)) return BLOCKS;
  if (Array.isArray(value)) return value.map((inner) => withoutBlocks(inner, lists));
  if (!isJsonObject(value)) return value;
  const members = Object.entries(value).map(([key, inner]) => [key, withoutBlocks(inner, lists)]);
  return Object.fromEntries(members) as JsonObject;
}

function isListOfLists(value: JsonValue): value is JsonValue[] {
  return Array.isArray(value) && value.length > 0 && value.every((inner) => inner === BLOCKS);
}

function presenceChange(name: string, had: boolean, has: boolean): Change[] {
  if (had === has) return [];
  const list = `the ${name.replace(/_block$/, '')} list`;
  return [{ category: 'structure_changed', what: `${list} is ${has ? 'added' : 'removed'}` }];
}

/** Null and false are equivalent to an absent member. */
export function withoutAbsent(settings: object): JsonObject {
  const set = Object.entries(settings).filter(([, value]) => value !== null && value !== false);
  return Object.fromEntries(set);
}

function changed(category: DiffCategory, field: string, before: JsonValue, after: JsonValue) {
  if (isDeepEqual(before, after)) return [];
  return [{ category, what: `${field} changes from ${shown(before)} to ${shown(after)}` }];
}

function shown(value: JsonValue): string {
  return value === null ? 'none' : clip(canonicalText(value));
}

const LISTED_MAX = 5;

/** The first names in alphabetical order, clipped, and the number of further names. */
export function listed(names: readonly string[]): string {
  const sorted = [...names].sort(compareText);
  const first = sorted.slice(0, LISTED_MAX).map((name) => clip(name));
  const more = names.length - first.length;
  return more === 0 ? first.join(', ') : `${first.join(', ')} and ${more} more`;
}
