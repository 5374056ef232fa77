/**
 * The front thread: its rooms, and the router over their routes. Events such as start, stop, or the arrival of a
 * tenant are passed to the rooms in the order of their list.
 */

import { instanceTenant } from '../../actors/instance/front/instance-reads.js';
import { committedInstance } from '../../actors/instance/front/instances.js';
import type { ShardClient } from '../../actors/shard/client.js';
import type { Supervisor } from '../../actors/shard/supervisor.js';
import { webhookTenant } from '../../actors/webhook/front/operations.js';
import type { Clock } from '../base/clock.js';
import { LIMITS } from '../base/limits.js';
import type { Logger } from '../base/log.js';
import type { OffloadPool } from '../base/offload-pool.js';
import { packageFile } from '../base/package-files.js';
import type { TenantActivity } from '../base/quota/tenant-activity.js';
import { realClock } from '../base/real-clock.js';
import { joined, withParts } from '../base/rooms.js';
import type { UnixMs } from '../base/time.js';
import type { Keyring } from '../core/sealing/keys.js';
import { rowOf } from '../db/reads/lookup.js';
import type { Reads } from '../db/reads.js';
import { createAuth } from '../http/auth.js';
import type { AddressRequests, Connections } from '../http/connections.js';
import type { FrontKernel, FrontRoom } from '../http/front-room.js';
import { insecureGuard } from '../http/insecure-guard.js';
import { KeyRegistry } from '../http/key-registry.js';
import { type FrontOperations, frontBodies } from '../http/operation.js';
import type { RouterRows } from '../http/pipeline/context.js';
import { RequestWatch } from '../http/request-watch.js';
import { createRouter } from '../http/router.js';
import type { HttpHandler } from '../http/server.js';
import type { Tracer } from '../metrics/tracing.js';
import type { Config } from './config.js';
import { openFrontRooms } from './front-rooms.js';
import type { Gate } from './gate.js';
import { createPages } from './operations/dashboard.js';
import type { PlacementRoom } from './placement.js';

export interface FrontOptions {
  readonly config: Config;
  /** The root key; undefined: every caller is root. */
  readonly apiKey: string | undefined;
  readonly version: string;
  readonly schema: string;
  readonly log: Logger;
  readonly now: () => UnixMs;
  readonly clock: Clock;
  readonly gate: Gate;
  readonly client: ShardClient;
  readonly activity: TenantActivity;
  readonly connections: Connections;
  readonly requests: AddressRequests;
  readonly reads: Reads;
  readonly placement: PlacementRoom;
  /** Undefined without an encryption key. */
  readonly keyring: Keyring | undefined;
  readonly offload: OffloadPool;
  readonly metrics: Supervisor['metrics'];
  readonly tracer: Tracer | undefined;
}

export class Front {
  readonly handler: HttpHandler;
  /** The position up to which the change feed may be read. */
  readonly watermark: ReturnType<typeof openFrontRooms>['watermark'];
  readonly #rooms: readonly FrontRoom[];

  constructor(options: FrontOptions) {
    const kernel = kernelOf(options);
    const { rooms, watermark, admission } = openFrontRooms(kernel, options);
    this.#rooms = withParts<FrontRoom>(rooms);
    this.watermark = watermark;
    const { config, apiKey, reads, now, keyring, log, tracer } = options;
    const { bodies, keys, placement } = kernel;
    const { requireTenantHeader, protectDocs, corsOrigins, insecureAuthAnywhere } = config;
    this.handler = createRouter({
      ...bodies,
      ...{ gate: options.gate, client: options.client, activity: options.activity, log },
      ...{ admission, keys, placement, protectDocs },
      authorise: createAuth({ apiKey, requireTenantHeader, protectDocs, keys }),
      guard: config.insecureAuth
        ? insecureGuard({ isAnywhere: insecureAuthAnywhere, corsOrigins })
        : undefined,
      rows: routerRows(reads),
      pages: createPages(config.isUiServed ? packageFile('dist/ui') : undefined),
      operations: joined<FrontOperations>(this.#rooms.map((room) => room.operations)),
      front: { reads, now, keyring, admitTenant: (tenant) => placement?.admit(tenant, true) },
      watch: new RequestWatch({ log, monotonic: realClock.monotonic, tracer }),
    });
  }

  async prepare(): Promise<void> {
    for (const room of this.#rooms) await room.prepare?.();
  }

  start(): void {
    for (const room of this.#rooms) room.start?.();
  }

  wake(): void {
    for (const room of this.#rooms) room.wake?.();
  }

  eventsFired(): void {
    for (const room of this.#rooms) room.eventsFired?.();
  }

  async tenantComes(tenant: string, stampsFrom: UnixMs): Promise<void> {
    for (const room of this.#rooms) await room.tenantComes?.(tenant, stampsFrom);
  }

  async drain(): Promise<void> {
    await Promise.all(this.#rooms.map(async (room) => room.drain?.()));
  }

  async stop(): Promise<void> {
    await Promise.all(this.#rooms.map(async (room) => room.stop?.()));
  }
}

function kernelOf(options: FrontOptions): FrontKernel<ShardClient> {
  const { config, log, now, gate, client, reads, placement, offload: offloadPool } = options;
  const offload = offloadPool.through();
  return {
    client,
    reads,
    clock: options.clock,
    now,
    log,
    offload,
    offloadPool,
    bodies: frontBodies(offload),
    keys: new KeyRegistry({ now, keysMax: LIMITS.apiKeysMax, refusal: () => gate.refusal() }),
    placement: placement.placement,
    settings: config,
  };
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
