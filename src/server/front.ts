/**
 * Puts the front together: every operation that its thread answers by itself, and the router over
 * all of them.
 */

import { statisticOperations } from '../../actors/activity/front/operations.js';
import { migrationOfMany } from '../../actors/bulk/front/migrate-many.js';
import { type BulkDeps, bulkOperations } from '../../actors/bulk/front/operations.js';
import { KeyOperations } from '../../actors/catalog/front/api-keys.js';
import { sequenceDeletion, sequenceOperations } from '../../actors/catalog/front/sequences.js';
import { effectOperations } from '../../actors/continuity/front/effects.js';
import { continuityOperations } from '../../actors/continuity/front/operations.js';
import { credentialOperations } from '../../actors/credential/front/operations.js';
import { eventOperations } from '../../actors/event/front/operations.js';
import type { Changes } from '../../actors/feed/front/changes.js';
import type { InstanceStreams } from '../../actors/feed/front/instance-stream.js';
import { approvalOperations } from '../../actors/instance/front/approvals.js';
import { instanceExplanation } from '../../actors/instance/front/explanation.js';
import { instanceTenant } from '../../actors/instance/front/instance-reads.js';
import { committedInstance, instanceOperations } from '../../actors/instance/front/instances.js';
import type { ManyInstances } from '../../actors/instance/front/many-instances.js';
import { RetryPreviews } from '../../actors/instance/front/retry-previews.js';
import { rateLimitOperations } from '../../actors/limits/front/rate-limits.js';
import { TenantLimitOperations } from '../../actors/limits/front/tenant-limits.js';
import { tenantOperations } from '../../actors/limits/front/tenants.js';
import { workerOperations } from '../../actors/queue/front/workers.js';
import { releaseDiffOperations } from '../../actors/release/front/diffs.js';
import { releaseOperations } from '../../actors/release/front/operations.js';
import { Validations } from '../../actors/release/front/validation.js';
import { cronOperations } from '../../actors/schedule/front/operations.js';
import type { ShardClient } from '../../actors/shard/client.js';
import type { Supervisor } from '../../actors/shard/supervisor.js';
import { triggerOperations } from '../../actors/trigger/front/operations.js';
import { webhookOperations } from '../../actors/webhook/front/operations.js';
import { webhookTenant } from '../../actors/webhook/front/reads.js';
import type { Crowd } from '../base/crowd.js';
import type { Logger } from '../base/log.js';
import type { OffloadPool } from '../base/offload-pool.js';
import { packageFile } from '../base/package-files.js';
import { realClock } from '../base/real-clock.js';
import type { UnixMs } from '../base/time.js';
import type { Membership } from '../cluster/membership.js';
import { cellOperations } from '../cluster/operations.js';
import type { Keyring } from '../core/continuity/keys.js';
import { MIGRATIONS_DIR, readMigrations } from '../db/migrate.js';
import { rowOf } from '../db/reads/lookup.js';
import type { Reads } from '../db/reads.js';
import type { AddressRequests } from '../http/address-requests.js';
import { Admission } from '../http/admission.js';
import { createAuth } from '../http/auth.js';
import type { Connections } from '../http/connections.js';
import { createPages } from '../http/dashboard.js';
import type { Gate } from '../http/gate.js';
import { insecureGuard } from '../http/insecure-guard.js';
import type { KeyRegistry } from '../http/key-registry.js';
import { frontBodies } from '../http/operation.js';
import { RequestWatch } from '../http/request-watch.js';
import { createRouter, type RouterRows } from '../http/router.js';
import type { HttpHandler } from '../http/server.js';
import type { TenantLimitRegistry } from '../http/tenant-limits.js';
import { Metrics } from '../metrics/exposition.js';
import { Sampler } from '../metrics/sampler.js';
import type { Tracer } from '../metrics/tracing.js';
import type { Config } from './config.js';
import { createDocs } from './operations/docs.js';
import { sampleRows } from './operations/metric-reads.js';
import { metricsOperations } from './operations/metrics.js';
import { createProbes } from './operations/system.js';
import { whoami } from './operations/whoami.js';

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
    rows: routerRows(reads),
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
      ...bulkOperations({
        clock: realClock,
        begin: options.beginBulkJob,
        changeMany: (tenant, ids, change) => many.change(tenant, ids, change),
        repeating: (tenant, ids) => previews.repeating(tenant, ids),
        orphans: (tenant, ids) => previews.orphans(tenant, ids),
      }),
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

function routerRows(reads: Reads): RouterRows {
  return {
    committedInstance: (tenant, id) => committedInstance(reads.of(tenant), tenant, id),
    instanceIsThere: (tenant, id) =>
      rowOf(reads.of(tenant), instanceTenant, 'instance', id, tenant),
    tenantsOfWebhook: async (id) =>
      (await webhookTenant.rows(reads.of(''), id)).map(({ tenant_id }) => tenant_id),
  };
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
