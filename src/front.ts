/**
 * Puts the front together: every operation that its thread answers by itself, and the router over
 * all of them.
 */

import type { OffloadPool } from '../actors/runtime/offload.js';
import type { ShardClient } from '../actors/shard/client.js';
import type { Supervisor } from '../actors/shard/supervisor.js';
import { Admission } from './admission.js';
import type { Crowd } from './base/crowd.js';
import type { Logger } from './base/log.js';
import { packageFile } from './base/package-files.js';
import { realClock } from './base/real-clock.js';
import type { UnixMs } from './base/time.js';
import type { Membership } from './cluster/membership.js';
import type { Config } from './config.js';
import type { Keyring } from './core/continuity/keys.js';
import { MIGRATIONS_DIR, readMigrations } from './db/migrate.js';
import { sampleRows } from './db/reads/metric-reads.js';
import type { Reads } from './db/reads.js';
import type { AddressRequests } from './http/address-requests.js';
import { createAuth } from './http/auth.js';
import type { Connections } from './http/connections.js';
import { createPages } from './http/dashboard.js';
import type { Gate } from './http/gate.js';
import { insecureGuard } from './http/insecure-guard.js';
import type { KeyRegistry } from './http/key-registry.js';
import { approvalOperations } from './http/operations/approvals.js';
import { type BulkDeps, bulkOperations } from './http/operations/bulk.js';
import { cellOperations } from './http/operations/cells.js';
import type { Changes } from './http/operations/changes.js';
import { continuityOperations } from './http/operations/continuity.js';
import { credentialOperations } from './http/operations/credentials.js';
import { cronOperations } from './http/operations/cron.js';
import { createDocs } from './http/operations/docs.js';
import { effectOperations } from './http/operations/effects.js';
import { eventOperations } from './http/operations/events.js';
import { instanceExplanation } from './http/operations/explanation.js';
import { instanceOperations } from './http/operations/instances.js';
import { KeyOperations } from './http/operations/keys.js';
import { metricsOperations } from './http/operations/metrics.js';
import { migrationOfMany } from './http/operations/migrate-many.js';
import { frontBodies } from './http/operations/operation.js';
import { rateLimitOperations } from './http/operations/rate-limits.js';
import { releaseDiffOperations } from './http/operations/release-diffs.js';
import { Validations } from './http/operations/release-validation.js';
import { releaseOperations } from './http/operations/releases.js';
import { RetryPreviews } from './http/operations/retry-previews.js';
import { sequenceDeletion, sequenceOperations } from './http/operations/sequences.js';
import { statisticOperations } from './http/operations/statistics.js';
import type { InstanceStreams } from './http/operations/stream.js';
import { createProbes } from './http/operations/system.js';
import { TenantLimitOperations } from './http/operations/tenant-limits.js';
import { tenantOperations } from './http/operations/tenants.js';
import { triggerOperations } from './http/operations/triggers.js';
import { webhookOperations } from './http/operations/webhooks.js';
import { whoami } from './http/operations/whoami.js';
import { workerOperations } from './http/operations/workers.js';
import { RequestWatch } from './http/request-watch.js';
import { createRouter } from './http/router.js';
import type { HttpHandler } from './http/server.js';
import type { ManyInstances } from './many-instances.js';
import { Sampler } from './metrics/sampler.js';
import { Metrics } from './metrics.js';
import type { TenantLimitRegistry } from './tenant-limits.js';
import type { Tracer } from './tracing.js';

export interface FrontOptions {
  readonly config: Config;
  /** The root key; undefined: every caller counts as root. */
  readonly apiKey: string | undefined;
  readonly version: string;
  /** The schema with the tables of this engine. */
  readonly cell: string;
  readonly log: Logger;
  /** Engine time. */
  readonly now: () => UnixMs;
  readonly gate: Gate;
  readonly client: ShardClient;
  /** Told whose requests come. */
  readonly crowd: Crowd;
  readonly connections: Connections;
  readonly requests: AddressRequests;
  readonly reads: Reads;
  readonly keys: KeyRegistry;
  readonly limits: TenantLimitRegistry;
  readonly streams: InstanceStreams;
  readonly changes: Changes;
  /** In a cluster. */
  readonly membership: Membership | undefined;
  readonly many: ManyInstances;
  readonly beginBulkJob: BulkDeps['begin'];
  readonly onSequenceDeleted: () => void;
  /** Undefined without an encryption key. */
  readonly keyring: Keyring | undefined;
  readonly offload: OffloadPool;
  /** What the threads count in. */
  readonly metrics: Supervisor['metrics'];
  readonly tracer: Tracer | undefined;
}

export interface Front {
  readonly handler: HttpHandler;
  /** Gives up what takes long and is to be told to the shards, while these still listen. */
  drain(): Promise<void>;
  /** Ends what runs beside the requests. */
  stop(): Promise<void>;
}

export function createFront(options: FrontOptions): Front {
  const { config, version, log, now, gate, client, reads, keys, streams, changes, many } = options;
  const keyOperations = new KeyOperations({ registry: keys, client, clock: realClock, log });
  const offload = options.offload.through();
  const bodies = frontBodies(offload);
  const { unpoliciedRetry } = config;
  const residence = options.membership?.residence;
  const validations = new Validations({
    client,
    pool: options.offload,
    unpoliciedRetry,
    clock: realClock,
    log,
  });
  const admission = new Admission({
    limits: options.limits,
    reads,
    offload,
    monotonic: realClock.monotonic,
  });
  const tenantLimits = new TenantLimitOperations({
    client,
    registry: options.limits,
    reads,
    clock: realClock,
  });
  const previews = new RetryPreviews(client);
  const handler = createRouter({
    gate,
    authorise: createAuth({
      apiKey: options.apiKey,
      requireTenantHeader: config.requireTenantHeader,
      protectDocs: config.protectDocs,
      keys,
    }),
    admission,
    guard: config.insecureAuth
      ? insecureGuard({ isAnywhere: config.insecureAuthAnywhere, corsOrigins: config.corsOrigins })
      : undefined,
    keys,
    residence,
    ...bodies,
    client,
    crowd: options.crowd,
    pages: createPages(config.isUiServed ? packageFile('dist/ui') : undefined),
    operations: {
      ...createProbes({
        gate,
        version,
        storageVersion: readMigrations(MIGRATIONS_DIR).at(-1)!.version,
        cell: options.cell,
        envLabel: config.envLabel,
        envColor: config.envColor,
        isClustered: options.membership !== undefined,
      }),
      ...createDocs({ version, isProtected: config.protectDocs }),
      ...createMetrics(options),
      ...instanceOperations,
      'instances.explain': instanceExplanation(previews),
      ...approvalOperations(client, {
        publicUrl: config.publicUrl,
        isInCluster: options.membership !== undefined,
      }),
      ...effectOperations,
      ...bulkOperations({ clock: realClock, begin: options.beginBulkJob }),
      'sequences.migrateInstances': migrationOfMany({ client, clock: realClock }),
      ...streams.operations,
      ...sequenceOperations,
      'sequences.delete': sequenceDeletion(client, options.onSequenceDeleted),
      ...workerOperations,
      ...rateLimitOperations,
      ...credentialOperations,
      ...cronOperations,
      ...statisticOperations({ client, shards: config.shards }),
      ...continuityOperations(offload),
      ...releaseOperations,
      ...releaseDiffOperations(offload),
      ...validations.operations,
      ...triggerOperations(client, bodies, admission),
      ...webhookOperations(config.webhookSecret !== undefined),
      ...eventOperations(client),
      ...changes.operations,
      ...keyOperations.operations,
      whoami: whoami(config),
      ...tenantOperations,
      ...cellOperations(options.cell, options.membership),
      ...tenantLimits.operations,
    },
    front: {
      reads,
      now,
      keyring: options.keyring,
      changeMany: (tenant, ids, change) => many.change(tenant, ids, change),
      repeating: (tenant, ids) => previews.repeating(tenant, ids),
      orphans: (tenant, ids) => previews.orphans(tenant, ids),
      admitTenant: (tenant) => residence?.admit(tenant, true),
    },
    protectDocs: config.protectDocs,
    watch: new RequestWatch({ log, monotonic: realClock.monotonic, tracer: options.tracer }),
    log,
  });
  const stop = async () => {
    keyOperations.stop();
    tenantLimits.stop();
    await validations.stop();
  };
  return { handler, drain: () => validations.stop(), stop };
}

function createMetrics(options: FrontOptions) {
  const {
    gate,
    client,
    connections,
    requests,
    reads,
    streams,
    changes,
    now,
    metrics: memory,
    membership,
  } = options;
  const isServing = () => gate.isDatabaseUp;
  const look = () => sampleRows(reads, now());
  const sampler = new Sampler({ clock: realClock, isServing, look });
  const front = {
    engine_ready: () => (gate.unreadiness() === undefined ? 1 : 0),
    engine_database_up: () => (isServing() ? 1 : 0),
    engine_clock_skew_seconds: () => (now() - realClock.now()) / 1_000,
    engine_connections: () => connections.open,
    engine_connections_refused_total: () => connections.refused,
    engine_requests_refused_total: () => requests.refused,
    engine_requests_in_flight: () => client.inFlight,
    engine_polls_in_flight: () => client.pollsInFlight,
    engine_streams_open: () => streams.openCount + changes.openCount,
    engine_reads_active: () => reads.active,
    engine_reads_waiting: () => reads.waiting,
    engine_work_under_way_bytes: () => client.workUnderWay,
    engine_instance_reads_kept_total: () => client.readsKept,
    engine_requests_misdirected_total: () => membership?.residence.refused ?? 0,
    engine_cluster_directory_up: () => (membership === undefined || membership.isUp ? 1 : 0),
    engine_cluster_tenants: () => membership?.residence.size ?? 0,
    engine_cluster_held_tenants: () => membership?.residence.heldCount ?? 0,
    engine_cluster_held_seconds: () => (membership?.residence.heldMs ?? 0) / 1_000,
    engine_cluster_split_tenants: () => membership?.splitCount ?? 0,
  };
  const labels = { version: options.version, cell: options.cell };
  return metricsOperations(new Metrics({ memory, front, rows: sampler.gauges, labels }), sampler);
}
