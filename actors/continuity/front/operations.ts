/**
 * Reads of executions and their locations, checkpoints, effects and provenance, and of runtimes, handoffs and
 * migrations. Ids of another tenant are not found; their provenance and effects are empty lists.
 */

import { invalid, notFound, unavailable } from '../../../src/base/errors.js';
import type { JsonValue } from '../../../src/base/json.js';
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

const chainOf = (call: TenantCall & CallById) =>
  provenanceList({ continuity_id: call.params.id, tenant_id: tenantOf(call) });

/** Fits the longest chain of callers, with the longest names. */
const CHAIN_BYTES_MAX = 16 * 1024 * 1024;

export function openContinuityFront({ offload }: Pick<FrontKernel, 'offload'>) {
  return {
    operations: {
      'instances.effects': async ({ reads }, call) => {
        const { tenant_id: tenant = '', ...page } = listQuery(call);
        const { id = '' } = call.params;
        await rowOf(reads, instanceTenant, 'instance', id, tenant);
        const found = await reads.page(effectList(effectsOfInstance(id, page)));
        return pageReply(call, { ...page, offset: 0 }, found);
      },
      'continuity.effects': async ({ reads }, call) => {
        const query = effectsOfExecution(call.params.id, listQuery(call).tenant_id);
        return jsonReply((await reads.page(effectList(query))).text);
      },
      'continuity.get': async (deps, call) =>
        jsonReply(
          JSON.stringify(executionView(await named(deps, call, executionById, 'execution'))),
        ),
      'continuity.locations': async (deps, call) => {
        const { continuity_id } = await named(deps, call, executionById, 'execution');
        return jsonReply((await deps.reads.page(locationList({ continuity_id }))).text);
      },
      'continuity.checkpoints': async (deps, call) => {
        const { continuity_id: id } = await named(deps, call, executionById, 'execution');
        return jsonReply(JSON.stringify(await boundaries(deps.reads, id, call.query.limit)));
      },
      'continuity.checkpoint': async (deps, call) => {
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
      },
      'continuity.provenance': async ({ reads }, call) =>
        jsonReply((await reads.page(chainOf(call))).text),
      /** Without an encryption key no signature is trusted. */
      'continuity.verifyProvenance': async ({ reads, keyring }, call) => {
        const { text } = await reads.page({ ...chainOf(call), bytesMax: CHAIN_BYTES_MAX });
        const trusted = [...(keyring?.trusted ?? [])];
        const chain = { text, trusted, expectedHead: call.query.expected_head };
        return jsonReply(await offload.run(call.tenant, VERIFY_PROVENANCE, chain));
      },
      'runtimes.list': async ({ reads, now }, call) => {
        const tenant = tenantOf(call);
        if (tenant === '') throw invalid('tenant_id is required');
        return jsonReply((await reads.page(runtimeList(tenant, now()))).text);
      },
      'handoffs.get': async (deps, call) => {
        const row = await named(deps, call, handoffById, 'handoff');
        const place = [row.continuity_id, row.expected_epoch + 1];
        const destination =
          row.state === 'resumed' ? await stateAt.row(deps.reads, ...place) : undefined;
        return jsonReply(JSON.stringify(handoffView(row, deps.now(), destination?.state)));
      },
      'migrations.get': async (deps, call) => {
        const row = await named(deps, call, migrationById, 'migration');
        const view = migrationView(row, deps.keyring?.opening ?? []);
        if (view !== undefined) return jsonReply(JSON.stringify(view));
        const why = 'no key of the server opens what is sealed of the migration';
        throw unavailable('ENG_NO_KEYS', why);
      },
    },
  } satisfies FrontRoom;
}
