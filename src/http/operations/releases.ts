/** Reads of releases. One of another tenant is not found. */

import { RELEASE_LIST_MAX, type Release } from '../../../schema/release.js';
import { releaseOf, releaseRowOf } from '../../core/releases/record.js';
import { rowOf } from '../../db/reads/lookup.js';
import { decisionList, releaseById, releaseList } from '../../db/reads/release-reads.js';
import {
  type CallById,
  type FrontDeps,
  type FrontOperations,
  jsonReply,
  listQuery,
  type Operation,
} from './operation.js';

/** @throws EngineError 404 */
export async function releaseNamed(deps: FrontDeps, call: CallById): Promise<Release> {
  const row = await rowOf(deps.reads, releaseById, 'release', call.params.id, call.tenant);
  return releaseOf(releaseRowOf(row));
}

const list: Operation<'releases.list'> = async (deps, call) => {
  const query = listQuery(call);
  const limit = Math.min(Math.max(query.limit, 1), RELEASE_LIST_MAX);
  return jsonReply((await deps.reads.page(releaseList({ ...query, limit }))).text);
};

const get: Operation<'releases.get'> = async (deps, call) =>
  jsonReply(JSON.stringify(await releaseNamed(deps, call)));

const decisions: Operation<'releases.decisions'> = async (deps, call) => {
  const { id } = await releaseNamed(deps, call);
  return jsonReply((await deps.reads.page(decisionList({ release_id: id }))).text);
};

/** The reads of releases; their changes belong to the releases' owner. */
export const releaseOperations = {
  'releases.list': list,
  'releases.get': get,
  'releases.decisions': decisions,
} satisfies Partial<FrontOperations>;
