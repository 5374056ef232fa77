/** Releases on the front thread: reads, semantic diffs (docs/releases.md), and validations. */

import { RELEASE_LIST_MAX } from '../../../schema/release.js';
import { invalid, unprocessable } from '../../../src/base/errors.js';
import { tenantOf } from '../../../src/base/tenancy.js';
import { filtersOf } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { lookup, rowOf, TRY_LATER } from '../../../src/db/reads/lookup.js';
import { orderBy } from '../../../src/db/reads/order.js';
import { columnsBut, selected } from '../../../src/db/table.js';
import type { FrontKernel, FrontRoom } from '../../../src/http/front-room.js';
import {
  type CallById,
  type FrontDeps,
  jsonReply,
  listQuery,
  pageReply,
} from '../../../src/http/operation.js';
import { judge, type Outcomes, runsToJudge } from '../core/gates.js';
import {
  RELEASE_COLUMNS,
  type ReleaseRow,
  releaseOf,
  releaseRowOf,
  type StoredRelease,
} from '../core/record.js';
import { COMPARE_DEFINITIONS, DRY_RUN } from '../jobs.js';
import { RELEASE_SQL } from '../loads.js';
import { storedStart } from '../replay-reads.js';
import { RELEASE_DECISIONS, RELEASES } from '../tables.js';
import { definitionsOf, type ReleaseClient, Validations } from './validation.js';

export const releaseById = lookup<StoredRelease>('reads_release_get', RELEASE_SQL.release);

/** `Release` records, newest first. */
export const releaseList = list({
  columns: RELEASE_COLUMNS,
  from: 'releases r',
  by: filtersOf(RELEASES, ['tenant_id', 'state', 'sequence_name'], 'r'),
  walk: { table: 'releases r', alias: 'r', along: ['tenant_id'], isOfAll: true, within: [] },
  order: orderBy(RELEASES, ['created_at', 'id'], 'descending', 'r'),
  toText: (row: StoredRelease) => JSON.stringify(releaseOf(releaseRowOf(row))),
  cheaper: 'name the tenant, or ask for a smaller limit',
});

const releaseOutcomes = lookup<Outcomes>('reads_release_outcomes', RELEASE_SQL.releaseOutcomes);

/** `ReleaseDecision` records, oldest first. */
export const decisionList = list({
  columns: selected(columnsBut(RELEASE_DECISIONS)),
  from: 'release_decisions',
  of: filtersOf(RELEASE_DECISIONS, ['release_id']),
  order: 'decided_at, id',
  cheaper: TRY_LATER,
});

export function openReleaseFront(kernel: FrontKernel<ReleaseClient>) {
  const { offload, offloadPool, settings } = kernel;
  const { unpoliciedRetry } = settings;
  const validations = new Validations({ ...kernel, pool: offloadPool, unpoliciedRetry });
  return {
    parts: [validations],
    operations: {
      'releases.list': async ({ reads }, call) => {
        const query = listQuery(call);
        const limit = Math.min(Math.max(query.limit, 1), RELEASE_LIST_MAX);
        const bounds = { ...query, limit, offset: 0 };
        return pageReply(call, bounds, await reads.page(releaseList(bounds)));
      },
      'releases.get': async (deps, call) =>
        jsonReply(JSON.stringify(releaseOf(await releaseNamed(deps, call)))),
      /** Does not wait for the release owner, so the latest ends of runs may be missing. */
      'releases.gates': async (deps, call) => {
        const row = await releaseNamed(deps, call);
        const { since, baseline, from, sample } = runsToJudge(row);
        const args = [row.id, since, baseline, from, sample];
        const outcomes = await releaseOutcomes.rows(deps.reads, ...args);
        return jsonReply(JSON.stringify(judge(row.gates, row, outcomes)));
      },
      'releases.decisions': async (deps, call) => {
        const { id } = await releaseNamed(deps, call);
        return jsonReply((await deps.reads.page(decisionList({ release_id: id }))).text);
      },
      'releases.diff': async (deps, call) => {
        const release = await releaseNamed(deps, call);
        const definitions = await definitionsOf(deps, release.tenant_id, release);
        return jsonReply(await offload.run(call.tenant, COMPARE_DEFINITIONS, definitions));
      },
      'sequences.compare': async (deps, { tenant, body }) => {
        const definitions = await definitionsOf(deps, tenantOf(tenant, body.tenant_id), body);
        return jsonReply(await offload.run(tenant, COMPARE_DEFINITIONS, definitions));
      },
      'instances.dryRun': async ({ reads }, { tenant, params, body }) => {
        const owner = tenantOf(tenant, body.tenant_id);
        const start = await rowOf(reads, storedStart, 'instance', params.id, owner);
        const definition = JSON.stringify(body);
        const end = await offload.run(tenant, DRY_RUN, { definition, start });
        if (end.kind === 'ended') return jsonReply(end.text);
        throw end.kind === 'invalid' ? invalid(end.message) : unprocessable(end.message);
      },
    },
    // Called while the shard still answers, so that releases in validation become drafts again.
    drain: () => validations.stop(),
  } satisfies FrontRoom;
}

export async function releaseNamed(
  { reads }: FrontDeps,
  { params, tenant }: CallById,
): Promise<ReleaseRow> {
  return releaseRowOf(await rowOf(reads, releaseById, 'release', params.id, tenant));
}
