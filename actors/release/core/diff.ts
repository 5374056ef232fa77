/**
 * The semantic diff of two definitions (docs/releases.md): the changes for new instances that run the candidate instead
 * of the baseline, with severities. Blocks are matched by id. Linear in the size of the definitions except for sorting.
 * Pure.
 */

import { Type } from '@sinclair/typebox';
import {
  type Block,
  HOOK_LISTS,
  type HookList,
  type HookStep,
  type Hooks,
  kindName,
  RootBlocks,
} from '../../../schema/blocks.js';
import type { CancelOn, CancelOnMember } from '../../../schema/cancel-on.js';
import { DIFF_ENTRIES_MAX, type Entry, entryOf, SEVERITIES } from '../../../schema/diff-entry.js';
import { findingText } from '../../../schema/finding.js';
import { FLOW_KEYS, type FlowLimits } from '../../../schema/flow-limits.js';
import { COLLECTING_KINDS, type CollectingKind } from '../../../schema/pending-start.js';
import type { SemanticDiff } from '../../../schema/release.js';
import type { SearchableMember } from '../../../schema/search.js';
import { compareText, isDeepEqual } from '../../../src/base/bounds.js';
import type { JsonObject, JsonValue } from '../../../src/base/json.js';
import type { CollectingMembers } from '../../../src/core/collecting.js';
import { lintDefinition } from '../../../src/core/lint/definition.js';
import {
  type BlockTree,
  continuedLists,
  nameOf,
  type PlacedBlock,
  placeName,
  treeOf,
} from './block-tree.js';
import { blockChanges, effectSeverity, listed, withoutAbsent } from './diff-blocks.js';

/** The compared members of a stored sequence. */
export interface ReleaseSide
  extends Hooks,
    FlowLimits,
    CancelOnMember,
    CollectingMembers,
    SearchableMember {
  readonly blocks: readonly Block[];
  readonly input_schema?: JsonObject | null;
}

/** Equivalent definitions have no entries. */
export function semanticDiff(baseline: ReleaseSide, candidate: ReleaseSide): SemanticDiff {
  const entries = entriesOf(baseline, candidate).sort(inOrder);
  const kept = entries.slice(0, DIFF_ENTRIES_MAX);
  const lint = lintOf(candidate);
  const [gravest] = kept;
  return {
    entries: kept,
    ...(gravest === undefined ? {} : { max_severity: gravest.severity }),
    ...(kept.length === entries.length ? {} : { entries_omitted: entries.length - kept.length }),
    ...(lint.length === 0 ? {} : { candidate_lint: [...lint] }),
  };
}

export type DefinitionPair = { readonly baseline: string; readonly candidate: string };

/** `semanticDiff` of stored definitions, as JSON text. */
export function compareDefinitions({ baseline, candidate }: DefinitionPair): string {
  const before = JSON.parse(baseline) as ReleaseSide;
  const after = JSON.parse(candidate) as ReleaseSide;
  return JSON.stringify(semanticDiff(before, after));
}

function entriesOf(baseline: ReleaseSide, candidate: ReleaseSide): Entry[] {
  const before = treeOf(baseline.blocks);
  const after = treeOf(candidate.blocks);
  const changes = [
    ...removedBlocks(before, after),
    ...keptAndAddedBlocks(before, after),
    ...reordering(before, after),
    ...newCredentials(baseline, candidate),
    ...schemaChange(baseline.input_schema ?? null, candidate.input_schema ?? null),
    ...FLOW_KEYS.flatMap((member) => limitsChange(member, baseline[member], candidate[member])),
    ...cancelChange(baseline.cancel_on ?? [], candidate.cancel_on ?? []),
    ...COLLECTING_KINDS.flatMap((kind) =>
      collectingChange(kind, baseline[kind] ?? null, candidate[kind] ?? null),
    ),
    ...searchableChange(baseline.searchable ?? [], candidate.searchable ?? []),
    ...HOOK_LISTS.flatMap((list) => hookChange(list, baseline[list] ?? [], candidate[list] ?? [])),
  ];
  // Equivalent versions cannot have lost a reference.
  return changes.length === 0 ? [] : [...changes, ...missingReferences(after)];
}

/** Severity descending, then category and block ascending, whole sequences first. */
function inOrder(a: Entry, b: Entry): number {
  return (
    SEVERITIES.indexOf(b.severity) - SEVERITIES.indexOf(a.severity) ||
    inTextOrder(a.category, b.category) ||
    inTextOrder(a.block_id ?? '', b.block_id ?? '') ||
    inTextOrder(a.summary, b.summary)
  );
}

/** Equality is checked first because most entries share a category. */
function inTextOrder(a: string, b: string): number {
  return a === b ? 0 : compareText(a, b);
}

function removedBlocks(before: BlockTree, after: BlockTree): Entry[] {
  const removed = [...before].filter(([id]) => !after.has(id));
  return removed.map(([block_id, placed]) => {
    const summary = `${nameOf(placed.block)} is removed from ${placeName(placed)}`;
    return entryOf('block_removed', summary, { block_id });
  });
}

function keptAndAddedBlocks(before: BlockTree, after: BlockTree): Entry[] {
  const moves = new Moves(before);
  const entries: Entry[] = [];
  for (const [id, placed] of after) {
    const { block } = placed;
    const old = before.get(id);
    if (old !== undefined) {
      for (const entry of blockChanges(old, placed)) entries.push(entry);
      if (moves.hasMoved(old, placed)) {
        const summary = `${nameOf(block)} moves from ${placeName(old)} to ${placeName(placed)}`;
        entries.push(entryOf('structure_changed', summary, { block_id: id }));
      }
      continue;
    }
    const handler = block.type === 'step' ? ` with the handler ${listed([block.handler])}` : '';
    const summary = `${nameOf(block)}${handler} is added to ${placeName(placed)}`;
    const severity = effectSeverity(block);
    entries.push(entryOf('block_added', summary, { severity, block_id: id }));
  }
  return entries;
}

/** Finds blocks that have moved to another list. */
class Moves {
  readonly #before: BlockTree;
  readonly #continued = new Map<string, readonly number[] | undefined>();

  constructor(before: BlockTree) {
    this.#before = before;
  }

  hasMoved(from: PlacedBlock, to: PlacedBlock): boolean {
    if (from.parent?.id !== to.parent?.id) return true;
    if (to.parent === undefined) return false;
    const continued = this.#listsOf(to.parent);
    return continued !== undefined && continued[to.list] !== from.list;
  }

  /** Undefined when the type has changed, which is reported separately. */
  #listsOf(parent: Block): readonly number[] | undefined {
    if (this.#continued.has(parent.id)) return this.#continued.get(parent.id);
    const before = this.#before.get(parent.id)?.block;
    const continued =
      before !== undefined && kindName(before) === kindName(parent)
        ? continuedLists(before, parent, this.#before)
        : undefined;
    this.#continued.set(parent.id, continued);
    return continued;
  }
}

function reordering(before: BlockTree, after: BlockTree): Entry[] {
  const order = [...before.keys()].filter((id) => after.has(id));
  const next = [...after.keys()].filter((id) => before.has(id));
  const at = next.findIndex((id, i) => id !== order[i]);
  const [now, was] = [next[at], order[at]];
  if (now === undefined || was === undefined) return [];
  const summary = `blocks change their order: ${listed([now])} stands where ${listed([was])} stood`;
  return [entryOf('blocks_reordered', summary)];
}

function missingReferences(candidate: BlockTree): Entry[] {
  const entries: Entry[] = [];
  for (const [id, { block }] of candidate) {
    if (block.type !== 'step' || block.params == null) continue;
    const missing = missingOutputs(block.params, (other) => candidate.has(other));
    if (missing.size === 0) continue;
    const summary = `${nameOf(block)}: params name outputs of blocks that do not exist: ${listed([...missing])}`;
    const about = { severity: 'incompatible', block_id: id } as const;
    entries.push(entryOf('missing_output_reference', summary, about));
  }
  return entries;
}

function newCredentials(baseline: ReleaseSide, candidate: ReleaseSide): Entry[] {
  const known = credentialsIn(baseline.blocks);
  const added = [...credentialsIn(candidate.blocks)].filter((id) => !known.has(id));
  if (added.length === 0) return [];
  const summary = `credentials are needed that were not before: ${listed(added)}`;
  return [entryOf('credential_requirement_added', summary)];
}

/** Each hook list is compared as a whole, because hooks do not affect the result of an instance. */
function hookChange(list: HookList, before: readonly HookStep[], after: readonly HookStep[]) {
  if (isDeepEqual(before.map(withoutAbsent), after.map(withoutAbsent))) return [];
  const reaches = [...before, ...after].some(({ handler }) => handler === 'http_request');
  const severity = reaches ? 'side_effect_risk' : 'behavioral';
  return [entryOf('hooks_changed', `${list} changes`, { severity })];
}

/** Instances of both versions share the keys; each is judged by the limits of its own version. */
function limitsChange(member: string, before: object | null | undefined, after: typeof before) {
  if (isDeepEqual(withoutAbsent(before ?? {}), withoutAbsent(after ?? {}))) return [];
  return [entryOf('limits_changed', `${member} changes`)];
}

function cancelChange(before: readonly CancelOn[], after: readonly CancelOn[]): Entry[] {
  if (isDeepEqual(before.map(withoutAbsent), after.map(withoutAbsent))) return [];
  return [entryOf('cancel_on_changed', 'cancel_on changes')];
}

/** With a batch, context.data is a list of what it was without one. */
function collectingChange<Member extends object>(
  kind: CollectingKind,
  before: Member | null,
  after: Member | null,
): Entry[] {
  if (isDeepEqual(before && withoutAbsent(before), after && withoutAbsent(after))) return [];
  const isOther = kind === 'batch' && (before === null) !== (after === null);
  const severity = isOther ? 'incompatible' : 'behavioral';
  return [entryOf('collecting_changed', `${kind} changes`, { severity })];
}

/** Changes only by what instances are found. */
function searchableChange(before: readonly string[], after: readonly string[]): Entry[] {
  if (isDeepEqual([...before].sort(), [...after].sort())) return [];
  return [entryOf('searchable_changed', 'searchable changes', { severity: 'informational' })];
}

function schemaChange(before: JsonObject | null, after: JsonObject | null): Entry[] {
  const known = new Set(requiredOf(before));
  const demanded = requiredOf(after).filter((name) => !known.has(name));
  if (demanded.length > 0) {
    const summary = `input_schema requires what it did not before: ${listed(demanded)}`;
    return [entryOf('input_schema_narrowed', summary, { severity: 'incompatible' })];
  }
  if (isDeepEqual(before, after)) return [];
  return [entryOf('input_schema_changed', 'input_schema changes')];
}

function requiredOf(schema: JsonObject | null): string[] {
  const required = schema?.required;
  return Array.isArray(required) ? required.filter((name) => typeof name === 'string') : [];
}

const LINTED = Type.Object({ blocks: RootBlocks });

/** A stored definition may violate newer rules. */
function lintOf({ blocks }: ReleaseSide): readonly string[] {
  const { errors, warnings } = lintDefinition(LINTED, { blocks }, { name: 'a sequence' });
  return [...errors, ...warnings].map(findingText);
}

// References are searched in the whole text, because they also occur outside of templates, as in an `assert` condition.

/** A path segment after the root; ids cannot contain other characters. */
const SEGMENT = /[^.|{}()[\]"'\n]{1,255}/uy;
/** The part of a segment that is a name in templates and in conditions. */
const WORD = /^[\p{L}\p{N}_-]+/u;
/** Text before a root that makes it part of a longer name or path. */
const NAME_END = /[\p{L}\p{N}_.-]$/u;
const CREDENTIAL = /[^\s"'`<>{}|\\^,;)]+/y;

/** Ids of missing blocks that strings of `value` reference as `outputs.<id>` or `steps.<id>`. */
function missingOutputs(value: JsonValue, exists: (id: string) => boolean): Set<string> {
  const segments = new Set<string>();
  visitStrings(value, (text) => {
    collect(text, 'outputs.', SEGMENT, segments);
    if (text.includes('{{')) collect(text, 'steps.', SEGMENT, segments);
  });
  const missing = new Set<string>();
  for (const segment of segments) {
    const word = WORD.exec(segment)?.[0];
    if (word !== undefined && !candidatesOf(segment, word).some(exists)) missing.add(word);
  }
  return missing;
}

/** In templates the id extends to the next dot; in conditions it ends with the word, or before a minus sign. */
function candidatesOf(segment: string, word: string): string[] {
  return [segment.trimEnd(), word, word.split('-', 1)[0] ?? word];
}

/** The ids of `credentials://ID` in any string. */
function credentialsIn(blocks: readonly Block[]): Set<string> {
  const ids = new Set<string>();
  const visit = (text: string) => collect(text, 'credentials://', CREDENTIAL, ids);
  visitStrings(blocks as unknown as JsonValue, visit);
  return ids;
}

/** Collects the matches of `rest` after each `prefix` that does not continue a longer name. */
function collect(text: string, prefix: string, rest: RegExp, found: Set<string>): void {
  for (let at = text.indexOf(prefix); at >= 0; at = text.indexOf(prefix, at + prefix.length)) {
    if (at > 0 && NAME_END.test(text.slice(Math.max(0, at - 2), at))) continue;
    rest.lastIndex = at + prefix.length;
    if (rest.test(text)) found.add(text.slice(at + prefix.length, rest.lastIndex));
  }
}

/** Visits values, not keys. Request validation bounds the depth. */
function visitStrings(value: JsonValue, visit: (text: string) => void): void {
  if (typeof value === 'string') visit(value);
  else if (typeof value === 'object' && value !== null) {
    for (const inner of Object.values(value)) visitStrings(inner, visit);
  }
}
