/** The public routes: liveness, readiness, and what the server says about itself. */

import { CONTRACT_VERSION, type Info, type NotReady } from '../../../schema/system.js';
import type { FrontOperations } from '../../http/operation.js';
import type { HttpReply } from '../../http/server.js';
import type { Gate } from '../gate.js';

export interface ProbeDeps {
  readonly gate: Gate;
  readonly version: string;
  readonly storageVersion: number;
  readonly schema: string;
  readonly envLabel: string | undefined;
  readonly envColor: string | undefined;
  readonly isClustered: boolean;
}

const OK: HttpReply = { status: 200, body: '{"status":"ok"}' };

/** These answer without key, tenant and database. */
export function createProbes(deps: ProbeDeps) {
  const info = (): Info => ({
    version: deps.version,
    storage_schema_version: deps.storageVersion,
    contract_schema_version: CONTRACT_VERSION,
    cell: deps.schema,
    cluster: deps.isClustered,
    env_label: deps.envLabel ?? null,
    env_color: deps.envColor ?? null,
    encryption_key: deps.gate.sealingKey,
  });
  return {
    'health.live': () => OK,
    'health.ready': () => readiness(deps.gate),
    info: () => ({ status: 200, body: JSON.stringify(info()) }),
  } satisfies Partial<FrontOperations>;
}

function readiness(gate: Gate): HttpReply {
  const refusal = gate.unreadiness();
  if (refusal === undefined) return OK;
  const { trouble } = gate;
  const body: NotReady = { error: refusal.message };
  // Not the message: it names tables and hosts, and anybody may ask.
  if (trouble !== undefined) {
    body.reason = { kind: trouble.kind };
    if (trouble.sqlState !== undefined) body.reason.sql_state = trouble.sqlState;
  }
  return {
    status: 503,
    body: JSON.stringify(body),
    headers: [
      ['retry-after', '1'],
      ['x-error-code', refusal.code],
    ],
  };
}
