/** Reads of releases. */

import { type GateReport, RELEASE_LIST_MAX, type Release } from '../../../schema/release.js';
import { rowOf } from '../../../src/db/reads/lookup.js';
import {
  type CallById,
  type FrontDeps,
  type FrontOperations,
  jsonReply,
  listQuery,
  type Operation,
  pageReply,
} from '../../../src/http/operation.js';
import { judge, runsToJudge } from '../core/gates.js';
import { type ReleaseRow, releaseOf, releaseRowOf } from '../core/record.js';
import { decisionList, releaseById, releaseList, releaseOutcomes } from './reads.js';

/** @throws EngineError 404 */
export async function releaseNamed(deps: FrontDeps, call: CallById): Promise<Release> {
  return releaseOf(await rowNamed(deps, call));
}

async function rowNamed({ reads }: FrontDeps, { params, tenant }: CallById): Promise<ReleaseRow> {
  return releaseRowOf(await rowOf(reads, releaseById, 'release', params.id, tenant));
}

const list: Operation<'releases.list'> = async (deps, call) => {
  const query = listQuery(call);
  const limit = Math.min(Math.max(query.limit, 1), RELEASE_LIST_MAX);
  const bounds = { ...query, limit, offset: 0 };
  return pageReply(call, bounds, await deps.reads.page(releaseList(bounds)));
};

const get: Operation<'releases.get'> = async (deps, call) =>
  jsonReply(JSON.stringify(await releaseNamed(deps, call)));

/** Without a turn of the release owner: runs that end meanwhile may be missing. */
const gates: Operation<'releases.gates'> = async (deps, call) => {
  const row = await rowNamed(deps, call);
  const { since, baseline, from, sample } = runsToJudge(row);
  const asked = [row.id, since, baseline, from, sample];
  const report: GateReport = judge(
    row.gates,
    row,
    await releaseOutcomes.rows(deps.reads, ...asked),
  );
  return jsonReply(JSON.stringify(report));
};

const decisions: Operation<'releases.decisions'> = async (deps, call) => {
  const { id } = await releaseNamed(deps, call);
  return jsonReply((await deps.reads.page(decisionList({ release_id: id }))).text);
};

export const releaseOperations = {
  'releases.list': list,
  'releases.get': get,
  'releases.gates': gates,
  'releases.decisions': decisions,
} satisfies Partial<FrontOperations>;
