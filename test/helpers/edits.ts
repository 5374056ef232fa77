/** What is done to single instances beside their normal course, as a tenant asks for it. */

import type {
  BlocksInjected,
  InstanceForked,
  InstanceMigrated,
  ResumedFrom,
} from '../../schema/edits.js';
import type { Json, SharedApi, Tenant } from './api.js';
import { expectStatus } from './client.js';
import { column } from './columns.js';
import { withAdmin } from './database.js';

/** These require the success status. */
export async function inject(
  tenant: Tenant,
  id: string,
  blocks: readonly Json[],
  more: Json = {},
): Promise<BlocksInjected> {
  const path = `/instances/${id}/inject-blocks`;
  return expectStatus(await tenant.post<BlocksInjected>(path, { blocks, ...more }), 200);
}

export async function resumeFrom(
  tenant: Tenant,
  id: string,
  block: string,
  body?: Json,
): Promise<ResumedFrom> {
  const path = `/instances/${id}/resume-from/${encodeURIComponent(block)}`;
  return expectStatus(await tenant.post<ResumedFrom>(path, body), 200);
}

export async function fork(
  tenant: Tenant,
  id: string,
  from: string,
  more: Json = {},
): Promise<InstanceForked> {
  const body = { from_block_id: from, ...more };
  return expectStatus(await tenant.post<InstanceForked>(`/instances/${id}/fork`, body), 201);
}

export async function migrate(
  tenant: Tenant,
  id: string,
  sequence: string,
): Promise<InstanceMigrated> {
  const body = { instance_id: id, target_sequence_id: sequence };
  return expectStatus(await tenant.post<InstanceMigrated>(MIGRATE, body), 200);
}

export const MIGRATE = '/sequences/migrate-instance';

/** The types of the audit's entries, oldest first, without changes of state. */
export async function auditOf(tenant: Tenant, id: string): Promise<string[]> {
  const reply = await tenant.get<{ event_type: string }[]>(`/instances/${id}/audit`);
  return expectStatus(reply, 200)
    .map((entry) => entry.event_type)
    .filter((type) => type !== 'state_transition')
    .reverse();
}

/** The types of the signals that are stored of an instance, in their order. */
export async function signalsOf({ database }: SharedApi, id: string): Promise<string[]> {
  const text = 'select signal_type from signals where instance_id = $1 order by seq';
  const { rows } = await withAdmin(database.connectionString, (admin) =>
    admin.query<{ signal_type: string }>(text, [id]),
  );
  return column(rows, 'signal_type');
}
