/**
 * A complete request to each route of the table, for tests that go through all of them. A route whose
 * ids, body or query are not known here is an error, so that a new one cannot be left out.
 */

import { randomUUID } from 'node:crypto';
import { exampleOf } from '../../schema/examples.js';
import { CapsuleManifest } from '../../schema/handoff.js';
import type { Route, RouteId } from '../../schema/routes.js';
import type { Json, SharedApi, Tenant } from './api.js';
import { eventually, LONG_MS, NAMESPACE, newHandler, step } from './api.js';
import { expectStatus } from './client.js';
import { capabilities, continuityOf } from './continuity.js';

/** One thing of each kind that has an id, all of one tenant, or of nobody. */
export interface Things {
  readonly tenant: string;
  readonly sequence: string;
  readonly sequenceName: string;
  /** The next version of the sequence. */
  readonly candidate: string;
  /** From the sequence to its next version. */
  readonly release: string;
  /** Waits for a worker, and has a checkpoint. */
  readonly instance: string;
  /** Claimed by the worker `w-<tenant>`. */
  readonly task: string;
  readonly epoch: number;
  readonly handler: string;
  readonly schedule: string;
  /** Of a sequence that collects creations. */
  readonly pendingStart: string;
  readonly rateLimit: string;
  /** The id of a key. */
  readonly key: string;
  readonly subscription: string;
  /** A slug. */
  readonly trigger: string;
  readonly credential: string;
  readonly endpoint: string;
  /** A job that is done. */
  readonly bulkJob: string;
  readonly event: string;
  /** Open. */
  readonly approval: string;
  readonly webhook: string;
  readonly delivery: string;
  /** Of an instance that is paused; not started yet. */
  readonly execution: string;
  /** Of the execution. */
  readonly checkpoint: string;
  /** The receipt of the task. */
  readonly effect: string;
  /** Live for some minutes. */
  readonly runtime: string;
  /** Chooses the runtime for the execution. */
  readonly placement: string;
  readonly preview: string;
  /** To the runtime, as it was asked for. */
  readonly handoff: string;
  /** From the sequence to its next version, planned. */
  readonly migration: string;
}

/** A tenant that has one of everything. Webhooks belong to the server, and are those of nobody. */
export async function makeThings(api: Pick<SharedApi, 'root'>, tenant: Tenant): Promise<Things> {
  const handler = newHandler();
  const sequenceName = `s-${tenant.name}`;
  const worker = `w-${tenant.name}`;
  const sequence = await tenant.sequence([step('a', handler)], { name: sequenceName });
  const candidate = await tenant.sequence([step('a', handler)], { name: sequenceName, version: 2 });
  const instance = await tenant.create(sequence);
  const { id: task, claim_epoch: epoch } = await tenant.task(handler, { worker_id: worker });
  await made(tenant, `/instances/${instance}/checkpoints`, { checkpoint_data: 1 });
  await makeLimits(api, tenant.name);
  const minting = { tenant_id: tenant.name, capabilities: ['operator'] };
  const key = await api.root.post<{ id: string }>('/api-keys', minting);
  return {
    ...noThings(tenant.name),
    sequence,
    sequenceName,
    candidate,
    // A draft.
    release: await made(tenant, '/releases', sides({ sequence, candidate })),
    instance,
    task,
    epoch,
    handler,
    schedule: await makeSchedule(tenant, sequence),
    pendingStart: await makePendingStart(tenant),
    rateLimit: await makeRateLimit(tenant),
    subscription: await makeSubscription(tenant),
    trigger: await makeTrigger(tenant, sequenceName),
    credential: await makeCredential(tenant),
    endpoint: await makeEndpoint(tenant),
    bulkJob: await makeBulkJob(tenant),
    event: await makeEvent(tenant),
    approval: await makeApproval(tenant),
    key: expectStatus(key, 201).id,
    effect: task,
    ...(await makeContinuity(tenant, sequence, candidate)),
  };
}

/** Limits that nobody meets; resolves with the tenant. */
export async function makeLimits(api: Pick<SharedApi, 'root'>, tenant: string): Promise<string> {
  const limits = { schedules_max: 10_000 };
  expectStatus(await api.root.put(`/tenants/${tenant}/limits`, limits), 200);
  return tenant;
}

async function makeContinuity(tenant: Tenant, sequence: string, candidate: string) {
  const continuity = continuityOf(tenant);
  const execution = await tenant.create(sequence, { next_fire_at: '2099-01-01T00:00:00Z' });
  await tenant.move(execution, 'paused');
  await continuity.enrol(execution);
  const saved = { checkpoint_data: { safe_boundary: 'a' } };
  const checkpoint = await made(tenant, `/instances/${execution}/checkpoints`, saved);
  const migration = await tenant.post<{ id: string }>('/continuity/migrations/plan', {
    continuity_id: execution,
    to_sequence_id: candidate,
    to_version: 2,
  });
  const { runtime_id: runtime } = await continuity.runtime();
  const preview = await continuity.preview(execution, runtime);
  const handoff = await continuity.handoff(execution, runtime);
  return {
    execution,
    checkpoint,
    runtime,
    placement: preview.placement_decision_id,
    preview: preview.preview_sha256,
    handoff: handoff.id,
    migration: expectStatus(migration, 200).id,
  };
}

/** Posts the body; resolves with what the answer names the new thing by. */
async function made(tenant: Tenant, path: string, body: Json, name = 'id'): Promise<string> {
  return expectStatus(await tenant.post<Record<string, string>>(path, body), 201)[name] ?? '';
}

/** Never fires. */
export const makeSchedule = (tenant: Tenant, sequence: string) =>
  made(tenant, '/cron', yearly(sequence, tenant.name));

/** Of an instance that never starts by itself. */
export async function makePendingStart(tenant: Tenant): Promise<string> {
  const sequence = await tenant.sequence([step('a', 'noop')], { debounce: { wait_ms: LONG_MS } });
  const reply = await tenant.post<{ id: string }>('/instances', tenant.creation(sequence));
  return expectStatus(reply, 202).id;
}

export const makeSubscription = (tenant: Tenant) =>
  made(tenant, '/webhooks', { url: 'https://hooks.example/in' });

export const makeCredential = (tenant: Tenant) =>
  made(tenant, '/credentials', { id: `c-${randomUUID()}`, value: 'hush' });

export const makeTrigger = (tenant: Tenant, sequence: string) =>
  made(tenant, '/triggers', trigger(sequence, tenant.name), 'slug');

/** Nobody waits for it. */
export const makeEvent = (tenant: Tenant) =>
  made(tenant, '/events', sweptEvent(tenant.name), 'event_id');

async function makeBulkJob(tenant: Tenant): Promise<string> {
  const body = { filter: nowhere(tenant.name), state: 'cancelled' };
  const reply = await tenant.patch<{ id: string }>('/instances/bulk/state?async=true', body);
  return expectStatus(reply, 202).id;
}

/** What a person is asked, once the list shows it: the instance is created before it has come to its gate. */
export async function makeApproval(tenant: Tenant): Promise<string> {
  const instance = await tenant.run([step('gate', 'noop', { wait_for_input: {} })]);
  return eventually(async () => {
    const { body } = await tenant.get<{ items: { id: string; instance_id: string }[] }>(
      '/approvals?limit=1000',
    );
    const found = body.items.find(({ instance_id }) => instance_id === instance);
    if (found === undefined) throw new Error('nobody is asked');
    return found.id;
  });
}

export async function makeRateLimit(tenant: Tenant): Promise<string> {
  const key = `limit-${randomUUID()}`;
  expectStatus(await tenant.put(`/rate-limits/${key}`, { max_count: 1, window_seconds: 1 }), 200);
  return key;
}

/** Nothing is delivered to it. */
export async function makeEndpoint(tenant: Tenant): Promise<string> {
  const name = `e-${randomUUID()}`;
  expectStatus(await tenant.put(`/worker-endpoints/${name}`, endpointBody()), 200);
  return name;
}

const endpointBody = () => ({
  handlers: [newHandler()],
  url: 'https://tasks.example/in',
  secret: `secret-${randomUUID()}`,
  enabled: false,
});

/** Ids of the right form that nothing has. */
export function noThings(tenant: string): Things {
  const ids = IDS.map((kind) => [kind, randomUUID()] as const);
  return {
    ...(Object.fromEntries(ids) as Record<(typeof IDS)[number], string>),
    tenant,
    sequenceName: `nothing-${randomUUID()}`,
    epoch: 1,
    handler: newHandler(),
    rateLimit: `limit-${randomUUID()}`,
    key: `ak_${randomUUID().replaceAll('-', '')}`,
    trigger: `t-${randomUUID()}`,
    credential: `c-${randomUUID()}`,
    endpoint: `e-${randomUUID()}`,
    preview: DIGEST,
  };
}

/** Things whose ids are UUIDs. */
const IDS = [
  ...(['sequence', 'candidate', 'release', 'instance', 'task', 'schedule'] as const),
  ...(['pendingStart'] as const),
  ...(['subscription', 'bulkJob', 'event', 'approval', 'webhook', 'delivery'] as const),
  ...(['execution', 'checkpoint', 'effect', 'runtime', 'placement'] as const),
  ...(['handoff', 'migration'] as const),
];

/** Of the right form, and of nothing. */
const DIGEST = '0'.repeat(64);

export interface RouteRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly body: Json | undefined;
}

/** The parameter after a path that begins like this names a thing of this kind. */
const NAMED_BY_PATH: readonly (readonly [start: string, thing: keyof Things])[] = [
  ['/sequences/{id}', 'sequence'],
  ['/instances/bulk/jobs/{id}', 'bulkJob'],
  ['/instances/{id}', 'instance'],
  ['/workers/tasks/{id}', 'task'],
  ['/cron/{id}', 'schedule'],
  ['/pending-starts/{id}', 'pendingStart'],
  ['/releases/{id}', 'release'],
  ['/rate-limits/{key}', 'rateLimit'],
  ['/api-keys/{id}', 'key'],
  ['/tenants/{id}', 'tenant'],
  ['/credentials/{id}', 'credential'],
  ['/worker-endpoints/{name}', 'endpoint'],
  ['/triggers/{slug}', 'trigger'],
  ['/webhooks/outbox/{id}', 'webhook'],
  ['/webhooks/deliveries/{delivery_id}', 'delivery'],
  ['/webhooks/{id}', 'subscription'],
  ['/events/{id}', 'event'],
  ['/approvals/{id}', 'approval'],
  ['/continuity/executions/{id}', 'execution'],
  ['/continuity/effects/{id}', 'effect'],
  ['/continuity/migrations/{id}', 'migration'],
  ['/continuity/handoffs/{id}', 'handoff'],
];

/** Parameters that name a thing of this kind, wherever they are. */
const NAMED_BY_PARAMETER: Readonly<Record<string, keyof Things>> = { checkpoint_id: 'checkpoint' };

/** Parameters that are no ids of their own. */
const OTHER_PARAMETERS: Readonly<Record<string, string>> = {
  block_id: 'a',
  file: 'index.css',
  token: 'nothing',
};

/** Routes whose body or query names something. */
const NAMED_OTHERWISE: Readonly<Partial<Record<RouteId, keyof Things>>> = {
  'instances.slowest': 'sequence',
  'sequences.byName': 'sequenceName',
  'sequences.migrateInstance': 'instance',
  'instances.create': 'sequence',
  'instances.createBatch': 'sequence',
  'cron.create': 'sequence',
  'triggers.create': 'sequenceName',
  'releases.create': 'sequence',
  'sequences.compare': 'sequence',
  'continuity.create': 'instance',
  'migrations.plan': 'execution',
  'handoffs.create': 'placement',
};

/** Routes that make what they name if it is not there, or have nothing to tell of it. */
const NEEDS_NOTHING: ReadonlySet<RouteId> = new Set([
  'rateLimits.put',
  'workerEndpoints.put',
  'continuity.effects',
  'continuity.provenance',
  'continuity.verifyProvenance',
]);

const QUERIES: Readonly<Partial<Record<RouteId, (things: Things) => string>>> = {
  'sequences.byName': ({ sequenceName }) => `namespace=${NAMESPACE}&name=${sequenceName}`,
  'queues.series': ({ handler }) => `handler=${handler}`,
  'sequences.versions': ({ sequenceName }) => `namespace=${NAMESPACE}&name=${sequenceName}`,
  'instances.failureAttributes': () => 'failure_code=timeout&failure_reason=late',
  'instances.slowest': ({ sequence }) => `sequence_id=${sequence}`,
};

const definition = (_: Things, tenant: string): Json => ({
  tenant_id: tenant,
  namespace: NAMESPACE,
  name: `s-${randomUUID()}`,
  version: 1,
  blocks: [step('a', 'noop')],
});

const yearly = (sequence_id: string, tenant_id: string): Json => {
  return { tenant_id, namespace: NAMESPACE, sequence_id, cron_expr: '@yearly', enabled: false };
};

const trigger = (sequence_name: string, tenant_id: string): Json => {
  return { tenant_id, namespace: NAMESPACE, slug: `t-${randomUUID()}`, sequence_name };
};

const sweptEvent = (tenant_id: string): Json => {
  return { tenant_id, event_name: 'swept', producer_event_id: randomUUID() };
};

/** The tenant is the one that the body names, where it names one. */
const BODIES: Readonly<Partial<Record<RouteId, (things: Things, tenant: string) => Json>>> = {
  'sequences.create': definition,
  'sequences.validate': definition,
  'sequences.update': () => ({ hold: false }),
  'sequences.migrateInstance': ({ instance, sequence }) => {
    return { instance_id: instance, target_sequence_id: sequence };
  },
  'instances.create': creation,
  'instances.createBatch': (things, tenant) => ({ instances: [creation(things, tenant)] }),
  'instances.bulkState': (_, tenant) => ({ filter: nowhere(tenant), state: 'cancelled' }),
  'instances.bulkReschedule': (_, tenant) => ({ filter: nowhere(tenant), offset_secs: 1 }),
  'instances.batchAction': (_, tenant) => ({ filter: nowhere(tenant), action: 'retry' }),
  'instances.patchState': () => ({ state: 'waiting' }),
  'instances.patchContext': () => ({ context: { data: {} } }),
  // That of somebody who answers, which is more than some keys may send.
  'instances.signal': () => ({ signal_type: 'custom:human_input:swept' }),
  'approvals.answer': () => ({ value: 'yes' }),
  'approvals.link': () => ({ value: 'yes' }),
  'approvals.answerByLink': () => ({ value: 'yes' }),
  'instances.injectBlocks': () => ({ blocks: [step(`b-${randomUUID()}`, 'noop')] }),
  'instances.retry': () => ({ context: { again: true } }),
  'instances.resumeFrom': () => ({ signals: [] }),
  'instances.dryRun': definition,
  'instances.fork': () => ({ from_block_id: 'nowhere' }),
  'instances.saveCheckpoint': () => ({ checkpoint_data: 1 }),
  'instances.pruneCheckpoints': () => ({ keep: 1 }),
  'rateLimits.put': () => ({ max_count: 1, window_seconds: 1 }),
  // A poll makes its names known under its tenant, so they are nobody's.
  'workers.poll': () => ({ handler_name: 'swept', worker_id: 'sweeper' }),
  'workers.pollQueue': () => ({ handler_name: 'swept', worker_id: 'sweeper', queue_name: 'q' }),
  'workers.exchange': () => ({
    worker_id: 'sweeper',
    results: [{ kind: 'complete', task_id: randomUUID(), output: {} }],
    poll: { handlers: ['swept'] },
  }),
  // Of an epoch that nobody has: the task stays claimed.
  'workers.complete': ({ tenant }) => ({ ...staleClaim(tenant), output: {} }),
  'workers.fail': ({ tenant }) => ({ ...staleClaim(tenant), message: 'm' }),
  'workers.heartbeat': ({ tenant, epoch }) => ({ worker_id: `w-${tenant}`, claim_epoch: epoch }),
  'cron.create': ({ sequence }, tenant) => yearly(sequence, tenant),
  'cron.update': () => ({ enabled: false }),
  'cron.preview': () => ({ cron_expr: '@yearly' }),
  'cron.run': () => ({}),
  'webhooks.subscribe': (_, tenant) => ({ tenant_id: tenant, url: 'https://hooks.example/in' }),
  'webhooks.update': () => ({ events: ['instance.failed'] }),
  'credentials.create': (_, tenant) => ({ tenant_id: tenant, id: `c-${randomUUID()}`, value: 'v' }),
  'workerEndpoints.put': () => endpointBody(),
  'credentials.update': () => ({ description: 'of the sweeper' }),
  'triggers.create': ({ sequenceName }, tenant) => trigger(sequenceName, tenant),
  'triggers.update': () => ({ enabled: true }),
  'triggers.fire': () => ({}),
  'triggers.receive': () => ({}),
  'events.send': (_, tenant) => sweptEvent(tenant),
  'events.sendBatch': (_, tenant) => ({ events: [sweptEvent(tenant)] }),
  'releases.create': (things, tenant) => ({ tenant_id: tenant, ...sides(things) }),
  'releases.validate': () => ({ skip: true }),
  'releases.canary': () => ({ percent: 50 }),
  'releases.promote': () => ({ force: true }),
  'sequences.compare': (things, tenant) => ({ tenant_id: tenant, ...sides(things) }),
  'tenantLimits.put': () => ({ queue_depth_max: 1_000_000 }),
  'apiKeys.mint': (_, tenant) => ({ tenant_id: tenant, capabilities: ['worker'] }),
  'continuity.create': ({ instance, runtime }, tenant_id) => {
    return { tenant_id, instance_id: instance, runtime_id: runtime };
  },
  'continuity.claim': ({ execution }, tenant_id) => ({
    tenant_id,
    ownership_grant: {
      statement: JSON.stringify({ continuity_id: execution }),
      public_key: KEY_BASE64,
      signature: SIGNATURE_BASE64,
    },
  }),
  'continuity.appendProvenance': (_, tenant_id) => {
    return { tenant_id, kind: 'model_selected', payload_sha256: DIGEST };
  },
  'continuity.place': ofTenant,
  'continuity.preview': ({ runtime: destination_runtime_id }, tenant_id) => {
    return { tenant_id, destination_runtime_id };
  },
  // Nothing is said of an effect that is under way.
  'continuity.resolveEffect': (_, tenant_id) => ({ tenant_id, state: 'verified' }),
  'migrations.migrate': ({ candidate }) => ({ sequence_id: candidate, dry_run: true }),
  'sequences.migrateInstances': ({ candidate }) => ({ sequence_id: candidate, dry_run: true }),
  'migrations.plan': ({ execution, candidate }, tenant_id) => {
    return { tenant_id, continuity_id: execution, to_sequence_id: candidate, to_version: 2 };
  },
  'migrations.apply': ofTenant,
  'migrations.rollback': ofTenant,
  'runtimes.register': (_, tenant_id) => ({ tenant_id, capabilities: capabilities() }),
  'handoffs.create': ({ placement, preview, runtime }, tenant_id) => ({
    tenant_id,
    placement_decision_id: placement,
    preview_sha256: preview,
    destination_runtime_id: runtime,
  }),
  'handoffs.export': ofTenant,
  'handoffs.attach': ({ instance }, tenant_id) => ({
    tenant_id,
    destination_instance_id: instance,
    ...SEALED_BY_NOBODY,
    payload_key_base64: KEY_BASE64,
  }),
  'handoffs.accept': ({ instance: destination_instance_id }, tenant_id) => {
    return { tenant_id, destination_instance_id };
  },
  'handoffs.resume': ofTenant,
  'handoffs.reject': ofTenant,
  'handoffs.revoke': ofTenant,
  'capsules.import': ({ runtime }, tenant_id) => {
    return { tenant_id, destination_runtime_id: runtime, expected_epoch: 0, ...SEALED_BY_NOBODY };
  },
};

function ofTenant(_: Things, tenant_id: string): Json {
  return { tenant_id };
}

const KEY_BASE64 = Buffer.alloc(32).toString('base64');
const SIGNATURE_BASE64 = Buffer.alloc(64).toString('base64');
/** A capsule whose parts have the right form and fit nothing. */
const SEALED_BY_NOBODY: Json = {
  capsule: {
    manifest: exampleOf(CapsuleManifest),
    manifest_sha256: DIGEST,
    public_key: KEY_BASE64,
    signature: SIGNATURE_BASE64,
  },
  payload_base64: Buffer.alloc(64).toString('base64'),
};

function creation({ sequence }: Things, tenant: string): Json {
  const idempotency_key = `once-${sequence}`;
  return { sequence_id: sequence, tenant_id: tenant, namespace: NAMESPACE, idempotency_key };
}

function sides({ sequence, candidate }: Pick<Things, 'sequence' | 'candidate'>): Json {
  return { baseline_sequence_id: sequence, candidate_sequence_id: candidate };
}

const nowhere = (tenant: string): Json => ({ tenant_id: tenant, namespace: 'nowhere' });
const staleClaim = (tenant: string): Json => ({ worker_id: `w-${tenant}`, claim_epoch: 99 });

/** The kind of what the request needs to be there; undefined when it needs nothing. */
export function namedBy(route: Route): keyof Things | undefined {
  if (NEEDS_NOTHING.has(route.id)) return undefined;
  return namedByPath(route) ?? NAMED_OTHERWISE[route.id];
}

function namedByPath({ path }: Route): keyof Things | undefined {
  return NAMED_BY_PATH.find(([start]) => path.startsWith(start))?.[1];
}

/** Whether the body of the route names a tenant. */
export function namesTenant(route: Route): boolean {
  const body = route.body === undefined ? undefined : bodyOf(route, noThings('a'), 'NAMED');
  return JSON.stringify(body ?? '').includes('"NAMED"');
}

/**
 * @param things what the request names by ids
 * @param named the tenant that its body names, where it names one
 * @param queried the same for the query
 * @throws Error for a route that is not known here
 */
export function requestTo(
  route: Route,
  things: Things,
  named: string,
  queried: string,
): RouteRequest {
  const kind = namedByPath(route);
  const path = route.path.replace(/\{(\w+)\}/g, (text, name: string) => {
    const other = OTHER_PARAMETERS[name];
    const named = NAMED_BY_PARAMETER[name] ?? kind;
    if (other === undefined && named === undefined) {
      throw new Error(`${route.id}: what is ${text}?`);
    }
    return encodeURIComponent(other ?? String(things[named as keyof Things]));
  });
  const query = [
    QUERIES[route.id]?.(things),
    route.query?.properties?.tenant_id === undefined ? undefined : `tenant_id=${queried}`,
  ].filter((part) => part !== undefined);
  return {
    method: route.method,
    path: query.length === 0 ? path : `${path}?${query.join('&')}`,
    body: route.body === undefined ? undefined : bodyOf(route, things, named),
  };
}

function bodyOf(route: Route, things: Things, named: string): Json {
  const body = BODIES[route.id];
  if (body === undefined) throw new Error(`no body is known for ${route.id}`);
  return body(things, named);
}
