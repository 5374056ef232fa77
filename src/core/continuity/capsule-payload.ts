/**
 * What a capsule carries: one instance with its checkpoint, outputs and tree, as canonical JSON.
 * Lists without entries are left out of the text, and come back as empty lists.
 */

import { isJsonObject, type JsonObject, type JsonValue } from '../json.js';
import { decodeUtf8, type JsonLimits, parseJson } from '../json-guard.js';
import { PRIORITIES, type Priority } from '../states.js';
import { canonicalJson } from './canonical-json.js';
import { Fields, type Parsed, parsing, refuse } from './parsed.js';

/** Of the text before it is sealed. */
export const PAYLOAD_BYTES_MAX = 64 * 1_024 * 1_024;
export const PAYLOAD_LIST_MAX = 10_000;
export const STREAM_CURSORS_MAX = 1_000;

/** The shapes around stored values add a few levels to the 256 that these may have. */
const PAYLOAD_JSON: JsonLimits = { maxDepth: 264, maxNumberLength: 400 };

export interface CapsuleInstance {
  readonly sequence_id: string;
  readonly namespace: string;
  readonly priority: Priority;
  readonly timezone: string;
  readonly metadata: JsonObject;
  /** All sections. */
  readonly context: JsonObject;
  readonly budget: JsonValue;
  readonly parent_instance_id: string | null;
}

export interface CheckpointRecord {
  readonly id: string;
  readonly instance_id: string;
  readonly checkpoint_data: JsonValue;
  readonly created_at: string;
}

export interface CapsulePayload {
  readonly instance: CapsuleInstance;
  readonly checkpoint: CheckpointRecord;
  /** Block outputs, so that what is done is not done again. */
  readonly outputs: readonly JsonObject[];
  /** The nodes that are under way or done; with the outputs, where the instance goes on. */
  readonly execution_tree: readonly JsonObject[];
  readonly effect_ids: readonly string[];
  readonly pending_waits: readonly JsonValue[];
  readonly pending_signals: readonly JsonValue[];
  readonly artifacts: readonly JsonValue[];
  readonly stream_cursors: readonly JsonValue[];
  readonly redacted_audit_context: JsonValue;
}

/** The most entries of each list. */
const LISTS_MAX = {
  outputs: PAYLOAD_LIST_MAX,
  execution_tree: PAYLOAD_LIST_MAX,
  effect_ids: PAYLOAD_LIST_MAX,
  pending_waits: PAYLOAD_LIST_MAX,
  pending_signals: PAYLOAD_LIST_MAX,
  artifacts: PAYLOAD_LIST_MAX,
  stream_cursors: STREAM_CURSORS_MAX,
} as const;
type ListName = keyof typeof LISTS_MAX;
const LIST_NAMES = Object.keys(LISTS_MAX) as ListName[];

/** The bytes to be sealed; refused when a list or the whole is too large for any importer. */
export function encodePayload(payload: CapsulePayload): Parsed<Buffer> {
  return parsing(() => {
    for (const name of LIST_NAMES) {
      if (payload[name].length > LISTS_MAX[name]) {
        refuse(name, `must have at most ${LISTS_MAX[name]} entries`);
      }
    }
    const bytes = Buffer.from(canonicalJson(withoutEmptiness(payload)));
    if (bytes.length > PAYLOAD_BYTES_MAX) {
      refuse('the payload', `must have at most ${PAYLOAD_BYTES_MAX} bytes`);
    }
    return bytes;
  });
}

/** What was unsealed is from a server that holds the key, and is checked like everything else. */
export function decodePayload(bytes: Uint8Array): Parsed<CapsulePayload> {
  return parsing(() => {
    if (bytes.length > PAYLOAD_BYTES_MAX) {
      refuse('the payload', `must have at most ${PAYLOAD_BYTES_MAX} bytes`);
    }
    const text = decodeUtf8(bytes);
    const json = text === undefined ? undefined : parseJson(text, PAYLOAD_JSON);
    if (json === undefined) refuse('the payload', 'must be UTF-8');
    if (!json.ok) refuse('the payload:', json.problem.message);
    const fields = new Fields(json.value as JsonValue, 'payload');
    return {
      instance: readInstance(fields.inner('instance')),
      checkpoint: readCheckpoint(fields.inner('checkpoint')),
      outputs: objects(fields, 'outputs'),
      execution_tree: objects(fields, 'execution_tree'),
      effect_ids: fields.uuids('effect_ids', LISTS_MAX.effect_ids),
      pending_waits: fields.list('pending_waits', LISTS_MAX.pending_waits),
      pending_signals: fields.list('pending_signals', LISTS_MAX.pending_signals),
      artifacts: fields.list('artifacts', LISTS_MAX.artifacts),
      stream_cursors: fields.list('stream_cursors', LISTS_MAX.stream_cursors),
      redacted_audit_context: fields.value('redacted_audit_context') ?? null,
    };
  });
}

function withoutEmptiness(payload: CapsulePayload): object {
  const lists = LIST_NAMES.filter((name) => payload[name].length > 0);
  return {
    instance: payload.instance,
    checkpoint: payload.checkpoint,
    ...Object.fromEntries(lists.map((name) => [name, payload[name]])),
    ...(payload.redacted_audit_context === null
      ? {}
      : { redacted_audit_context: payload.redacted_audit_context }),
  };
}

function readInstance(fields: Fields): CapsuleInstance {
  return {
    sequence_id: fields.required('sequence_id', fields.uuid('sequence_id')),
    namespace: fields.required('namespace', fields.text('namespace')),
    priority: fields.required('priority', fields.word('priority', PRIORITIES)),
    timezone: fields.required('timezone', fields.text('timezone')),
    metadata: fields.object('metadata'),
    context: fields.object('context'),
    budget: fields.value('budget') ?? null,
    parent_instance_id: fields.uuid('parent_instance_id') ?? null,
  };
}

function readCheckpoint(fields: Fields): CheckpointRecord {
  return {
    id: fields.required('id', fields.uuid('id')),
    instance_id: fields.required('instance_id', fields.uuid('instance_id')),
    checkpoint_data: fields.value('checkpoint_data') ?? null,
    created_at: fields.required('created_at', fields.timestamp('created_at')),
  };
}

function objects(fields: Fields, name: ListName): JsonObject[] {
  return fields.list(name, LISTS_MAX[name]).map((entry, i) => {
    if (!isJsonObject(entry)) fields.refuse(`${name}[${i}]`, 'must be an object');
    return entry;
  });
}
