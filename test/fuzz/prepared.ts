/**
 * Requests that must succeed, of the operations that chance hardly ever gets there: what they name has to be
 * in one certain state, or fits together in ways that no schema tells. Each is sent once.
 */

import { createHmac, randomUUID } from 'node:crypto';
import type { ApprovalLink } from '../../schema/approval.js';
import { type Json, step, type Tenant } from '../helpers/api.js';
import { carried, exported, importOf, newTransferKey, passageOf } from '../helpers/capsules.js';
import { expectStatus } from '../helpers/client.js';
import { continuityOf } from '../helpers/continuity.js';
import { pairOf, releaseIn } from '../helpers/releases.js';
import {
  makeApproval,
  makeEndpoint,
  makePendingStart,
  makeRateLimit,
  makeTrigger,
} from '../helpers/route-requests.js';

/** What a draft of the operation has instead. */
export interface Prepared {
  /** By its id in the document. */
  readonly operation: string;
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: readonly (readonly [name: string, text: string])[];
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

const OF_EACH = 2;
const FAR = '2199-01-01T00:00:00Z';
const SECRET = 'correct horse battery staple';

/** Each makes what its requests need, and nothing that another one needs. */
const MAKERS: readonly ((tenant: Tenant) => Promise<readonly Prepared[]>)[] = [
  approvals,
  triggers,
  instances,
  tasks,
  versions,
  releases,
  handoffs,
  rateLimits,
  pendingStarts,
  endpoints,
];

export async function prepared(tenant: Tenant): Promise<Prepared[]> {
  const found: Prepared[] = [];
  for (const make of MAKERS) {
    for (let count = 0; count < OF_EACH; count += 1) found.push(...(await make(tenant)));
  }
  return found;
}

/** The most usual form: the one that the id names, with a body. */
const on = (operation: string, id: string, body: unknown = {}): Prepared => {
  return { operation, params: { id }, body };
};

async function approvals(tenant: Tenant): Promise<Prepared[]> {
  const token = async () => {
    const id = await makeApproval(tenant);
    const link = await tenant.post<ApprovalLink>(`/approvals/${id}/link`, {});
    return { token: expectStatus(link, 201).url.split('/').at(-1) ?? '' };
  };
  return [
    on('approvalsAnswer', await makeApproval(tenant), { value: 'yes' }),
    on('approvalsLink', await makeApproval(tenant)),
    { operation: 'approvalsPage', params: await token() },
    { operation: 'approvalsAnswerByLink', params: await token(), body: { value: 'no' } },
  ];
}

async function triggers(tenant: Tenant): Promise<Prepared[]> {
  const sequence_name = `s-${randomUUID()}`;
  const { namespace } = tenant.definition([]);
  await tenant.sequence([step('b0', 'noop')], { name: sequence_name });
  const creation = (slug: string) => {
    return { slug, tenant_id: tenant.name, namespace, sequence_name, secret: SECRET };
  };
  const slug = `t-${randomUUID()}`;
  expectStatus(await tenant.post('/triggers', creation(slug)), 201);
  const body = { a: 1 };
  const named = { tenant_id: tenant.name, namespace: String(namespace), name: sequence_name };
  return [
    { operation: 'triggersCreate', body: creation(`t-${randomUUID()}`) },
    {
      operation: 'triggersUpdate',
      params: { slug: await makeTrigger(tenant, sequence_name) },
      body: { enabled: false },
    },
    { operation: 'triggersFire', params: { slug: await makeTrigger(tenant, sequence_name) }, body },
    { operation: 'triggersReceive', params: { id: slug }, body, headers: signatureOf(body) },
    { operation: 'sequencesByName', query: Object.entries(named) },
  ];
}

function signatureOf(body: Json): Record<string, string> {
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const nonce = randomUUID();
  const signed = `${timestamp}.${nonce}.${JSON.stringify(body)}`;
  const mac = createHmac('sha256', SECRET).update(signed).digest('base64url');
  const once = { 'x-trigger-timestamp': timestamp, 'x-trigger-nonce': nonce };
  return { ...once, 'x-engine-signature': `v1=${mac}` };
}

async function instances(tenant: Tenant): Promise<Prepared[]> {
  const failing = [step('b0', 'fail', { params: { message: 'no' } })];
  const later = await tenant.run([step('b0', 'noop')], { next_fire_at: FAR });
  const completed = await tenant.runUntil('completed', [step('b0', 'noop')]);
  const failed = await tenant.runUntil('failed', failing);
  return [
    { operation: 'instancesRetry', params: { id: await tenant.runUntil('failed', failing) } },
    on('instancesFork', completed, { from_block_id: 'b0' }),
    { operation: 'instancesResumeFrom', params: { id: failed, block_id: 'b0' }, body: {} },
    on('instancesPatchState', later, { state: 'paused' }),
  ];
}

async function tasks(tenant: Tenant): Promise<Prepared[]> {
  const claimed = async () => {
    const handler = `prepared-${randomUUID()}`;
    await tenant.run([step('b0', handler)]);
    return tenant.task(handler);
  };
  const ofOne = async (operation: string, more: Json = {}) => {
    const { id, worker_id, claim_epoch } = await claimed();
    return on(operation, id, { worker_id, claim_epoch, ...more });
  };
  const complete = { kind: 'complete', output: { a: 1 } };
  const ends: Json[] = [complete, { kind: 'fail', message: 'no' }, { kind: 'heartbeat' }];
  const held = await Promise.all(ends.map(claimed));
  const results = held.map(({ id, claim_epoch }, at) => {
    return { ...ends[at], task_id: id, claim_epoch };
  });
  const handler = `prepared-${randomUUID()}`;
  await tenant.run([step('b0', handler)]);
  const poll = { handlers: [handler], wait_ms: 1_000 };
  return [
    { operation: 'workersExchange', body: { worker_id: held[0]?.worker_id, results, poll } },
    await ofOne('workersComplete', { output: { a: 1 } }),
    await ofOne('workersFail', { message: 'no' }),
    await ofOne('workersHeartbeat'),
  ];
}

/** An instance for each way to another version, since each leaves none behind. */
async function versions(tenant: Tenant): Promise<Prepared[]> {
  const blocks = [step('b0', 'noop'), step('b1', 'noop')];
  const pair = async () => {
    const name = `s-${randomUUID()}`;
    const from = await tenant.sequence(blocks, { name });
    const to = await tenant.sequence(blocks, { name, version: 2 });
    return { from, to, id: await paused(tenant, from) };
  };
  const [direct, old, many, planned] = [await pair(), await pair(), await pair(), await pair()];
  await continuityOf(tenant).enrol(planned.id);
  const checkpoints = `/instances/${planned.id}/checkpoints`;
  const saved = await tenant.post<{ id: string }>(checkpoints, { checkpoint_data: { a: 1 } });
  const params = { id: planned.id, checkpoint_id: expectStatus(saved, 201).id };
  const older = { instance_id: old.id, target_sequence_id: old.to };
  const plan = { continuity_id: planned.id, to_sequence_id: planned.to, to_version: 2 };
  return [
    { operation: 'continuityCheckpoint', params },
    on('migrationsMigrate', direct.id, { to_sequence_id: direct.to }),
    { operation: 'sequencesMigrateInstance', body: older },
    on('sequencesMigrateInstances', many.from, { to_sequence_id: many.to }),
    { operation: 'migrationsPlan', body: plan },
  ];
}

async function paused(tenant: Tenant, sequence: string): Promise<string> {
  const id = await tenant.create(sequence, { next_fire_at: FAR });
  await tenant.move(id, 'paused');
  return id;
}

async function releases(tenant: Tenant): Promise<Prepared[]> {
  const ofOne = async (operation: string, state: 'ready' | 'canary', body?: Json) => {
    return { ...on(operation, (await releaseIn(tenant, state)).id), body };
  };
  return [
    { operation: 'releasesCreate', body: await pairOf(tenant) },
    { operation: 'sequencesCompare', body: await pairOf(tenant) },
    await ofOne('releasesCanary', 'ready', { percent: 50 }),
    await ofOne('releasesPause', 'canary'),
    await ofOne('releasesRollback', 'canary'),
    await ofOne('releasesPromote', 'canary', { force: true }),
  ];
}

/** One execution for each step of the way. */
async function handoffs(tenant: Tenant): Promise<Prepared[]> {
  const sequence = await tenant.sequence([step('b0', 'noop'), step('b1', 'noop')]);
  const passage = async () => passageOf(tenant, await paused(tenant, sequence));
  const [asked, open, sealed] = [await passage(), await passage(), await passage()];
  const [there, taken, gone] = [await passage(), await passage(), await passage()];
  const away = await gone.handoff(gone.id, gone.destination);
  const preview = await asked.preview(asked.id, asked.destination);
  const bundle = await exported(sealed, await sealed.handoff(sealed.id, sealed.destination));
  const arrival = await carried(there);
  const last = await carried(taken);
  const accepting = (instance: string) => ({ destination_instance_id: instance });
  const { id } = last.bundle.handoff;
  expectStatus(await taken.act(id, 'accept', accepting(last.instance)), 200);
  return [
    { operation: 'handoffsCreate', body: asked.creation(preview) },
    on('handoffsExport', (await open.handoff(open.id, open.destination)).id, {
      payload_key_base64: newTransferKey(),
      capture_checkpoint: true,
    }),
    { operation: 'capsulesImport', body: importOf(bundle) },
    on('handoffsAccept', arrival.bundle.handoff.id, accepting(arrival.instance)),
    on('handoffsResume', id),
    on('handoffsRevoke', (await exported(gone, away)).handoff.id),
  ];
}

async function rateLimits(tenant: Tenant): Promise<Prepared[]> {
  return [{ operation: 'rateLimitsDelete', params: { key: await makeRateLimit(tenant) } }];
}

async function pendingStarts(tenant: Tenant): Promise<Prepared[]> {
  const ofOne = async (operation: string) => {
    return { operation, params: { id: await makePendingStart(tenant) } };
  };
  return [
    await ofOne('pendingStartsGet'),
    await ofOne('pendingStartsDrop'),
    await ofOne('pendingStartsStart'),
  ];
}

async function endpoints(tenant: Tenant): Promise<Prepared[]> {
  const ofOne = async (operation: string) => {
    return { operation, params: { name: await makeEndpoint(tenant) } };
  };
  return [await ofOne('workerEndpointsGet'), await ofOne('workerEndpointsDelete')];
}
