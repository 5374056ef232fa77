/** Runtimes: what each says of itself, for some minutes at a time (05 §4). */

import { parseCapabilities } from '../../src/core/continuity/capabilities.js';
import type { JsonValue } from '../../src/core/json.js';
import { invalid } from '../../src/errors.js';
import { Turn } from '../turn.js';
import type { DeskReply } from './desk.js';
import type { Asked, Office, Services } from './office.js';

export const RUNTIME_SERVICES = {
  'runtimes.register': {
    ledBy: (body) => body.capabilities.runtime_id,
    // The statement itself keeps what was observed last, in whatever order two of them come.
    isServedAnywhere: true,
    serve: registerRuntime,
  },
} satisfies Services;

async function registerRuntime(
  { desk }: Office,
  { tenant, body }: Asked<'runtimes.register'>,
): Promise<DeskReply> {
  if (tenant === '') throw invalid('tenant_id is required');
  const parsed = parseCapabilities(body.capabilities as unknown as JsonValue, desk.now);
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
  await desk.commit(turn);
  return { status: 201, body: capabilities };
}
