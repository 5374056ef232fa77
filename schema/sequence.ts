/** Wire shapes and routes of stored definitions, which are immutable. */

import { BLOCKS_MAX, DEPTH_MAX, hooks, RootBlocks } from './blocks.js';
import { CancelOnList } from './cancel-on.js';
import * as t from './common.js';
import { Finding, Warnings } from './finding.js';
import { FLOW_LIMITS, STORED_FLOW_LIMITS } from './flow-limits.js';
import { COLLECTING } from './pending-start.js';
import { did, firstShard, front, get, getById, ok, type RouteRow, refusals } from './route-row.js';
import { Searchable } from './search.js';

const SEQUENCE_STATUSES = ['draft', 'staging', 'production', 'unpublished'] as const;
const SequenceStatus = t.oneOf(SEQUENCE_STATUSES);

const ON_FAILURE = hooks('FailureHook', 'an instance has failed');
const ON_CANCEL = hooks('CancelHook', 'an instance was cancelled');

export const CreateSequence = t.named('CreateSequence', 'A definition; immutable once stored.', {
  id: t.nullish(t.Uuid, 'Default: generated.'),
  tenant_id: t.noted(
    t.text({ maxLength: t.NAME_LENGTH_MAX, 'x-check': 'tenant' }),
    'Required. May be blank with the header x-tenant-id; else both must be equal.',
  ),
  namespace: t.Name,
  name: t.Name,
  version: t.noted(t.Version, 'Unique with tenant, namespace and name.'),
  blocks: t.noted(RootBlocks, `At most ${BLOCKS_MAX} blocks in total, ${DEPTH_MAX} levels deep.`),
  deprecated: t.flag(false),
  hold: t.flag(false, 'Lookups by name without version exclude it until lifted or promoted.'),
  status: t.nullish(t.withDefault(SequenceStatus, 'production')),
  input_schema: t.nullish(t.UserSchema, 'Schema of context.data; other data is answered 422.'),
  created_at: t.nullish(t.Timestamp),
  on_failure: t.nullish(ON_FAILURE),
  on_cancel: t.nullish(ON_CANCEL),
  ...FLOW_LIMITS,
  cancel_on: t.nullish(CancelOnList),
  ...COLLECTING,
  searchable: t.nullish(Searchable),
  ...t.unsupported('interceptors', 'sla'),
});
export type CreateSequence = t.Static<typeof CreateSequence>;

export const SequenceCreated = t.named('SequenceCreated', { id: t.Uuid, warnings: Warnings });
export type SequenceCreated = t.Static<typeof SequenceCreated>;

export const UpdateSequence = t.strictNamed(
  'UpdateSequence',
  'Lifts the hold, the only change of a version; deprecate it to exclude it again.',
  { hold: t.literal(false) },
);
export type UpdateSequence = t.Static<typeof UpdateSequence>;

export const SequenceCheckQuery = t.object({
  strict: t.boolean({ default: false, description: 'Also refuses definitions with warnings.' }),
});
export type SequenceCheckQuery = t.Static<typeof SequenceCheckQuery>;

export const SequenceValidated = t.named('SequenceValidated', 'The definition can be stored.', {
  valid: t.literal(true),
  warnings: t.list(Finding),
});
export type SequenceValidated = t.Static<typeof SequenceValidated>;

const DefinitionRefused = t.named(
  'DefinitionRefused',
  'Has the lists only if the definition was validated, or ' +
    'stored with strict; empty lists are absent.',
  {
    error: t.text('Message with the first ten findings and suggestions.'),
    errors: Warnings,
    warnings: Warnings,
  },
);

export const SequenceDefinition = t.named('SequenceDefinition', 'A stored definition.', {
  id: t.Uuid,
  tenant_id: t.text(),
  namespace: t.text(),
  name: t.text(),
  version: t.integer(),
  deprecated: t.boolean(),
  hold: t.boolean('True: excluded from lookups by name.'),
  status: SequenceStatus,
  blocks: RootBlocks,
  input_schema: t.optional(t.UserSchema),
  on_failure: t.optional(ON_FAILURE),
  on_cancel: t.optional(ON_CANCEL),
  ...STORED_FLOW_LIMITS,
  cancel_on: t.optional(CancelOnList),
  ...COLLECTING,
  searchable: t.optional(Searchable),
  created_at: t.Timestamp,
});
export type SequenceDefinition = t.Static<typeof SequenceDefinition>;

/** Whether an error has its findings as lists. */
export function hasLists(
  operation: string,
  { strict }: Readonly<Record<string, unknown>>,
): boolean {
  return operation === 'sequences.validate' || strict === true;
}

const { blocks: BLOCKS, ...WITHOUT_BLOCKS } = SequenceDefinition.properties;

export const SequenceListed = t.named('SequenceListed', 'A stored definition, full or partial.', {
  ...WITHOUT_BLOCKS,
  blocks: t.optional(BLOCKS),
  versions: t.optional(t.integer('With newest_only: number of versions of the name.')),
});
export type SequenceListed = t.Static<typeof SequenceListed>;

const SequenceList = t.list(SequenceDefinition);

/** The tenant header overrides `tenant_id`, here and in every list. */
export const SequenceByNameQuery = t.object({
  tenant_id: t.text({ minLength: 1 }),
  namespace: t.text({ minLength: 1 }),
  name: t.text({ minLength: 1 }),
  version: t.optional(t.Version),
});

const SequenceVersionsQuery = t.object({
  tenant_id: t.optional(t.text()),
  namespace: t.text({ minLength: 1 }),
  name: t.text({ minLength: 1 }),
});

export const SequenceListQuery = t.object({
  tenant_id: t.optional(t.text()),
  namespace: t.optional(t.text()),
  name: t.optional(t.text()),
  name_contains: t.optional(t.text({ maxLength: t.NAME_LENGTH_MAX }), 'Case-insensitive.'),
  newest_only: t.boolean({
    default: false,
    description: 'Only the newest version of each name, with the number of versions.',
  }),
  include_definition: t.boolean({
    default: true,
    description: 'False: omits the definition: blocks, input_schema, hooks, limits and the like.',
  }),
  ...t.pageOf(200, 1_000),
});
export type SequenceListQuery = t.Static<typeof SequenceListQuery>;

export const SequenceDeleteQuery = t.strictObject({
  cascade: t.boolean({
    default: false,
    description: 'Deletes failed instances too; otherwise they prevent the deletion.',
  }),
  dry_run: t.noted(
    t.boolean({ default: false }),
    'Answers 200 with the number of instances to delete, or the error; deletes nothing.',
  ),
});
export type SequenceDeleteQuery = t.Static<typeof SequenceDeleteQuery>;

/** `count` is the sum of `ended` and `failed`. */
export const SequenceDeletionPreview = t.named('SequenceDeletionPreview', {
  count: t.integer('Number of instances that would be deleted.'),
  ended: t.integer('Number of completed and cancelled instances.'),
  failed: t.integer('Number of failed instances.'),
  dry_run: t.literal(true),
});

export const SEQUENCE_ROWS = {
  'sequences.create': firstShard.post('/sequences', {
    summary: 'Store an immutable sequence definition.',
    body: CreateSequence,
    bodySize: 'large',
    definition: 'a sequence',
    query: SequenceCheckQuery,
    makes: 'definition',
    replies: { 201: SequenceCreated, 400: DefinitionRefused, ...refusals(409, 413) },
    action: did('sequence', 'published', {
      shows: ['namespace', 'name', 'version', 'hold', 'status'],
    }),
  }),
  'sequences.validate': firstShard.post('/sequences/validate', {
    summary: 'Return the answer to storing the definition, without storing it.',
    body: CreateSequence,
    bodySize: 'large',
    definition: 'a sequence',
    query: SequenceCheckQuery,
    repeats: 'it changes nothing',
    makes: 'definition',
    replies: { 200: SequenceValidated, 400: DefinitionRefused, ...refusals(413) },
  }),
  'sequences.list': get(
    '/sequences',
    'List definitions by tenant, namespace, name and descending version.',
    t.list(SequenceListed),
    { query: SequenceListQuery },
  ),
  'sequences.byName': front.get('/sequences/by-name', {
    summary: 'Get a definition by name; default: the newest version not deprecated or on hold.',
    query: SequenceByNameQuery,
    replies: ok(SequenceDefinition, 404),
  }),
  'sequences.versions': get(
    '/sequences/versions',
    'List the versions of a name that are not deprecated, newest first.',
    SequenceList,
    { query: SequenceVersionsQuery },
  ),
  'sequences.get': getById('/sequences/{id}', 'Get a definition.', SequenceDefinition),
  'sequences.update': firstShard.patch('/sequences/{id}', {
    summary: 'Lift the hold of a version, so that lookups by name include it.',
    body: UpdateSequence,
    repeats: 'a lifted hold stays lifted',
    replies: { 204: null, ...refusals(400, 404) },
    action: did('sequence', 'lifted the hold of'),
  }),
  'sequences.deprecate': firstShard.post('/sequences/{id}/deprecate', {
    summary: 'Deprecate a version: it is no longer the newest for lookups by name.',
    repeats: 'a deprecated version stays deprecated',
    replies: { 204: null, ...refusals(400, 404) },
    action: did('sequence', 'deprecated'),
  }),
  'sequences.delete': front.delete('/sequences/{id}', {
    summary: 'Delete a definition that has no live or failed instances, with its finished ones.',
    query: SequenceDeleteQuery,
    replies: { 200: SequenceDeletionPreview, 204: null, ...refusals(400, 404, 409) },
    action: did('sequence', 'deleted'),
  }),
} as const satisfies Record<string, RouteRow>;
