/**
 * The sealed content of a capsule: one instance with its checkpoint, outputs and tree. Checked after it is unsealed; no
 * route takes it in plain. Empty lists may be absent.
 */

import type { TSchema } from '@sinclair/typebox';
import type { JsonValue } from '../src/base/json.js';
import * as t from './common.js';
import type { CheckpointRecord } from './continuity.js';
import { Checkpoint } from './edits.js';
import type { CancelEvent, DoneCode, DoneRecord, OpenRecord } from './execution.js';
import { Failure } from './failure.js';
import { PRIORITIES } from './states.js';

export const PAYLOAD_LIST_MAX = 10_000;
const STREAM_CURSORS_MAX = 1_000;

const Num = t.number();
const Flag = t.typed<1>({ type: 'integer', enum: [1] });
const EndCode = t.typed<DoneCode>({ type: 'integer', enum: [0, 1, 2, 3] });

const Why = t.noted(Failure, 'Why the block failed, while the blocks around it are still open.');

/** The record of an open block: numbers, the phase of a leaf, its wait, its child, and causes of failures inside. */
const Open = t.typed<OpenRecord>({
  type: 'object',
  required: ['b'],
  properties: {
    b: Num,
    p: { anyOf: [Num, t.text()] },
    y: Why,
    c: t.Uuid,
    k: t.text(),
    // The slots of a concurrent for_each.
    s: t.list(Num),
    // What a step waits for, or the errors that items of a concurrent for_each have caught.
    v: t.JsonObjectSchema,
    // The keys of context.data that items have changed.
    t: t.JsonObjectSchema,
    // The error that a block has caught.
    m: { anyOf: [Num, t.JsonObjectSchema] },
  },
  additionalProperties: Num,
});

const tuple = (...prefixItems: TSchema[]) => {
  const { length } = prefixItems;
  return { type: 'array', prefixItems, minItems: length, maxItems: length };
};
const Done = t.typed<DoneRecord>({
  anyOf: [tuple(EndCode, Num, Num), tuple(EndCode, Num, Num, Open)],
});

const CancelEvents = t.typed<readonly CancelEvent[]>({
  ...t.list(t.object({ n: t.text(), k: t.optional(t.text()) })),
});

/** For a block inside concurrent for_each blocks: its slot in each of them. */
const Slots = t.list(t.Natural);

/** An entry is the head, an open or finished block, the items of a loop, or an injected block. */
export const TreeEntry = t.object({
  execution: t.nullish(
    t.object({
      t: t.nullish(Num),
      h: t.nullish(Num),
      z: t.nullish(Num),
      u: t.nullish(Num),
      e: t.nullish(EndCode),
      y: t.nullish(Why),
      p: t.nullish(Flag),
      x: t.nullish(Flag),
      f: t.nullish(Flag),
      g: t.nullish(t.Natural),
      // The events that cancel the instance.
      E: t.nullish(CancelEvents),
      a: t.nullish(t.object({ f: Why, y: t.optional(Why) })),
    }),
  ),
  queue: t.nullish(t.list(t.text())),
  queue_slots: t.nullish(t.list(Slots)),
  resumed_from: t.nullish(t.text()),
  hook_runs: t.nullish(t.Natural),
  block_id: t.nullish(t.text()),
  slots: t.nullish(Slots),
  open: t.nullish(Open),
  done: t.optional(Done),
  kept: t.nullish(Open),
  rows: t.nullish(t.Natural),
  repeats: t.nullish(t.Natural),
  items_key: t.nullish(t.text()),
  items: t.nullish(t.list(t.AnyJson)),
  own_block: t.nullish(t.JsonObjectSchema),
});
export type TreeEntry = t.Static<typeof TreeEntry>;

const SealedCheckpoint = t.object({
  ...Checkpoint.properties,
  checkpoint_data: t.optional(t.AnyJson),
});

/** A row of outputs without ids. Its receipt stays behind, since the importer did nothing. */
export const CarriedOutput = t.object({
  block_id: t.text(),
  iteration: t.text(),
  attempt: t.Natural,
  try: t.Natural,
  output: t.optional(t.AnyJson),
  output_ref: t.nullish(t.text()),
  output_size: t.nullish(t.Natural),
  created_at: t.Timestamp,
});
export type CarriedOutput = t.Static<typeof CarriedOutput>;

/** Sections that may be absent if empty. */
const LISTS = {
  /** So that completed work is not repeated. */
  outputs: CarriedOutput,
  /** The open and finished nodes; with the outputs, the position of the instance. */
  execution_tree: TreeEntry,
  effect_ids: t.Uuid,
  pending_waits: t.AnyJson,
  pending_signals: t.AnyJson,
  artifacts: t.AnyJson,
  stream_cursors: t.AnyJson,
};
type ListName = keyof typeof LISTS;
type Lists = { [Name in ListName]: t.Static<(typeof LISTS)[Name]>[] };

export const PAYLOAD_LISTS = Object.keys(LISTS) as ListName[];

export function listMax(name: ListName): number {
  return name === 'stream_cursors' ? STREAM_CURSORS_MAX : PAYLOAD_LIST_MAX;
}

const OPTIONAL_LISTS = Object.fromEntries(
  PAYLOAD_LISTS.map((name) => [name, t.nullish(t.list(LISTS[name], { maxItems: listMax(name) }))]),
);

export const CapsulePayload = t.object({
  instance: t.object({
    sequence_id: t.Uuid,
    namespace: t.text(),
    priority: t.oneOf(PRIORITIES),
    timezone: t.text(),
    metadata: t.JsonObjectSchema,
    context: t.JsonObjectSchema,
    budget: t.optional(t.AnyJson),
    parent_instance_id: t.nullish(t.Uuid),
    timeout: t.nullish(t.Natural),
  }),
  checkpoint: SealedCheckpoint,
  ...OPTIONAL_LISTS,
  redacted_audit_context: t.optional(t.AnyJson),
});
interface Payload {
  instance: t.Static<typeof CapsulePayload>['instance'];
  redacted_audit_context?: JsonValue;
}
/** The sealed form. */
export type SealedPayload = Payload & { checkpoint: t.Static<typeof SealedCheckpoint> } & {
  [Name in ListName]?: Lists[Name] | null;
};
/** The form before sealing and after opening: every list is present. */
export type CapsulePayload = Payload & Lists & { checkpoint: CheckpointRecord };
