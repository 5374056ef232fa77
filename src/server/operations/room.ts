/**
 * Information about the server: its state, the rights of the caller (docs/authorization.md), the OpenAPI document,
 * and gauges. Served in every state of the engine.
 */

import type { WhoAmI } from '../../../schema/api-key.js';
import { CAPABILITIES } from '../../../schema/route-row.js';
import { CONTRACT_VERSION, type Info, type NotReady } from '../../../schema/system.js';
import { realClock } from '../../base/real-clock.js';
import { isoTimeOrNull } from '../../base/time.js';
import { MIGRATIONS_DIR, readMigrations } from '../../db/migrate.js';
import type { FrontRoom } from '../../http/front-room.js';
import { capabilitiesOf } from '../../http/key-registry.js';
import { jsonReply, type Operation } from '../../http/operation.js';
import type { HttpReply } from '../../http/server.js';
import type { Config } from '../config.js';
import type { FrontOptions } from '../front.js';
import type { Gate } from '../gate.js';
import { createDocs } from './docs.js';

export function openServer(options: FrontOptions) {
  const { config, gate, version } = options;
  return {
    operations: {
      'health.live': () => OK,
      'health.ready': () => readiness(gate),
      info: infoOf(options),
      ...createDocs(version, config.protectDocs),
      whoami: whoami(config),
    },
    gauges: gaugesOf(options),
  } satisfies FrontRoom;
}

const OK: HttpReply = { status: 200, body: '{"status":"ok"}' };

function readiness(gate: Gate): HttpReply {
  const refusal = gate.unreadiness();
  if (refusal === undefined) return OK;
  const { trouble } = gate;
  const body: NotReady = { error: refusal.message };
  // Without the message, which names tables and hosts: the route is public.
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

function infoOf({ config, gate, version, schema, placement }: FrontOptions): () => HttpReply {
  const storageVersion = readMigrations(MIGRATIONS_DIR).at(-1)!.version;
  const info = (): Info => ({
    version,
    storage_schema_version: storageVersion,
    contract_schema_version: CONTRACT_VERSION,
    cell: schema,
    cluster: placement.placement !== undefined,
    env_label: config.envLabel ?? null,
    env_color: config.envColor ?? null,
    ui_links: [...config.uiLinks],
    encryption_key: gate.sealingKey,
  });
  return () => jsonReply(JSON.stringify(info()));
}

function whoami({ insecureAuth, requireTenantHeader }: Config): Operation<'whoami'> {
  const shared = { is_insecure: insecureAuth, requires_tenant: requireTenantHeader };
  return async (_, { key }) => {
    const shown = key && {
      id: key.id,
      name: key.name,
      groups: [...key.groups],
      expires_at: isoTimeOrNull(key.expiresAt ?? null),
    };
    const answer: WhoAmI = {
      is_root: key === undefined,
      ...shared,
      tenant_id: key?.tenant ?? null,
      capabilities: [...(key === undefined ? CAPABILITIES : capabilitiesOf(key.capabilities))],
      key: shown ?? null,
    };
    return jsonReply(JSON.stringify(answer));
  };
}

function gaugesOf({ gate, now, connections, requests, client, reads }: FrontOptions) {
  return {
    engine_ready: () => (gate.unreadiness() === undefined ? 1 : 0),
    engine_database_up: () => (gate.isDatabaseUp ? 1 : 0),
    engine_clock_skew_seconds: () => (now() - realClock.now()) / 1_000,
    engine_connections: () => connections.open,
    engine_connections_refused_total: () => connections.refused,
    engine_requests_refused_total: () => requests.refused,
    engine_requests_in_flight: () => client.inFlight,
    engine_polls_in_flight: () => client.pollsInFlight,
    engine_reads_active: () => reads.active,
    engine_reads_waiting: () => reads.waiting,
    engine_work_under_way_bytes: () => client.workInProgress,
    engine_instance_reads_kept_total: () => client.readsKept,
  };
}
