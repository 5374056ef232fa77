/**
 * Reads of executions and of what hangs on them: where they are, their checkpoints and provenance,
 * runtimes, handoffs, migrations. What belongs to another tenant is not found; a chain of provenance is empty.
 */

import type { Execution } from '../../../schema/continuity.js';
import { invalid, notFound, unavailable } from '../../../src/base/errors.js';
import type { JsonValue } from '../../../src/base/json.js';
import type { Offload } from '../../../src/base/offload.js';
import { redactedStateDiff } from '../../../src/core/redaction.js';
import { rowOf } from '../../../src/db/reads/lookup.js';
import type { FrontKernel, FrontRoom } from '../../../src/http/front-room.js';
import {
  type AnyCall,
  type CallById,
  type FrontDeps,
  jsonReply,
  listTenant,
  type Operation,
} from '../../../src/http/operation.js';
import { executionView } from '../core/execution-view.js';
import { handoffView } from '../core/handoff-view.js';
import { migrationView } from '../core/migration-record.js';
import { VERIFY_PROVENANCE } from '../jobs.js';
import { effectOperations } from './effects.js';
import {
  boundaries,
  boundaryOfCheckpoint,
  executionById,
  handoffById,
  locationList,
  migrationById,
  provenanceList,
  runtimeList,
  stateAt,
} from './reads.js';

/** '' is any: only the root key may leave the tenant out, and only where the header is optional. */
function tenantOf(call: AnyCall, query: { readonly tenant_id?: string | undefined }): string {
  return listTenant(call, query.tenant_id) ?? '';
}

/** @throws EngineError 404 */
async function executionNamed(deps: FrontDeps, call: CallById, tenant: string): Promise<Execution> {
  const { params } = call;
  return executionView(await rowOf(deps.reads, executionById, 'execution', params.id, tenant));
}

const get: Operation<'continuity.get'> = async (deps, call) => {
  const tenant = tenantOf(call, call.query);
  return jsonReply(JSON.stringify(await executionNamed(deps, call, tenant)));
};

const locations: Operation<'continuity.locations'> = async (deps, call) => {
  const tenant = tenantOf(call, call.query);
  const { continuity_id } = await executionNamed(deps, call, tenant);
  return jsonReply((await deps.reads.page(locationList({ continuity_id }))).text);
};

const checkpoints: Operation<'continuity.checkpoints'> = async (deps, call) => {
  const { query } = call;
  const { continuity_id } = await executionNamed(deps, call, tenantOf(call, query));
  const list = await boundaries(deps.reads, continuity_id, query.limit);
  return jsonReply(JSON.stringify(list));
};

const checkpoint: Operation<'continuity.checkpoint'> = async (deps, call) => {
  const tenant = tenantOf(call, call.query);
  const { continuity_id } = await executionNamed(deps, call, tenant);
  const id = call.params.checkpoint_id;
  const found = await boundaryOfCheckpoint(deps.reads, continuity_id, id);
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

const provenance: Operation<'continuity.provenance'> = async (deps, call) => {
  const asked = { continuity_id: call.params.id, tenant_id: tenantOf(call, call.query) };
  return jsonReply((await deps.reads.page(provenanceList(asked))).text);
};

/** More than the 10,000 entries have that callers may add up to, with the longest names. */
const CHAIN_BYTES_MAX = 16 * 1024 * 1024;

/** Without an encryption key no signature is trusted. */
const verifyWith =
  (offload: Offload): Operation<'continuity.verifyProvenance'> =>
  async (deps, call) => {
    const { query } = call;
    const { id } = call.params;
    const request = provenanceList({ continuity_id: id, tenant_id: tenantOf(call, query) });
    const { text } = await deps.reads.page({ ...request, bytesMax: CHAIN_BYTES_MAX });
    const trusted = [...(deps.keyring?.trusted ?? [])];
    const chain = { text, trusted, expectedHead: query.expected_head };
    return jsonReply(await offload.run(call.tenant, VERIFY_PROVENANCE, chain));
  };

const runtimes: Operation<'runtimes.list'> = async (deps, call) => {
  const tenant = tenantOf(call, call.query);
  if (tenant === '') throw invalid('tenant_id is required');
  return jsonReply((await deps.reads.page(runtimeList(tenant, deps.now()))).text);
};

const handoff: Operation<'handoffs.get'> = async (deps, call) => {
  const tenant = tenantOf(call, call.query);
  const row = await rowOf(deps.reads, handoffById, 'handoff', call.params.id, tenant);
  const { continuity_id, expected_epoch, state } = row;
  const destination =
    state === 'resumed'
      ? await stateAt.row(deps.reads, continuity_id, expected_epoch + 1)
      : undefined;
  return jsonReply(JSON.stringify(handoffView(row, deps.now(), destination?.state)));
};

const migration: Operation<'migrations.get'> = async (deps, call) => {
  const tenant = tenantOf(call, call.query);
  const row = await rowOf(deps.reads, migrationById, 'migration', call.params.id, tenant);
  const view = migrationView(row, deps.keyring?.opening ?? []);
  if (view === undefined) {
    throw unavailable('ENG_NO_KEYS', 'no key of the server opens what is sealed of the migration');
  }
  return jsonReply(JSON.stringify(view));
};

/** Changes belong to the shard that the execution's id leads to. */
export function openContinuityFront({ offload }: Pick<FrontKernel, 'offload'>) {
  return {
    operations: {
      ...effectOperations,
      'continuity.get': get,
      'continuity.locations': locations,
      'continuity.checkpoints': checkpoints,
      'continuity.checkpoint': checkpoint,
      'continuity.provenance': provenance,
      'continuity.verifyProvenance': verifyWith(offload),
      'runtimes.list': runtimes,
      'handoffs.get': handoff,
      'migrations.get': migration,
    },
  } satisfies FrontRoom;
}
