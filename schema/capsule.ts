/**
 * What a capsule carries under its seal: one instance with its checkpoint, outputs and tree. No route
 * takes it as it is; a reader checks what it has unsealed. Lists without entries may be left out.
 */

import { type Static, type TSchema, Type } from '@sinclair/typebox';
import type { JsonValue } from '../src/base/json.js';
import {
  AnyJson,
  JsonObjectSchema,
  Natural,
  noted,
  oneOfWords,
  optional,
  Timestamp,
  Uuid,
} from './common.js';
import type { CheckpointRecord } from './continuity.js';
import type { DoneCode, DoneRecord, OpenRecord } from './execution.js';
import { Failure } from './failure.js';
import { PRIORITIES } from './states.js';

export const PAYLOAD_LIST_MAX = 10_000;
const STREAM_CURSORS_MAX = 1_000;

const Num = Type.Number();
const Flag = Type.Unsafe<1>({ type: 'integer', enum: [1] });
const EndCode = Type.Unsafe<DoneCode>({ type: 'integer', enum: [0, 1, 2, 3] });

const Why = noted(Failure, 'What failed, while the blocks around it have yet to end.');

/**
 * The record of an open block: numbers, the phase of a leaf, what it waits for, its child, why blocks inside
 * failed.
 */
const Open = Type.Unsafe<OpenRecord>({
  type: 'object',
  required: ['b'],
  properties: {
    b: Num,
    p: { anyOf: [Num, Type.String()] },
    y: Why,
    c: Uuid,
    k: Type.String(),
    // Of a for_each that runs items side by side: where its slots are.
    s: Type.Array(Num),
    // What a step waits for, or what the items of such a for_each have caught.
    v: JsonObjectSchema,
    // The keys of the data that these have changed.
    t: JsonObjectSchema,
    // What a block has caught.
    m: { anyOf: [Num, JsonObjectSchema] },
  },
  additionalProperties: Num,
});

const tuple = (...prefixItems: TSchema[]) => {
  const { length } = prefixItems;
  return { type: 'array', prefixItems, minItems: length, maxItems: length };
};
const Done = Type.Unsafe<DoneRecord>({
  anyOf: [tuple(EndCode, Num, Num), tuple(EndCode, Num, Num, Open)],
});

/** Of a block in items that run side by side: in which slot of each of those for_each blocks it is. */
const Slots = Type.Array(Natural);

/** An entry is the head, a block that is open or done, the items of a loop, or a block of its own. */
export const TreeEntry = Type.Object({
  execution: optional(
    Type.Object({
      t: optional(Num),
      h: optional(Num),
      z: optional(Num),
      u: optional(Num),
      e: optional(EndCode),
      y: optional(Why),
      p: optional(Flag),
      x: optional(Flag),
      f: optional(Flag),
      g: optional(Natural),
      a: optional(Type.Object({ f: Why, y: Type.Optional(Why) })),
    }),
  ),
  queue: optional(Type.Array(Type.String())),
  queue_slots: optional(Type.Array(Slots)),
  resumed_from: optional(Type.String()),
  hook_runs: optional(Natural),
  block_id: optional(Type.String()),
  slots: optional(Slots),
  open: optional(Open),
  done: Type.Optional(Done),
  kept: optional(Open),
  rows: optional(Natural),
  repeats: optional(Natural),
  items_key: optional(Type.String()),
  items: optional(Type.Array(AnyJson)),
  own_block: optional(JsonObjectSchema),
});
export type TreeEntry = Static<typeof TreeEntry>;

const Checkpoint = Type.Object({
  id: Uuid,
  instance_id: Uuid,
  checkpoint_data: Type.Optional(AnyJson),
  created_at: Timestamp,
});

/** A row of outputs without ids; its receipt stays behind, since the importer did nothing of it. */
export const CarriedOutput = Type.Object({
  block_id: Type.String(),
  iteration: Type.String(),
  attempt: Natural,
  try: Natural,
  output: Type.Optional(AnyJson),
  output_ref: optional(Type.String()),
  output_size: optional(Natural),
  created_at: Timestamp,
});
export type CarriedOutput = Static<typeof CarriedOutput>;

/** What may be left out where it has no entries. */
const LISTS = {
  /** So that what is done is not done again. */
  outputs: CarriedOutput,
  /** The nodes that are under way or done; with the outputs, where the instance goes on. */
  execution_tree: TreeEntry,
  effect_ids: Uuid,
  pending_waits: AnyJson,
  pending_signals: AnyJson,
  artifacts: AnyJson,
  stream_cursors: AnyJson,
};
type ListName = keyof typeof LISTS;
type Lists = { [Name in ListName]: Static<(typeof LISTS)[Name]>[] };

export const PAYLOAD_LISTS = Object.keys(LISTS) as ListName[];

/** The most entries of a list. */
export function listMax(name: ListName): number {
  return name === 'stream_cursors' ? STREAM_CURSORS_MAX : PAYLOAD_LIST_MAX;
}

const OPTIONAL_LISTS = Object.fromEntries(
  PAYLOAD_LISTS.map((name) => [
    name,
    optional(Type.Array(LISTS[name], { maxItems: listMax(name) })),
  ]),
);

export const CapsulePayload = Type.Object({
  instance: Type.Object({
    sequence_id: Uuid,
    namespace: Type.String(),
    priority: oneOfWords(PRIORITIES),
    timezone: Type.String(),
    metadata: JsonObjectSchema,
    /** All sections. */
    context: JsonObjectSchema,
    budget: Type.Optional(AnyJson),
    parent_instance_id: optional(Uuid),
    timeout: optional(Natural),
  }),
  checkpoint: Checkpoint,
  ...OPTIONAL_LISTS,
  redacted_audit_context: Type.Optional(AnyJson),
});
interface Payload {
  instance: Static<typeof CapsulePayload>['instance'];
  redacted_audit_context?: JsonValue;
}
/** As it is sealed. */
export type SealedPayload = Payload & { checkpoint: Static<typeof Checkpoint> } & {
  [Name in ListName]?: Lists[Name] | null;
};
/** Before that, and once it is opened, every list is there. */
export type CapsulePayload = Payload & Lists & { checkpoint: CheckpointRecord };
