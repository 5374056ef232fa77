/** Rows of the operations on sequences. */

import { IdParams } from './common.js';
import { type RouteRow, refusals } from './route-row.js';
import * as sequence from './sequence.js';

export const SEQUENCE_ROWS = {
  'sequences.create': {
    method: 'POST',
    path: '/sequences',
    summary: 'Store an immutable sequence definition.',
    owner: 'first-shard',
    body: sequence.CreateSequence,
    replies: { 201: sequence.SequenceCreated, ...refusals(400, 409, 413) },
  },
  'sequences.list': {
    method: 'GET',
    path: '/sequences',
    summary: 'List definitions by tenant, namespace, name and descending version.',
    owner: 'front',
    query: sequence.SequenceListQuery,
    replies: { 200: sequence.SequenceList, ...refusals(400) },
  },
  'sequences.byName': {
    method: 'GET',
    path: '/sequences/by-name',
    summary: 'Get a version of a definition by name; the newest not deprecated when not given.',
    owner: 'front',
    query: sequence.SequenceByNameQuery,
    replies: { 200: sequence.SequenceDefinition, ...refusals(400, 404) },
  },
  'sequences.versions': {
    method: 'GET',
    path: '/sequences/versions',
    summary: 'List the versions of a name that are not deprecated, newest first.',
    owner: 'front',
    query: sequence.SequenceVersionsQuery,
    replies: { 200: sequence.SequenceList, ...refusals(400) },
  },
  'sequences.get': {
    method: 'GET',
    path: '/sequences/{id}',
    summary: 'Get a definition.',
    owner: 'front',
    params: IdParams,
    replies: { 200: sequence.SequenceDefinition, ...refusals(400, 404) },
  },
  'sequences.deprecate': {
    method: 'POST',
    path: '/sequences/{id}/deprecate',
    summary: 'Take a version out of the choice of the newest one.',
    owner: 'first-shard',
    params: IdParams,
    replies: { 204: null, ...refusals(400, 404) },
  },
  'sequences.delete': {
    method: 'DELETE',
    path: '/sequences/{id}',
    summary: 'Delete a definition that no live or failed instance uses; the others follow.',
    owner: 'front',
    params: IdParams,
    query: sequence.SequenceDeleteQuery,
    replies: { 204: null, ...refusals(400, 404, 409) },
  },
} as const satisfies Record<string, RouteRow>;
