/**
 * The actions of people and keys: which requests leave one, with what it says, and which leave none.
 *
 * Cost: 6 s, since it performs every kind of action once.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import type { Action } from '../../schema/action.js';
import type { KeyMinted } from '../../schema/api-key.js';
import { ROUTES } from '../../schema/routes.js';
import {
  beforeWith,
  type Json,
  NAMESPACE,
  newHandler,
  step,
  useSharedApi,
} from '../helpers/api.js';
import { type Client, expectStatus } from '../helpers/client.js';
import { column } from '../helpers/columns.js';
import { makeApproval, makePendingStart } from '../helpers/route-requests.js';

const api = useSharedApi();
const tenant = api.tenant();
const NAME = 'night shift';
/** Of a key of the tenant. */
let key: Client;
let keyId: string;

beforeWith(api, async () => {
  const body = { tenant_id: tenant.name, capabilities: ['operator'], name: NAME };
  const minted = expectStatus(await api.root.post<KeyMinted>('/api-keys', body), 201);
  key = tenant.with({ apiKey: minted.secret });
  keyId = minted.id;
});

async function list(query: Record<string, string> = { by: NAME }): Promise<Action[]> {
  const text = new URLSearchParams({ limit: '1000', ...query });
  return expectStatus(await tenant.get<Action[]>(`/actions?${text}`), 200);
}

type Method = 'post' | 'put' | 'patch' | 'delete';

/** Sends the request by the key; resolves with its body and the actions that it left. */
async function act<T = { id: string }>(method: Method, path: string, body?: Json) {
  const before = new Set(column(await list(), 'id'));
  const reply = await key.request<T>(
    method.toUpperCase(),
    path,
    body === undefined ? {} : { body },
  );
  assert.ok(reply.status < 300, `${method} ${path}: ${reply.status} ${reply.text}`);
  const left = (await list()).filter(({ id }) => !before.has(id));
  for (const { operation } of left) seen.add(operation);
  return { body: reply.body, left };
}

const seen = new Set<string>();

/** The one action that the request left. */
async function action(method: Method, path: string, body?: Json): Promise<Action> {
  const { left } = await act(method, path, body);
  assert.equal(left.length, 1, `${method} ${path}: ${JSON.stringify(left)}`);
  return left[0]!;
}

const summaryOf = async (...request: Parameters<typeof action>) =>
  (await action(...request)).summary;

const definition = (name: string, version: number, more: Json = {}) =>
  tenant.definition([step('a', 'noop'), step('b', newHandler())], { name, version, ...more });

test('a version is published, released from its hold, deprecated and deleted by somebody', async () => {
  const name = `pay-${randomUUID()}`;
  const { body, left } = await act('post', '/sequences', definition(name, 1, { hold: true }));
  const [published] = left;
  assert.ok(published !== undefined && left.length === 1);
  const { id, at, details, ...rest } = published;
  assert.ok(Date.parse(at) > 0 && id !== '');
  assert.deepEqual(details, { namespace: NAMESPACE, name, version: 1, hold: true });
  assert.deepEqual(rest, {
    tenant_id: tenant.name,
    by: NAME,
    key_id: keyId,
    operation: 'sequences.create',
    kind: 'sequence',
    target: body.id,
    name: `${name} v1`,
    instance_id: null,
    summary: `published sequence ${name} v1 (hold: true)`,
  });
  const path = `/sequences/${body.id}`;
  const lifted = await summaryOf('patch', path, { hold: false });
  assert.equal(lifted, `lifted the hold of sequence ${name} v1`);
  assert.equal(await summaryOf('post', `${path}/deprecate`), `deprecated sequence ${name} v1`);
  assert.deepEqual((await act('delete', `${path}?dry_run=true`)).left, []);
  assert.equal(await summaryOf('delete', path), `deleted sequence ${name} v1`);
  // The object is gone; its actions still say what it was called.
  const about = await list({ target: body.id });
  assert.equal(about.at(-1)?.summary, `published sequence ${name} v1 (hold: true)`);
  assert.equal(about.length, 4);
});

test('each decision about a release has an action', async () => {
  const name = `ship-${randomUUID()}`;
  const [baseline, candidate] = await Promise.all(
    [1, 2].map((version) => tenant.sequence([step('a', 'noop')], { name, version })),
  );
  const sides = { baseline_sequence_id: baseline, candidate_sequence_id: candidate };
  const created = await action('post', '/releases', sides);
  const path = `/releases/${created.target}`;
  const texts = [
    created.summary,
    await summaryOf('post', `${path}/validate`, { skip: true }),
    await summaryOf('post', `${path}/canary`, { percent: 10 }),
    await summaryOf('post', `${path}/pause`),
    await summaryOf('post', `${path}/canary`, { percent: 50 }),
    await summaryOf('post', `${path}/promote`, {}),
  ];
  const release = `release ${created.target} of ${name}`;
  assert.deepEqual(texts, [
    `created ${release}`,
    `validated ${release} (skip: true)`,
    `started the canary of ${release} (percent: 10)`,
    `paused ${release}`,
    `started the canary of ${release} (percent: 50)`,
    `promoted ${release}`,
  ]);
  const back = { baseline_sequence_id: candidate, candidate_sequence_id: baseline };
  const other = `/releases/${(await action('post', '/releases', back)).target}`;
  await act('post', `${other}/validate`, {});
  await act('post', `${other}/canary`, { percent: 1 });
  assert.match(await summaryOf('post', `${other}/rollback`), /^rolled back release /);
  // Done already: nothing changes.
  assert.deepEqual((await act('post', `${other}/rollback`)).left, []);
});

test('an instance is paused, resumed, changed and cancelled by somebody; other signals are no actions', async () => {
  const name = `order-${randomUUID()}`;
  const sequence = await tenant.sequence([step('a', newHandler())], { name });
  const id = await tenant.create(sequence, { next_fire_at: '2099-01-01T00:00:00Z' });
  const path = `/instances/${id}`;
  const signal = (signal_type: string) => ['post', `${path}/signals`, { signal_type }] as const;
  const instance = `instance ${id} of ${name}`;
  const paused = await action('patch', `${path}/state`, { state: 'paused' });
  assert.deepEqual([paused.summary, paused.instance_id], [`paused ${instance}`, id]);
  assert.equal(await summaryOf(...signal('resume')), `resumed ${instance}`);
  assert.equal(await summaryOf(...signal('pause')), `paused ${instance}`);
  assert.deepEqual((await act(...signal('custom:go'))).left, []);
  const context = { context: { data: { secret: 'hush' } } };
  const patched = await action('patch', `${path}/context`, context);
  assert.deepEqual([patched.summary, patched.details], [`changed the context of ${instance}`, {}]);
  const blocks = { blocks: [step('later', 'noop')] };
  assert.equal(
    await summaryOf('post', `${path}/inject-blocks`, blocks),
    `added blocks to ${instance}`,
  );
  const saved = await act('post', `${path}/checkpoints`, { checkpoint_data: 1 });
  assert.deepEqual(saved.left, []);
  await act('post', `${path}/checkpoints`, { checkpoint_data: 2 });
  assert.equal(
    await summaryOf('post', `${path}/checkpoints/prune`, { keep: 1 }),
    `deleted checkpoints of ${instance} (keep: 1)`,
  );
  assert.equal(await summaryOf(...signal('cancel')), `cancelled ${instance}`);
});

test('a retry, a run from an earlier block and a fork are actions about their instance', async () => {
  const id = await tenant.runUntil('failed', [
    step('a', 'noop'),
    step('b', 'assert', { params: { condition: 'data.ok' } }),
  ]);
  const fork = { from_block_id: 'b', dry_run: true };
  const forked = await action('post', `/instances/${id}/fork`, fork);
  assert.equal(forked.target, id);
  assert.match(forked.summary, /^forked instance .*from_block_id: b; dry_run: true/);
  assert.match(await summaryOf('post', `/instances/${id}/retry`), /^retried instance /);
  await tenant.until(id, 'failed');
  const again = await action('post', `/instances/${id}/resume-from/a`, { context: { ok: true } });
  assert.match(again.summary, /^ran again instance .*\(block_id: a\)$/);
  await tenant.until(id, 'completed');
});

test('changes of many instances have one action, and dry runs none', async () => {
  const sequence = await tenant.sequence([step('a', newHandler())]);
  const id = await tenant.create(sequence, { next_fire_at: '2099-01-01T00:00:00Z' });
  const filter = { sequence_id: sequence };
  const many = { filter, action: 'pause' };
  assert.deepEqual(
    (await act('post', '/instances/batch-action', { ...many, dry_run: true })).left,
    [],
  );
  const paused = await action('post', '/instances/batch-action', many);
  assert.equal(paused.summary, `paused many instances by bulk job ${paused.target}`);
  expectStatus(await tenant.get(`/instances/bulk/jobs/${paused.target}`), 200);
  assert.equal((await tenant.instance(id)).state, 'paused');
  const state = await action('patch', '/instances/bulk/state', { filter, state: 'scheduled' });
  assert.match(
    state.summary,
    /^set the state of many instances by bulk job .* \(state: scheduled\)$/,
  );
  const shifted = await summaryOf('patch', '/instances/bulk/reschedule', {
    filter,
    offset_secs: 1,
  });
  assert.match(shifted, /^rescheduled many instances by bulk job /);
  const paced = { ...many, action: 'cancel', per_minute: 1 };
  const job = await action('post', '/instances/batch-action', paced);
  const { state: jobState } = expectStatus(
    await tenant.get<{ state: string }>(`/instances/bulk/jobs/${job.target}`),
    200,
  );
  if (jobState === 'running') await act('post', `/instances/bulk/jobs/${job.target}/cancel`);
  seen.add('bulkJobs.cancel');
});

test('a migration is one action, whether it is of one instance or of many', async () => {
  const name = `move-${randomUUID()}`;
  const blocks = [step('a', newHandler())];
  const versions = await Promise.all(
    [1, 2, 3].map((version) => tenant.sequence(blocks, { name, version })),
  );
  const [one, two, three] = versions as [string, string, string];
  const later = { next_fire_at: '2099-01-01T00:00:00Z' };
  const ids = await Promise.all([1, 2, 3].map(() => tenant.create(one, later)));
  const path = `/instances/${ids[0]}/migrate`;
  assert.deepEqual((await act('post', path, { sequence_id: two, dry_run: true })).left, []);
  assert.match(await summaryOf('post', path, { sequence_id: two }), /^migrated instance /);
  const all = { sequence_id: two };
  const many = await action('post', `/sequences/${one}/migrate-instances`, all);
  assert.equal(many.summary, `migrated instances of sequence ${name} v1 (sequence_id: ${two})`);
  const idle = await tenant.create(one, later);
  const move = { instance_id: idle, target_sequence_id: three };
  const moved = await action('post', '/sequences/migrate-instance', move);
  assert.equal(moved.target, idle);
  // Nothing is left to migrate.
  assert.deepEqual((await act('post', `/sequences/${one}/migrate-instances`, all)).left, []);
});

test('a planned migration is applied and rolled back by somebody', async () => {
  const name = `plan-${randomUUID()}`;
  const blocks = [step('a', 'noop')];
  const [one, two] = await Promise.all(
    [1, 2].map((version) => tenant.sequence(blocks, { name, version })),
  );
  const id = await tenant.create(one!, { next_fire_at: '2099-01-01T00:00:00Z' });
  await tenant.move(id, 'paused');
  const enrolment = { instance_id: id, runtime_id: randomUUID() };
  assert.deepEqual((await act('post', '/continuity/executions', enrolment)).left, []);
  const plan = { continuity_id: id, to_sequence_id: two, to_version: 2, capture_checkpoint: true };
  const planned = await act('post', '/continuity/migrations/plan', plan);
  assert.deepEqual(planned.left, []);
  const path = `/continuity/migrations/${planned.body.id}`;
  const applied = await action('post', `${path}/apply`, { approved: true });
  assert.equal(applied.summary, `applied migration ${planned.body.id}`);
  assert.equal(
    await summaryOf('post', `${path}/rollback`),
    `rolled back migration ${planned.body.id}`,
  );
});

test('an answer of an approval has an action by whoever gave it, also by a link', async () => {
  const id = await makeApproval(tenant);
  const answered = await action('post', `/approvals/${id}`, { value: 'yes' });
  assert.equal(answered.summary, 'answered approval gate (value: yes)');
  assert.ok(answered.instance_id !== null);
  const other = await makeApproval(tenant);
  const body = { value: 'yes', recipient: 'Ada' };
  const link = await act<{ url: string }>('post', `/approvals/${other}/link`, body);
  assert.deepEqual(link.left, []);
  const { pathname } = new URL(link.body.url);
  const reply = await api.root.with({ apiKey: null, tenant: null, prefix: '' }).post(pathname, {});
  assert.equal(reply.status, 200, reply.text);
  const [byLink] = await list({ target: other });
  assert.deepEqual([byLink?.by, byLink?.key_id], ['Ada', null]);
  seen.add('approvals.answerByLink');
});

test('settings of a tenant have actions, which never have a secret or an address', async () => {
  const name = `n-${randomUUID()}`;
  const limit = { max_count: 5, window_seconds: 60 };
  for (const key of [name, `${name}*`]) {
    const path = `/rate-limits/${encodeURIComponent(key)}`;
    const set = await summaryOf('put', path, limit);
    assert.equal(set, `set rate limit ${key} (max_count: 5; window_seconds: 60)`);
    assert.equal(await summaryOf('delete', path), `deleted rate limit ${key}`);
  }
  const texts = [
    await summaryOf('post', '/credentials', { id: name, value: 'hush' }),
    await summaryOf('patch', `/credentials/${name}`, { enabled: false }),
    await summaryOf('patch', `/credentials/${name}`, { value: 'hush hush' }),
    await summaryOf('delete', `/credentials/${name}`),
  ];
  assert.deepEqual(texts, [
    `created credential ${name}`,
    `disabled credential ${name}`,
    `changed credential ${name} (changed: value)`,
    `deleted credential ${name}`,
  ]);
  const url = 'https://hooks.example/hush';
  const webhook = await action('post', '/webhooks', { url });
  await act('patch', `/webhooks/${webhook.target}`, { url, events: ['instance.failed'] });
  await act('delete', `/webhooks/${webhook.target}`);
  const endpoint = {
    url,
    secret: `hush-${randomUUID()}`,
    handlers: [newHandler()],
    enabled: false,
  };
  await action('put', `/worker-endpoints/${name}`, endpoint);
  await action('delete', `/worker-endpoints/${name}`);
  const sequence_name = `s-${randomUUID()}`;
  await tenant.sequence([step('a', 'noop')], { name: sequence_name });
  const trigger = { slug: name, tenant_id: tenant.name, namespace: NAMESPACE, sequence_name };
  await action('post', '/triggers', trigger);
  assert.equal(
    await summaryOf('patch', `/triggers/${name}`, { enabled: false }),
    `disabled trigger ${name}`,
  );
  assert.deepEqual((await act('patch', `/triggers/${name}`, { enabled: true })).left.length, 1);
  const fired = await act('post', `/triggers/${name}/fire`, {});
  assert.deepEqual(fired.left, []);
  const secret = { secret: `hush-${randomUUID()}` };
  const changed = await summaryOf('patch', `/triggers/${name}`, secret);
  assert.equal(changed, `changed trigger ${name} (changed: secret)`);
  await action('delete', `/triggers/${name}`);
  const all = JSON.stringify(await list());
  assert.ok(!all.includes('hush') && !all.includes('hooks.example'));
});

test('a schedule and a start that waits are changed by somebody', async () => {
  const name = `daily-${randomUUID()}`;
  await tenant.sequence([step('a', 'noop')], { name });
  const body = {
    ...{ tenant_id: tenant.name, namespace: NAMESPACE, sequence: name },
    ...{ cron_expr: '@yearly', enabled: true },
  };
  const created = await action('post', '/cron', body);
  const schedule = `cron schedule ${created.target} of ${name}`;
  assert.equal(created.summary, `created ${schedule} (cron_expr: @yearly; enabled: true)`);
  const path = `/cron/${created.target}`;
  assert.equal(await summaryOf('put', path, { enabled: false }), `disabled ${schedule}`);
  // A run is a creation.
  assert.deepEqual((await act('post', `${path}/run`, {})).left, []);
  assert.match(await summaryOf('delete', path), /^deleted cron schedule /);
  for (const [method, more] of [
    ['post', '/start'],
    ['delete', ''],
  ] as const) {
    const start = await makePendingStart(tenant);
    const left = await action(method, `/pending-starts/${start}${more}`);
    assert.equal(left.target, start);
  }
});

test('the root key makes and revokes keys and sets limits; another tenant sees none of it', async () => {
  const other = api.tenant();
  const listOf = async () => expectStatus(await other.get<Action[]>('/actions'), 200);
  assert.deepEqual(await listOf(), []);
  const body = { tenant_id: other.name, capabilities: ['worker'], name: 'ci' };
  const { id } = expectStatus(await api.root.post<KeyMinted>('/api-keys', body), 201);
  const limits = `/tenants/${other.name}/limits`;
  expectStatus(await api.root.put(limits, { schedules_max: 7 }), 200);
  expectStatus(await api.root.delete(limits), 204);
  expectStatus(await api.root.delete(`/api-keys/${id}`), 204);
  // Again: nothing changes.
  expectStatus(await api.root.delete(`/api-keys/${id}`), 204);
  const actions = await listOf();
  assert.deepEqual(column(actions, 'summary'), [
    'revoked api key ci',
    `reset tenant limits ${other.name}`,
    `set tenant limits ${other.name} (schedules_max: 7)`,
    'created api key ci (capabilities: worker)',
  ]);
  for (const { by, key_id, target, kind } of actions) {
    assert.deepEqual([by, key_id], ['root', null]);
    assert.equal(target, kind === 'api_key' ? id : other.name);
  }
  for (const { operation } of actions) seen.add(operation);
  const ids = new Set(column(await list({}), 'id'));
  assert.ok(actions.every((one) => !ids.has(one.id)));
});

describe('the list', () => {
  test('is filtered by key, kind, operation, object and time, and has pages', async () => {
    const name = `f-${randomUUID()}`;
    const created = await action('post', '/credentials', { id: name, value: 'v' });
    await act('delete', `/credentials/${name}`);
    const idsOf = async (query: Record<string, string>) => column(await list(query), 'operation');
    assert.deepEqual(await idsOf({ target: name }), ['credentials.delete', 'credentials.create']);
    const one = { target: name, operation: 'credentials.create' };
    assert.deepEqual(await idsOf(one), ['credentials.create']);
    assert.deepEqual(await idsOf({ target: name, by: 'nobody' }), []);
    assert.deepEqual(await idsOf({ target: name, since: created.at }), ['credentials.delete']);
    assert.deepEqual(await idsOf({ target: name, until: created.at }), []);
    assert.ok((await list({ kind: 'credential' })).every(({ kind }) => kind === 'credential'));
    const page = await tenant.get<Action[]>(`/actions?target=${name}&limit=1`);
    const cursor = page.headers['x-next-cursor'];
    assert.ok(typeof cursor === 'string');
    assert.deepEqual(await idsOf({ target: name, cursor }), ['credentials.create']);
    assert.equal((await tenant.get('/actions?kind=nothing')).status, 400);
    assert.equal((await tenant.get('/actions?who=me')).status, 400);
  });

  test('has nothing of a request that was refused, nor of the work of instances and workers', async () => {
    const name = `r-${randomUUID()}`;
    const handler = newHandler();
    const before = column(await list({}), 'id').length;
    const definitionOf = tenant.definition([step('a', handler)], { name });
    const { body } = await act('post', '/sequences', definitionOf);
    const refused = [
      await key.post('/sequences', definitionOf),
      await key.delete(`/credentials/${name}`),
      await key.patch(`/sequences/${randomUUID()}`, { hold: false }),
      await key.put(`/rate-limits/${name}`, { max_count: 'many', window_seconds: 1 }),
      await key.post(`/instances/${randomUUID()}/retry`, {}),
    ];
    assert.deepEqual(column(refused, 'status'), [409, 404, 404, 400, 404]);
    const instance = await tenant.create(body.id);
    await tenant.complete(await tenant.task(handler));
    await tenant.until(instance, 'completed');
    const event = { tenant_id: tenant.name, event_name: 'e', producer_event_id: name };
    expectStatus(await tenant.post('/events', event), 201);
    assert.equal(column(await list({}), 'id').length, before + 1);
  });

  test('is read with the capability operator or auditor', async () => {
    const mint = async (capability: string) => {
      const minting = { tenant_id: tenant.name, capabilities: [capability] };
      return expectStatus(await api.root.post<KeyMinted>('/api-keys', minting), 201).secret;
    };
    for (const [capability, status] of [
      ['auditor', 200],
      ['publisher', 403],
      ['starter', 403],
    ] as const) {
      const client = tenant.with({ apiKey: await mint(capability) });
      assert.equal((await client.get('/actions')).status, status, capability);
    }
  });
});

/** Changes that are no actions, each with what it is instead. */
const NO_ACTIONS: Readonly<Record<string, string>> = {
  'sequences.validate cron.preview sequences.compare continuity.preview instances.dryRun':
    'changes nothing',
  'instances.create instances.createBatch cron.run triggers.fire triggers.receive': 'a creation',
  'instances.saveCheckpoint events.send events.sendBatch': 'of applications',
  'approvals.link': 'only signs',
  'releases.evaluate': 'a gate decides',
  'continuity.create continuity.claim continuity.appendProvenance continuity.place migrations.plan':
    'of runtimes, or changes no instance',
};
const OF_PROGRAMS = /^(workers|runtimes|handoffs|capsules)\./;

test('Each changing route is an action, or is known to be none', () => {
  const none = Object.keys(NO_ACTIONS).flatMap((ids) => ids.split(' '));
  for (const { id, method, action: mark } of Object.values(ROUTES)) {
    const isKnown = method === 'GET' || none.includes(id) || OF_PROGRAMS.test(id);
    assert.equal(mark === undefined, isKnown, id);
  }
});

/** Of an object that takes more to make: a webhook that is not delivered, an effect with an unknown result. */
const ELSEWHERE = ['webhooks.redeliver', 'webhooks.discard', 'continuity.resolveEffect'];

test('Each action of the table of routes was performed here', () => {
  const marked = Object.values(ROUTES).filter(({ action: mark }) => mark !== undefined);
  const missing = column(marked, 'id').filter((id) => !seen.has(id) && !ELSEWHERE.includes(id));
  assert.deepEqual(missing, []);
});
