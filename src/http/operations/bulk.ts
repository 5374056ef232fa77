/**
 * Changes of many instances: the matches are found here, and each of them is changed by its owner.
 */

import { type Change, type ChangeCounts, concerns } from '../../../actors/instance/change-many.js';
import { BATCH_ACTION_LIMIT_DEFAULT, type BatchAction } from '../../../schema/edits.js';
import type { JsonValue } from '../../core/json.js';
import { type Candidate, candidates, type InstanceFilter } from '../../db/reads/instance-reads.js';
import { invalid } from '../../errors.js';
import { checkTenant } from '../../tenancy.js';
import type { HttpReply } from '../server.js';
import {
  type AnyCall,
  type FrontDeps,
  type FrontOperations,
  jsonReply,
  type Operation,
} from './operation.js';

/** Instances that a change of many asks for at once: their units fill a commit, and no more wait. */
const WINDOW = 500;

const bulkState: Operation<'instances.bulkState'> = async (deps, call) => {
  const { filter, state, dry_run } = call.body;
  return changeAll(deps, filterOf(call, filter), { kind: 'state', state }, dry_run ?? false);
};

const bulkReschedule: Operation<'instances.bulkReschedule'> = async (deps, call) => {
  const body = call.body;
  const filter = filterOf(call, body.filter);
  const states = body.filter.states ?? [];
  const isDryRun = body.dry_run ?? false;
  if (states.length > 0 && !states.includes('scheduled')) return countReply(0, isDryRun);
  const change: Change = { kind: 'reschedule', offsetMs: body.offset_secs * 1_000 };
  return changeAll(deps, { ...filter, state: ['scheduled'] }, change, isDryRun);
};

const batchAction: Operation<'instances.batchAction'> = async (deps, call) => {
  const body = call.body;
  const change = changeOf(body, call.traceparent);
  const isDryRun = body.dry_run ?? false;
  const limit = body.limit ?? BATCH_ACTION_LIMIT_DEFAULT;
  const result = { matched: 0, applied: 0, skipped: 0, failed: 0, dry_run: isDryRun };
  for await (const window of windows(deps, filterOf(call, body.filter), 'included', limit)) {
    const counts = await changeWindow(deps, window, change, isDryRun);
    result.matched += window.length;
    result.applied += counts.applied;
    result.skipped += counts.skipped;
    result.failed += counts.failed;
  }
  return jsonReply(JSON.stringify(result));
};

/** The operations that change many instances. */
export const bulkOperations = {
  'instances.bulkState': bulkState,
  'instances.bulkReschedule': bulkReschedule,
  'instances.batchAction': batchAction,
} satisfies Partial<FrontOperations>;

function changeOf(body: BatchAction, traceparent: string | undefined): Change {
  const payload = (body.payload ?? null) as JsonValue;
  switch (body.action) {
    case 'retry':
      return { kind: 'retry' };
    case 'signal':
      return { kind: 'signal', signalType: `custom:${body.signal_type}`, payload, traceparent };
    case 'pause':
    case 'resume':
    case 'cancel':
      return { kind: 'signal', signalType: body.action, payload, traceparent };
  }
}

/** A dry run counts by the states in the rows; otherwise each instance decides for itself. */
async function changeWindow(
  deps: FrontDeps,
  window: readonly Candidate[],
  change: Change,
  isDryRun: boolean,
): Promise<ChangeCounts> {
  if (isDryRun) return foreseen(window, change);
  const ids = window.map(({ id }) => id);
  return deps.changeMany(ids, change);
}

function foreseen(window: readonly Candidate[], change: Change): ChangeCounts {
  const applied = window.filter(({ state }) => concerns(change, state)).length;
  return { applied, skipped: window.length - applied, failed: 0 };
}

/**
 * What was reached before an error stays changed; a repeated call is safe. Answers with how many were
 * changed, or would be.
 */
async function changeAll(
  deps: FrontDeps,
  filter: InstanceFilter,
  change: Change,
  isDryRun: boolean,
): Promise<HttpReply> {
  let count = 0;
  for await (const window of windows(deps, filter, 'left out')) {
    count += (await changeWindow(deps, window, change, isDryRun)).applied;
  }
  return countReply(count, isDryRun);
}

/** The matches newest first, so that instances created meanwhile are not chased; at most `limit`. */
async function* windows(
  deps: FrontDeps,
  filter: InstanceFilter,
  terminal: 'left out' | 'included',
  limit = Number.POSITIVE_INFINITY,
): AsyncGenerator<readonly Candidate[]> {
  let last: Candidate | undefined;
  for (let left = limit; left > 0; ) {
    const size = Math.min(left, WINDOW);
    const window = await candidates(deps.reads, filter, last, size, terminal);
    if (window.length > 0) yield window;
    if (window.length < size) return;
    left -= window.length;
    last = window.at(-1);
  }
}

function countReply(count: number, isDryRun: boolean): HttpReply {
  const counts = isDryRun ? { count, updated: 0, dry_run: true } : { count, updated: count };
  return jsonReply(JSON.stringify(counts));
}

function filterOf(call: AnyCall, filter: BatchAction['filter']): InstanceFilter {
  return { ...filter, tenant_id: tenantOf(call, filter.tenant_id), state: filter.states };
}

/** A change of many needs one tenant: the header's, or without one the filter's. */
function tenantOf(call: AnyCall, filtered: string | null | undefined): string {
  const tenant = filtered?.trim() ? filtered : undefined;
  if (call.tenant === '') {
    if (tenant === undefined) throw invalid('filter.tenant_id is required');
    return tenant;
  }
  if (tenant !== undefined) checkTenant(call.tenant, tenant, 'filter.');
  return call.tenant;
}
