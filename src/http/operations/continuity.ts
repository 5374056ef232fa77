/**
 * Reads of executions and of what hangs on them: where they are, their checkpoints and provenance,
 * runtimes, handoffs, migrations. What belongs to another tenant is not found; a chain of provenance is empty.
 */

import type { Execution } from '../../../schema/continuity.js';
import type { RouteId } from '../../../schema/routes.js';
import type { Chains } from '../../chains.js';
import { migrationView } from '../../core/continuity/migration-record.js';
import { redactedStateDiff } from '../../core/continuity/redaction.js';
import type { JsonValue } from '../../core/json.js';
import { invalid, notFound, unavailable } from '../../errors.js';
import { handoffView } from '../../handoff-view.js';
import {
  type Call,
  type FrontDeps,
  jsonReply,
  listTenant,
  type Operation,
  queryOf,
} from './operation.js';

/** '' is any: only the root key may leave the tenant out, and only where the header is optional. */
function tenantOf(call: Call, query: { readonly tenant_id?: string | undefined }): string {
  return listTenant(call, query.tenant_id) ?? '';
}

/** @throws EngineError 404 */
async function executionNamed(deps: FrontDeps, call: Call, tenant: string): Promise<Execution> {
  const id = call.params.id ?? '';
  const execution = await deps.reads.continuity.execution(id, tenant);
  if (execution === undefined) throw notFound(`execution ${id}`);
  return execution;
}

const get: Operation = async (deps, call) => {
  const tenant = tenantOf(call, queryOf(deps, call, 'continuity.get'));
  return jsonReply(JSON.stringify(await executionNamed(deps, call, tenant)));
};

const locations: Operation = async (deps, call) => {
  const tenant = tenantOf(call, queryOf(deps, call, 'continuity.locations'));
  const { continuity_id } = await executionNamed(deps, call, tenant);
  return jsonReply(await deps.reads.continuity.locations(continuity_id));
};

const checkpoints: Operation = async (deps, call) => {
  const query = queryOf(deps, call, 'continuity.checkpoints');
  const { continuity_id } = await executionNamed(deps, call, tenantOf(call, query));
  const list = await deps.reads.continuity.boundaries(continuity_id, query.limit);
  return jsonReply(JSON.stringify(list));
};

const checkpoint: Operation = async (deps, call) => {
  const tenant = tenantOf(call, queryOf(deps, call, 'continuity.checkpoint'));
  const { continuity_id } = await executionNamed(deps, call, tenant);
  const id = call.params.checkpoint_id ?? '';
  const found = await deps.reads.continuity.boundary(continuity_id, id);
  if (found === undefined) throw notFound(`checkpoint ${id}`);
  const { boundary, data, previousId, previousData } = found;
  const [before, after] = [previousData, data].map((text) => JSON.parse(text) as JsonValue);
  const diff = redactedStateDiff(before ?? null, after ?? null);
  return jsonReply(
    `{"boundary":${JSON.stringify(boundary)},"checkpoint_data":${data}` +
      `,"previous_checkpoint_id":${JSON.stringify(previousId)}` +
      `,"redacted_state_diff":${JSON.stringify(diff)}}`,
  );
};

const provenance: Operation = async (deps, call) => {
  const tenant = tenantOf(call, queryOf(deps, call, 'continuity.provenance'));
  return jsonReply(await deps.reads.continuity.provenance(call.params.id ?? '', tenant));
};

/** More than the 10,000 entries have that callers may add up to, with the longest names. */
const CHAIN_BYTES_MAX = 16 * 1024 * 1024;

/** Without an encryption key no signature is trusted. */
const verifyWith =
  (chains: Chains): Operation =>
  async (deps, call) => {
    const query = queryOf(deps, call, 'continuity.verifyProvenance');
    const { continuity } = deps.reads;
    const id = call.params.id ?? '';
    const text = await continuity.provenance(id, tenantOf(call, query), CHAIN_BYTES_MAX);
    const trusted = [...(deps.keyring?.trusted ?? [])];
    return jsonReply(await chains.verify({ text, trusted, expectedHead: query.expected_head }));
  };

const runtimes: Operation = async (deps, call) => {
  const tenant = tenantOf(call, queryOf(deps, call, 'runtimes.list'));
  if (tenant === '') throw invalid('tenant_id is required');
  return jsonReply(await deps.reads.continuity.runtimes(tenant, deps.now()));
};

const handoff: Operation = async (deps, call) => {
  const tenant = tenantOf(call, queryOf(deps, call, 'handoffs.get'));
  const id = call.params.id ?? '';
  const row = await deps.reads.continuity.handoff(id, tenant);
  if (row === undefined) throw notFound(`handoff ${id}`);
  const { continuity_id, expected_epoch, state } = row;
  const destination =
    state === 'resumed'
      ? await deps.reads.continuity.stateAt(continuity_id, expected_epoch + 1)
      : undefined;
  return jsonReply(JSON.stringify(handoffView(row, deps.now(), destination)));
};

const migration: Operation = async (deps, call) => {
  const tenant = tenantOf(call, queryOf(deps, call, 'migrations.get'));
  const id = call.params.id ?? '';
  const row = await deps.reads.continuity.migration(id, tenant);
  if (row === undefined) throw notFound(`migration ${id}`);
  const view = migrationView(row, deps.keyring?.opening ?? []);
  if (view === undefined) {
    throw unavailable('ENG_NO_KEYS', 'no key of the server opens what is sealed of the migration');
  }
  return jsonReply(JSON.stringify(view));
};

/** Changes belong to the desk that the execution's id leads to. */
export const continuityOperations = (chains: Chains) =>
  ({
    'continuity.get': get,
    'continuity.locations': locations,
    'continuity.checkpoints': checkpoints,
    'continuity.checkpoint': checkpoint,
    'continuity.provenance': provenance,
    'continuity.verifyProvenance': verifyWith(chains),
    'runtimes.list': runtimes,
    'handoffs.get': handoff,
    'migrations.get': migration,
  }) satisfies Partial<Record<RouteId, Operation>>;
