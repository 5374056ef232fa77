/** Runtimes: what each says of itself, for some minutes at a time. */

import { capabilitiesOf } from '../../src/core/continuity/capabilities.js';
import { invalid } from '../../src/errors.js';
import { Turn } from '../runtime/turn.js';
import type { ExecutionService, OperationReply } from './execution-service.js';
import type { Asked, ExecutionOperations } from './operation.js';

export const RUNTIME_OPERATIONS = {
  'runtimes.register': {
    // Whoever serves it: the statement keeps what was observed last, in whatever order two come.
    lineOf: async (_, { body }) => body.capabilities.runtime_id,
    serve: registerRuntime,
  },
} satisfies Partial<ExecutionOperations>;

async function registerRuntime(
  service: ExecutionService,
  { tenant, body }: Asked<'runtimes.register'>,
): Promise<OperationReply> {
  if (tenant === '') throw invalid('tenant_id is required');
  const parsed = capabilitiesOf(body.capabilities, service.now);
  if (!parsed.ok) throw invalid(parsed.message);
  const capabilities = parsed.value;
  const { runtime_id, observed_at, expires_at } = capabilities;
  const turn = new Turn();
  turn.put('runtime.set', `${tenant}:${runtime_id}`, {
    tenant_id: tenant,
    runtime_id,
    capabilities,
    observed_at,
    expires_at,
  });
  await service.commit(turn);
  return { status: 201, body: capabilities };
}
