/** Rows of the operations on releases. */

import { IdParams } from './common.js';
import * as release from './release.js';
import { listOf, type RouteRow, readById, refusals } from './route-row.js';

/** The transitions belong to the owner of the releases, on the first shard. */
const move = {
  method: 'POST',
  params: IdParams,
  owner: 'first-shard',
} as const;

export const RELEASE_ROWS = {
  'releases.create': {
    method: 'POST',
    path: '/releases',
    summary: 'Draft a release that leads from one version of a sequence to another.',
    owner: 'first-shard',
    body: release.CreateRelease,
    replies: { 201: release.Release, ...refusals(400, 404, 409, 413) },
  },
  'releases.list': {
    method: 'GET',
    path: '/releases',
    summary: 'List releases, newest first.',
    owner: 'front',
    query: release.ReleaseListQuery,
    replies: { 200: listOf(release.Release), ...refusals(400) },
  },
  'releases.get': {
    method: 'GET',
    path: '/releases/{id}',
    summary: 'Get a release.',
    ...readById,
    replies: { 200: release.Release, ...refusals(400, 404) },
  },
  'releases.diff': {
    method: 'GET',
    path: '/releases/{id}/diff',
    summary: 'Tell what changes from the baseline to the candidate.',
    ...readById,
    replies: { 200: release.SemanticDiff, ...refusals(400, 404) },
  },
  'releases.decisions': {
    method: 'GET',
    path: '/releases/{id}/decisions',
    summary: 'List the decisions about a release, oldest first.',
    ...readById,
    replies: { 200: listOf(release.ReleaseDecision), ...refusals(400, 404) },
  },
  'releases.validate': {
    method: 'POST',
    path: '/releases/{id}/validate',
    summary: 'Replay ended runs of the baseline through the candidate, without any side effect.',
    params: IdParams,
    owner: 'front',
    body: release.ValidateRelease,
    isBodyOptional: true,
    replies: { 200: release.ValidationReport, ...refusals(400, 404, 409, 413) },
  },
  'releases.canary': {
    ...move,
    path: '/releases/{id}/canary',
    summary: 'Route a share of the new instances of the baseline to the candidate.',
    body: release.StartCanary,
    replies: { 200: release.Release, ...refusals(400, 404, 409, 413) },
  },
  'releases.evaluate': {
    ...move,
    path: '/releases/{id}/evaluate',
    summary: 'Judge the gates by the instances that have ended; a failing one rolls a canary back.',
    replies: { 200: release.EvaluationReport, ...refusals(400, 404) },
  },
  'releases.promote': {
    ...move,
    path: '/releases/{id}/promote',
    summary: 'Route all new instances of the baseline to the candidate, for good.',
    body: release.PromoteRelease,
    isBodyOptional: true,
    replies: { 200: release.Release, ...refusals(400, 404, 409, 413) },
  },
  'releases.pause': {
    ...move,
    path: '/releases/{id}/pause',
    summary: 'Route new instances to the baseline again, for the time being.',
    replies: { 200: release.Release, ...refusals(400, 404, 409) },
  },
  'releases.rollback': {
    ...move,
    path: '/releases/{id}/rollback',
    summary: 'Route new instances to the baseline again, for good.',
    replies: { 200: release.Release, ...refusals(400, 404, 409) },
  },
  'sequences.compare': {
    method: 'POST',
    path: '/sequences/releases/diff',
    summary: 'Tell what changes from one stored definition to another.',
    owner: 'front',
    body: release.CompareSequences,
    replies: { 200: release.SemanticDiff, ...refusals(400, 404, 413) },
  },
} as const satisfies Record<string, RouteRow>;
