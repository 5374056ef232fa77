/** Reads of releases. One of another tenant is not found. */

import { RELEASE_LIST_MAX, type Release } from '../../../schema/release.js';
import { notFound } from '../../errors.js';
import {
  type CallById,
  type FrontDeps,
  type FrontOperations,
  jsonReply,
  listTenant,
  type Operation,
} from './operation.js';

/** @throws EngineError 404 */
export async function releaseNamed(deps: FrontDeps, call: CallById): Promise<Release> {
  const { id } = call.params;
  const release = await deps.reads.releases.get(id, call.tenant);
  if (release === undefined) throw notFound(`release ${id}`);
  return release;
}

const list: Operation<'releases.list'> = async (deps, call) => {
  const { query } = call;
  const tenant = listTenant(call, query.tenant_id);
  const limit = Math.min(Math.max(query.limit, 1), RELEASE_LIST_MAX);
  return jsonReply(await deps.reads.releases.list(tenant, limit));
};

const get: Operation<'releases.get'> = async (deps, call) =>
  jsonReply(JSON.stringify(await releaseNamed(deps, call)));

const decisions: Operation<'releases.decisions'> = async (deps, call) => {
  const { id } = await releaseNamed(deps, call);
  return jsonReply(await deps.reads.releases.decisions(id));
};

/** The reads of releases; their changes belong to the releases' owner. */
export const releaseOperations = {
  'releases.list': list,
  'releases.get': get,
  'releases.decisions': decisions,
} satisfies Partial<FrontOperations>;
