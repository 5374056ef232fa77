/**
 * The sealed content of a capsule: one instance with its checkpoint, outputs and tree. Checked after it is unsealed; no
 * route takes it in plain. Empty lists may be absent.
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
import { Checkpoint } from './edits.js';
import type { DoneCode, DoneRecord, OpenRecord } from './execution.js';
import { Failure } from './failure.js';
import { PRIORITIES } from './states.js';

export const PAYLOAD_LIST_MAX = 10_000;
const STREAM_CURSORS_MAX = 1_000;

const Num = Type.Number();
const Flag = Type.Unsafe<1>({ type: 'integer', enum: [1] });
const EndCode = Type.Unsafe<DoneCode>({ type: 'integer', enum: [0, 1, 2, 3] });

const Why = noted(Failure, 'Why the block failed, while the blocks around it are still open.');

/** The record of an open block: numbers, the phase of a leaf, its wait, its child, and causes of failures inside. */
const Open = Type.Unsafe<OpenRecord>({
  type: 'object',
  required: ['b'],
  properties: {
    b: Num,
    p: { anyOf: [Num, Type.String()] },
    y: Why,
    c: Uuid,
    k: Type.String(),
    // The slots of a concurrent for_each.
    s: Type.Array(Num),
    // What a step waits for, or the errors that items of a concurrent for_each have caught.
    v: JsonObjectSchema,
    // The keys of context.data that items have changed.
    t: JsonObjectSchema,
    // The error that a block has caught.
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

/** For a block inside concurrent for_each blocks: its slot in each of them. */
const Slots = Type.Array(Natural);

/** An entry is the head, an open or finished block, the items of a loop, or an injected block. */
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

const SealedCheckpoint = Type.Object({
  ...Checkpoint.properties,
  checkpoint_data: Type.Optional(AnyJson),
});

/** A row of outputs without ids. Its receipt stays behind, since the importer did nothing. */
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

/** Sections that may be absent if empty. */
const LISTS = {
  /** So that completed work is not repeated. */
  outputs: CarriedOutput,
  /** The open and finished nodes; with the outputs, the position of the instance. */
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
    context: JsonObjectSchema,
    budget: Type.Optional(AnyJson),
    parent_instance_id: optional(Uuid),
    timeout: optional(Natural),
  }),
  checkpoint: SealedCheckpoint,
  ...OPTIONAL_LISTS,
  redacted_audit_context: Type.Optional(AnyJson),
});
interface Payload {
  instance: Static<typeof CapsulePayload>['instance'];
  redacted_audit_context?: JsonValue;
}
/** The sealed form. */
export type SealedPayload = Payload & { checkpoint: Static<typeof SealedCheckpoint> } & {
  [Name in ListName]?: Lists[Name] | null;
};
/** The form before sealing and after opening: every list is present. */
export type CapsulePayload = Payload & Lists & { checkpoint: CheckpointRecord };
