/** The public routes: liveness, readiness, and what the server says about itself. */

import type { RouteId } from '../../../schema/routes.js';
import { CONTRACT_VERSION, type Info } from '../../../schema/system.js';
import type { Gate } from '../gate.js';
import type { HttpReply } from '../server.js';

export interface ProbeDeps {
  readonly gate: Gate;
  readonly version: string;
  readonly storageVersion: number;
}

const OK: HttpReply = { status: 200, body: '{"status":"ok"}' };

/** These answer without key, tenant and database (spec/06 row 33). */
export function createProbes(deps: ProbeDeps): Readonly<Partial<Record<RouteId, () => HttpReply>>> {
  const info: Info = {
    version: deps.version,
    storage_schema_version: deps.storageVersion,
    contract_schema_version: CONTRACT_VERSION,
    env_label: null,
    env_color: null,
  };
  const infoText = JSON.stringify(info);
  return {
    'health.live': () => OK,
    'health.ready': () => readiness(deps.gate),
    info: () => ({ status: 200, body: infoText }),
  };
}

function readiness(gate: Gate): HttpReply {
  const refusal = gate.unreadiness();
  if (refusal === undefined) return OK;
  return {
    status: 503,
    body: JSON.stringify({ error: refusal.message }),
    headers: [
      ['retry-after', '1'],
      ['x-error-code', refusal.code],
    ],
  };
}
