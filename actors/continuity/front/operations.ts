/**
 * Reads of executions and their locations, checkpoints, effects and provenance, and of runtimes,
 * handoffs and migrations. Ids of another tenant are not found; their provenance and effects are
 * empty lists.
 */

import { invalid, notFound, unavailable } from '../../../src/base/errors.js';
import type { JsonValue } from '../../../src/base/json.js';
import type { Offload } from '../../../src/base/offload.js';
import { redactedStateDiff } from '../../../src/core/redaction.js';
import { type Lookup, rowOf } from '../../../src/db/reads/lookup.js';
import type { FrontKernel, FrontRoom } from '../../../src/http/front-room.js';
import {
  type AnyCall,
  type CallById,
  type FrontDeps,
  jsonReply,
  listQuery,
  listTenant,
  type Operation,
  pageReply,
} from '../../../src/http/operation.js';
import { instanceTenant } from '../../instance/front/instance-reads.js';
import { handoffView } from '../core/handoff.js';
import { migrationView } from '../core/migration.js';
import { effectList, effectsOfExecution, effectsOfInstance } from '../effect-reads.js';
import { VERIFY_PROVENANCE } from '../jobs.js';
import { executionView } from '../rows.js';
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

/** '' is any: only the root key may omit the tenant, where the header is optional. */
function tenantOf(call: TenantCall): string {
  return listTenant(call, call.query.tenant_id) ?? '';
}

interface TenantCall extends AnyCall {
  readonly query: { readonly tenant_id?: string | undefined };
}

/** @throws EngineError 404 */
function named<Row extends { readonly tenant_id: string }>(
  deps: FrontDeps,
  call: TenantCall & CallById,
  byId: Lookup<Row>,
  what: string,
): Promise<Row> {
  return rowOf(deps.reads, byId, what, call.params.id, tenantOf(call));
}

const get: Operation<'continuity.get'> = async (deps, call) => {
  const row = await named(deps, call, executionById, 'execution');
  return jsonReply(JSON.stringify(executionView(row)));
};

const locations: Operation<'continuity.locations'> = async (deps, call) => {
  const { continuity_id } = await named(deps, call, executionById, 'execution');
  return jsonReply((await deps.reads.page(locationList({ continuity_id }))).text);
};

const checkpoints: Operation<'continuity.checkpoints'> = async (deps, call) => {
  const { continuity_id } = await named(deps, call, executionById, 'execution');
  return jsonReply(JSON.stringify(await boundaries(deps.reads, continuity_id, call.query.limit)));
};

const checkpoint: Operation<'continuity.checkpoint'> = async (deps, call) => {
  const { continuity_id } = await named(deps, call, executionById, 'execution');
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

const chainOf = (call: TenantCall & CallById) =>
  provenanceList({ continuity_id: call.params.id, tenant_id: tenantOf(call) });

const provenance: Operation<'continuity.provenance'> = async (deps, call) => {
  return jsonReply((await deps.reads.page(chainOf(call))).text);
};

/** Fits the longest chain of callers, with the longest names. */
const CHAIN_BYTES_MAX = 16 * 1024 * 1024;

/** Without an encryption key no signature is trusted. */
const verifyWith =
  (offload: Offload): Operation<'continuity.verifyProvenance'> =>
  async (deps, call) => {
    const { text } = await deps.reads.page({ ...chainOf(call), bytesMax: CHAIN_BYTES_MAX });
    const trusted = [...(deps.keyring?.trusted ?? [])];
    const chain = { text, trusted, expectedHead: call.query.expected_head };
    return jsonReply(await offload.run(call.tenant, VERIFY_PROVENANCE, chain));
  };

const runtimes: Operation<'runtimes.list'> = async (deps, call) => {
  const tenant = tenantOf(call);
  if (tenant === '') throw invalid('tenant_id is required');
  return jsonReply((await deps.reads.page(runtimeList(tenant, deps.now()))).text);
};

const handoff: Operation<'handoffs.get'> = async (deps, call) => {
  const row = await named(deps, call, handoffById, 'handoff');
  const { continuity_id, expected_epoch, state } = row;
  const destination =
    state === 'resumed'
      ? await stateAt.row(deps.reads, continuity_id, expected_epoch + 1)
      : undefined;
  return jsonReply(JSON.stringify(handoffView(row, deps.now(), destination?.state)));
};

const migration: Operation<'migrations.get'> = async (deps, call) => {
  const row = await named(deps, call, migrationById, 'migration');
  const view = migrationView(row, deps.keyring?.opening ?? []);
  if (view === undefined) {
    throw unavailable('ENG_NO_KEYS', 'no key of the server opens what is sealed of the migration');
  }
  return jsonReply(JSON.stringify(view));
};

const instanceEffects: Operation<'instances.effects'> = async (deps, call) => {
  const { tenant_id: tenant = '', ...page } = listQuery(call);
  const { id = '' } = call.params;
  await rowOf(deps.reads, instanceTenant, 'instance', id, tenant);
  const found = await deps.reads.page(effectList(effectsOfInstance(id, page)));
  return pageReply(call, { ...page, offset: 0 }, found);
};

const executionEffects: Operation<'continuity.effects'> = async (deps, call) => {
  const query = effectsOfExecution(call.params.id, listQuery(call).tenant_id);
  return jsonReply((await deps.reads.page(effectList(query))).text);
};

export function openContinuityFront({ offload }: Pick<FrontKernel, 'offload'>) {
  return {
    operations: {
      'instances.effects': instanceEffects,
      'continuity.effects': executionEffects,
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
