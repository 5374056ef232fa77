/**
 * The wire contract: what bodies, queries and users' schemas are taken, and what callers are told.
 *
 * Cost: 3 s, since it compiles the validators of every route.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { toUnixMs } from '../../schema/common.js';
import { type BodyRouteId, ROUTES, type RouteId } from '../../schema/routes.js';
import { misspelt, suggest } from '../../schema/suggest.js';
import { checkUserSchema, compileUserSchema } from '../../schema/user-schema.js';
import { createValidators } from '../../schema/validators.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import { column } from '../helpers/columns.js';
import { byDepth } from '../helpers/depth.js';
import { check } from '../helpers/properties.js';
import { casesIn } from '../helpers/table.js';

const validators = createValidators();
const ID = '018f2f6e-0000-7000-8000-00000000000a';

function messageOf(id: BodyRouteId, body: unknown): string | undefined {
  const checked = validators.validateBody(id, body);
  return checked.ok ? undefined : checked.message;
}

type Row = readonly [body: unknown, expected: RegExp | string | undefined];

function assertTable(id: BodyRouteId, rows: readonly Row[]): void {
  for (const [body, expected] of rows) {
    const shown = JSON.stringify(body)?.slice(0, 200);
    const message = messageOf(id, body);
    if (expected instanceof RegExp) assert.match(message ?? 'accepted', expected, shown);
    else assert.equal(message, expected, shown);
  }
}

const instance = (fields: object = {}) => {
  return { sequence_id: ID, tenant_id: 't', namespace: 'default', ...fields };
};
const step = (fields: object = {}) => ({ type: 'step', id: 'a', handler: 'noop', ...fields });
const sequence = (blocks: unknown, fields: object = {}) => ({
  ...{ tenant_id: 't', namespace: 'default', name: 'n', version: 1, blocks },
  ...fields,
});
const withStep = (fields: object) => sequence([step(fields)]);

test('bodies that are no object are refused', () => {
  for (const body of [null, [], 'x', 1, true, undefined]) {
    assert.equal(messageOf('instances.create', body), 'the body must be an object');
  }
});

test('a creation is taken with its fields, nulls and unknown fields', () => {
  const full = instance({
    ...{ priority: 'HIGH', timezone: 'Europe/Berlin', metadata: { a: 1 }, state: 'completed' },
    context: { data: { x: 1 }, config: {}, audit: 'ignored' },
    next_fire_at: '2030-01-01T00:00:00+02:00',
    ...{ concurrency_key: 'k', max_concurrency: 1, idempotency_key: 'i', session_id: 7 },
    ...{ dry_run: false, constructor: 1 },
  });
  assertTable('instances.create', [
    [full, undefined],
    [instance({ priority: null, context: null, metadata: null, budget: null }), undefined],
    [instance({ context: { data: null } }), undefined],
  ]);
});

test('ids and priorities become lower case, an empty idempotency key becomes none', () => {
  const given = { sequence_id: ID.toUpperCase(), priority: 'Critical', idempotency_key: '' };
  const checked = validators.validateBody('instances.create', instance(given));
  assert.ok(checked.ok);
  const { sequence_id, priority, idempotency_key } = checked.value;
  assert.deepEqual([sequence_id, priority, idempotency_key], [ID, 'critical', null]);
});

const ONE_SEQUENCE = 'the body must have exactly one of sequence_id and sequence';

test('a wrong field of a creation is named', () => {
  assertTable('instances.create', [
    [{ sequence_id: ID }, 'tenant_id is required'],
    [instance({ sequence_id: undefined }), ONE_SEQUENCE],
    [instance({ sequence: 's' }), ONE_SEQUENCE],
    [instance({ sequence_id: null, sequence: 's', version: 2 }), undefined],
    [instance({ version: 2 }), /must have sequence, not sequence_id, when it has version/],
    [instance({ sequence_id: null, sequence: 7 }), 'sequence must be a string'],
    [instance({ tenant_id: '\u00a0' }), 'tenant_id must not be blank'],
    [instance({ tenant_id: '\u00a0t' }), undefined],
    [instance({ tenant_id: 't\t' }), /^tenant_id must not begin or end with a space or a tab/],
    [instance({ tenant_id: null }), 'tenant_id must be a string'],
    [instance({ namespace: 'n'.repeat(256) }), 'namespace must have at most 255 characters'],
    [instance({ sequence_id: 'x' }), 'sequence_id must be a UUID'],
    [instance({ sequence_id: `urn:uuid:${ID}` }), 'sequence_id must be a UUID'],
    [instance({ priority: 'urgent' }), 'priority must be one of low, normal, high, critical'],
    [instance({ timezone: '+02:00' }), 'timezone must be a known IANA time zone'],
    [instance({ metadata: [] }), 'metadata must be an object'],
    [instance({ context: { data: [1] } }), 'context.data must be an object'],
    [instance({ next_fire_at: '2030-01-01T00:00:00' }), /^next_fire_at must be an RFC 3339/],
    [instance({ max_concurrency: 0 }), 'max_concurrency must be > 0'],
    [instance({ max_concurrency: 2 ** 31 }), 'max_concurrency must be <= 2147483647'],
  ]);
});

test('unsupported fields are refused unless null or false', () => {
  assertTable('instances.create', [[instance({ budget: {} }), 'budget is not supported']]);
  const refused = (blocks: unknown, fields?: object) =>
    messageOf('sequences.create', sequence(blocks, fields));
  const batch = { instances: [instance(), instance({ budget: {} })] };
  assert.equal(messageOf('instances.createBatch', batch), 'instances[1].budget is not supported');
  for (const name of ['context_access', 'fallback_handler', 'cache_key', 'compensation']) {
    assert.equal(refused([step({ [name]: {} })]), `blocks[0].${name} is not supported`);
    assert.equal(refused([step({ [name]: null })]), undefined);
  }
  const loop = { type: 'loop', id: 'l', condition: 'x', body: [step()] };
  for (const name of ['break_on', 'poll_interval', 'continue_on_error', 'retain_iterations']) {
    const blocks = [{ type: 'parallel', id: 'p', branches: [[{ ...loop, [name]: 1 }]] }];
    assert.equal(refused(blocks), `blocks[0].branches[0][0].${name} is not supported`);
  }
  for (const name of ['interceptors', 'sla']) {
    assert.equal(refused([step()], { [name]: [] }), `${name} is not supported`);
  }
});

test('a batch takes 10,000 items and names the bad one', () => {
  const items = Array.from({ length: 10_001 }, () => instance());
  assertTable('instances.createBatch', [
    [{ instances: [] }, undefined],
    [{ instances: items.slice(1) }, undefined],
    [{ instances: items }, 'instances must have at most 10000 items'],
    [{}, 'instances is required'],
    [{ instances: {} }, 'instances must be an array'],
    [{ instances: [instance(), {}] }, /^instances\[1\]/],
    [{ instances: [null] }, 'instances[0] must be an object'],
  ]);
});

test('a sequence with every block kind and every step field is taken', () => {
  const everything = step({
    params: { url: '{{ data.url }}', nested: [1] },
    delay: { duration: 10, business_days_only: true, jitter: 5, holidays: ['2030-12-25'] },
    retry: {
      ...{ max_attempts: 3, initial_backoff: 10, max_backoff: 10, backoff_multiplier: 1.5 },
      ...{ retry_if: 'true', non_retryable_codes: [] },
    },
    ...{ timeout: 1_000, rate_limit_key: 'k', when: '', cancellable: false, queue_name: 'gpu' },
    output_schema: { type: 'object', required: ['a'] },
    unknown_field: { a: [1] },
  });
  const blocks = [
    everything,
    { type: 'parallel', id: 'p', branches: [[step()], []] },
    { type: 'race', id: 'r', branches: [[step()]], semantics: 'first_to_succeed' },
    { type: 'router', id: 'o', routes: [{ condition: 'a == b', blocks: [] }], default: [step()] },
    { type: 'router', id: 'q', default: [] },
    { type: 'try_catch', id: 't', try_block: [step()], catch_block: [], finally_block: null },
    { type: 'loop', id: 'l', condition: 'x', body: [step()], max_iterations: 100_000 },
    { type: 'for_each', id: 'f', collection: 'items', item_var: 'it', body: [step()] },
    step({ params: null, delay: null, retry: null, timeout: null, when: null }),
  ];
  const times = { created_at: '2024-05-01T10:00:00.123456Z' };
  const body = sequence(blocks, {
    id: ID.toUpperCase(),
    input_schema: { type: 'object' },
    ...times,
  });
  const checked = validators.validateBody('sequences.create', body);
  assert.ok(checked.ok, checked.ok ? '' : checked.message);
  assert.equal(checked.value.id, ID);
  assert.equal(messageOf('sequences.create', sequence([step()], { tenant_id: '' })), undefined);
});

test('wrong fields of sequences and blocks are named with their place', () => {
  const inBranch = (block: unknown) =>
    sequence([step(), { type: 'parallel', id: 'p', branches: [[step(), block]] }]);
  const block = (type: string, fields: object) => sequence([{ type, id: 'x', ...fields }]);
  const loop = (fields: object) => block('loop', { condition: 'x', body: [step()], ...fields });
  const retry = (fields: object) => withStep({ retry: { max_attempts: 1, ...fields } });
  const many = Array.from({ length: 257 }, () => []);
  const statuses = 'draft, staging, production, unpublished';
  assertTable('sequences.create', [
    [sequence(undefined), 'blocks is required'],
    [sequence([]), 'blocks must not be empty'],
    [sequence({}), 'blocks must be an array'],
    [sequence([null]), 'blocks[0] must be an object'],
    [sequence([{}]), 'blocks[0].type is required'],
    [sequence([{ type: 7 }]), 'blocks[0].type must be a string'],
    [sequence([step(), { type: 'y' }]), 'blocks[1].type is an unknown block type: y'],
    [sequence([step()], { version: 1.5 }), 'version must be an integer'],
    [sequence([step()], { version: 2 ** 31 }), 'version must be <= 2147483647'],
    [sequence([step()], { name: '' }), 'name must not be blank'],
    [sequence([step()], { tenant_id: undefined }), 'tenant_id is required'],
    [sequence([step()], { status: 'live' }), `status must be one of ${statuses}`],
    [inBranch({ type: 'step', id: 'b' }), 'blocks[1].branches[0][1].handler is required'],
    [inBranch({ type: 'step', handler: 'noop' }), 'blocks[1].branches[0][1].id is required'],
    [withStep({ id: '' }), 'blocks[0].id must not be blank'],
    [withStep({ id: '__proto__' }), 'blocks[0].id must not be __proto__'],
    [withStep({ id: '..' }), 'blocks[0].id must not be . or .., which no address has'],
    [sequence([step()], { tenant_id: '.' }), /^tenant_id must not be \. or \.\./],
    [withStep({ handler: ' ' }), 'blocks[0].handler must not be blank'],
    [withStep({ params: 'x' }), 'blocks[0].params must be an object'],
    [withStep({ timeout: 0.2 }), 'blocks[0].timeout must be an integer'],
    [withStep({ timeout: -1 }), 'blocks[0].timeout must be >= 0'],
    [withStep({ timeout: 1e15 }), /^blocks\[0\]\.timeout must be <= \d+$/],
    [withStep({ delay: { duration: '1s' } }), 'blocks[0].delay.duration must be an integer'],
    [withStep({ delay: { holidays: ['2030-02-30'] } }), /holidays\[0\] must be a calendar day/],
    [withStep({ retry: {} }), 'blocks[0].retry.max_attempts is required'],
    [retry({ max_attempts: 0 }), 'blocks[0].retry.max_attempts must be > 0'],
    [retry({ backoff_multiplier: 0 }), 'blocks[0].retry.backoff_multiplier must be > 0'],
    [
      retry({ initial_backoff: 9, max_backoff: 8 }),
      'blocks[0].retry must have an initial_backoff that is not above max_backoff (8)',
    ],
    [retry({ initial_backoff: 90_000 }), /not above max_backoff \(60000, its default\)$/],
    [retry({ max_backoff: 10 }), undefined],
    [retry({ retry_if: ' ' }), /retry_if must not be blank$/],
    [retry({ non_retryable_codes: ['a', ''] }), /non_retryable_codes\[1\] must not be blank$/],
    [withStep({ output_schema: [] }), 'blocks[0].output_schema must be an object'],
    [withStep({ output_schema: { type: 'no' } }), /output_schema must be a valid JSON Schema/],
    [block('parallel', { branches: [] }), 'blocks[0].branches must not be empty'],
    [block('race', { branches: many }), /branches must have at most 256 items$/],
    [block('race', { branches: [[]], semantics: 'any' }), /first_to_resolve, first_to_succeed$/],
    [block('router', {}), /^blocks\[0\] must have at least one route or a default$/],
    [block('router', { routes: [] }), /at least one route or a default$/],
    [block('router', { routes: [{ condition: '', blocks: [] }] }), /condition must not be blank$/],
    [block('router', { routes: 'x' }), 'blocks[0].routes must be an array'],
    [block('try_catch', { try_block: [step()] }), /catch_block is required$/],
    [block('try_catch', { try_block: [], catch_block: [] }), /\.try_block must not be empty$/],
    [loop({ max_iterations: 0 }), 'blocks[0].max_iterations must be > 0'],
    [loop({ max_iterations: 100_001 }), 'blocks[0].max_iterations must be <= 100000'],
    [loop({ condition: ' ' }), 'blocks[0].condition must not be blank'],
    [loop({ body: [] }), 'blocks[0].body must not be empty'],
    [
      block('for_each', { collection: 'x', item_var: 'constructor', body: [step()] }),
      'blocks[0].item_var must not be constructor',
    ],
  ]);
});

test('nesting that overflows the stack is a refusal, not a defect', () => {
  let blocks: unknown[] = [step()];
  for (let depth = 0; depth < 20_000; depth += 1) {
    blocks = [{ type: 'loop', id: 'l', condition: 'x', body: blocks }];
  }
  assert.equal(messageOf('sequences.create', sequence(blocks)), 'the body is nested too deeply');
});

test('a body with __proto__ as a key changes no prototype', () => {
  const body = JSON.parse(`{"__proto__":{"sequence_id":"${ID}","tenant_id":"t","namespace":"n"}}`);
  assert.match(messageOf('instances.create', body) ?? '', /tenant_id is required|exactly one of/);
  assert.equal(({} as Record<string, unknown>).tenant_id, undefined);
});

test('state words, signals and bulk filters are checked', () => {
  const states = 'scheduled, running, waiting, paused, failed, completed, cancelled';
  assertTable('instances.patchState', [
    [{ state: 'paused' }, undefined],
    [{ state: 'paused', next_fire_at: null }, undefined],
    [{ state: 'Paused' }, `state must be one of ${states}; did you mean paused?`],
    [{ state: 'gone' }, `state must be one of ${states}`],
    [{}, 'state is required'],
  ]);
  assertTable('instances.patchContext', [
    [{ context: { data: { a: 1 }, runtime: 5 } }, undefined],
    [{ context: {} }, undefined],
    [{ context: null }, 'context must be an object'],
    [{ data: {} }, 'context is required'],
  ]);
  const signalText = /^signal_type must be pause, resume, cancel, update_context or custom:<name>/;
  assertTable('instances.signal', [
    [{ signal_type: 'pause' }, undefined],
    [{ signal_type: 'update_context', payload: [1] }, undefined],
    [{ signal_type: 'custom:human_input:step', payload: null }, undefined],
    [{ signal_type: 'custom:' }, signalText],
    [{ signal_type: 'explode' }, signalText],
    [{ signal_type: null }, signalText],
    [{ signal_type: { custom: 1 } }, signalText],
    [{ signal_type: { custom: 'n'.repeat(256) } }, signalText],
    [{}, 'signal_type is required'],
  ]);
  const custom = validators.validateBody('instances.signal', { signal_type: { custom: 'go' } });
  assert.ok(custom.ok && custom.value.signal_type === 'custom:go', 'handed on as its string');
  assertTable('instances.bulkState', [
    [{ filter: {}, state: 'cancelled' }, undefined],
    [{ filter: { states: ['failed'], metadata: { a: 'b' } }, state: 'scheduled' }, undefined],
    [
      { filter: { states: ['nope'] }, state: 'paused' },
      `filter.states[0] must be one of ${states}`,
    ],
    [{ filter: { metadata: { a: 1 } }, state: 'paused' }, 'filter.metadata.a must be a string'],
    [{ filter: { sequence_id: '7' }, state: 'paused' }, 'filter.sequence_id must be a UUID'],
    [{ state: 'paused' }, 'filter is required'],
  ]);
});

test('a change takes null for what a creation may leave out, and refuses what it does not reach', () => {
  const nulls = (...names: string[]) => Object.fromEntries(names.map((name) => [name, null]));
  const started = nulls('metadata', 'context', 'timeout', 'priority', 'overlap_policy');
  assertTable('cron.update', [
    [{ ...nulls('timezone', 'enabled'), ...started }, undefined],
    [{ cron_expr: null }, 'cron_expr must be a string'],
    ...['id', 'tenant_id', 'sequence_id', 'version', 'next_fire_at', 'skipped_fires'].map(
      (name) => [{ enabled: true, [name]: null }, `${name} cannot be changed`] as const,
    ),
  ]);
  assertTable('triggers.update', [
    [nulls('version', 'secret', 'config', 'enabled'), undefined],
    [nulls('sequence_name', 'publish', 'verify'), undefined],
    [{ publish: { key: 'k' } }, 'publish.event is required'],
    [{ publish: { event: 'e', keys: 'k' } }, 'publish.keys is unknown; did you mean key?'],
    [
      { verify: { scheme: 'strip', secret: 's' } },
      'verify.scheme must be one of engine, standard_webhooks, stripe, github, slack, hmac, basic, bearer; ' +
        'did you mean stripe?',
    ],
    [
      { verify: { scheme: 'stripe', secret: ['a', 'b', 'c'] } },
      'verify.secret must be a text of 1 to 512 characters, or a list of at most 2',
    ],
    [
      { verify: { scheme: 'stripe', secret: '[REDACTED]' } },
      'verify.secret must not be [REDACTED], which stands for a secret in answers',
    ],
    [
      { verify: { scheme: 'hmac', secret: 's', header: 'a b' } },
      'verify.header must be the name of a header',
    ],
    [{ trigger_type: 'event' }, 'trigger_type cannot be changed'],
  ]);
  assertTable('credentials.update', [
    [nulls('name', 'kind', 'description', 'expires_at', 'refresh_url', 'enabled'), undefined],
    [{ value: null }, 'value must be a string'],
    [{ id: 'other' }, 'id cannot be changed'],
  ]);
  assertTable('webhooks.update', [
    [{ events: null }, undefined],
    [{ secret: null }, 'secret must be a string'],
    [{ tenant_id: 'other' }, 'tenant_id cannot be changed'],
  ]);
});

test('what is set up once and then acts by itself names the member that is misspelt', () => {
  const id = '0195ffff-0000-7000-8000-000000000000';
  const reference = { tenant_id: 't', namespace: 'n', sequence: 's' };
  const bodies: readonly (readonly [BodyRouteId, object, stray: string, meant: string])[] = [
    ['cron.create', { ...reference, cron_expr: '@daily' }, 'metdata', 'metadata'],
    ['cron.update', {}, 'metdata', 'metadata'],
    ['cron.preview', { cron_expr: '@daily' }, 'timezon', 'timezone'],
    ['cron.run', {}, 'idempotencykey', 'idempotency_key'],
    ['triggers.create', { slug: 's', tenant_id: 't', sequence_name: 's' }, 'confg', 'config'],
    ['triggers.update', {}, 'enable', 'enabled'],
    ['webhooks.subscribe', { url: 'https://example.com' }, 'event', 'events'],
    ['webhooks.update', {}, 'event', 'events'],
    ['credentials.create', { id: 's', value: 'v' }, 'expires', 'expires_at'],
    ['credentials.update', {}, 'enable', 'enabled'],
    ['rateLimits.put', { max_count: 1, window_seconds: 1 }, 'window_second', 'window_seconds'],
    ['tenantLimits.put', {}, 'row_burst', 'rows_burst'],
    ['sequences.update', {}, 'hld', 'hold'],
    [
      'releases.create',
      { baseline_sequence_id: id, candidate_sequence_id: id },
      'in_flight_polic',
      'in_flight_policy',
    ],
    ['releases.canary', { percent: 5 }, 'percnt', 'percent'],
    ['releases.promote', {}, 'forc', 'force'],
    ['instances.resumeFrom', {}, 'contxt', 'context'],
    ['instances.fork', { from_block_id: 'a' }, 'dryrun', 'dry_run'],
  ];
  for (const [route, body, stray, meant] of bodies) {
    const told = `${stray} is unknown; did you mean ${meant}?`;
    assertTable(route, [[{ ...body, [stray]: null }, told]]);
  }
});

test('worker bodies are checked, and limits are lowered to their cap', () => {
  const poll = { handler_name: 'h', worker_id: 'w' };
  assertTable('workers.poll', [
    [poll, undefined],
    [{ ...poll, limit: 0, wait_ms: null, version: '1.2' }, undefined],
    [{ ...poll, limit: -1 }, 'limit must be >= 0'],
    [{ ...poll, limit: 1.5 }, 'limit must be an integer'],
    [{ ...poll, limit: '1' }, 'limit must be an integer'],
    [{ worker_id: 'w' }, 'handler_name is required'],
    [{ handler_name: 'h', worker_id: '' }, 'worker_id must not be blank'],
  ]);
  assert.equal(messageOf('workers.pollQueue', poll), 'queue_name is required');
  assertTable('workers.complete', [
    [{ worker_id: 'w', output: {} }, undefined],
    [{ worker_id: 'w', output: {}, claim_epoch: null }, undefined],
    [{ worker_id: 'w' }, 'output is required'],
    [{ worker_id: 'w', output: [1] }, 'output must be an object'],
    [{ worker_id: 'w', output: null }, 'output must be an object'],
    [{ output: {} }, 'worker_id is required'],
    [{ worker_id: 'w', output: {}, claim_epoch: -1 }, 'claim_epoch must be >= 0'],
  ]);
  assertTable('workers.fail', [
    [{ worker_id: 'w', message: '' }, undefined],
    [{ worker_id: 'w' }, 'message is required'],
    [{ worker_id: 'w', message: 'm', retryable: 'yes' }, 'retryable must be a boolean'],
  ]);
  assertTable('workers.heartbeat', [
    [{ worker_id: 'w' }, undefined],
    [{ worker_id: 'w', checkpoint: null }, undefined],
    [{ worker_id: 'w', checkpoint: { at: 1 }, checkpoint_seq: 0 }, undefined],
    [{ worker_id: 'w', checkpoint: { at: 1 } }, /must have checkpoint_seq/],
  ]);
  const checked = validators.validateBody('workers.poll', { ...poll, limit: 5_000, wait_ms: 1e9 });
  assert.ok(checked.ok);
  assert.deepEqual([checked.value.limit, checked.value.wait_ms], [1_000, 60_000]);
});

function queryOf(id: RouteId, raw: string): unknown {
  const checked = validators.parseQuery(id, raw);
  return checked.ok ? { ...checked.value } : checked.message;
}

test('list queries are typed, with defaults and caps', () => {
  const rows: readonly (readonly [RouteId, string, object])[] = [
    ['instances.list', '', { offset: 0, limit: 100 }],
    [
      'instances.list',
      `state=failed,+paused,&sequence_id=${ID.toUpperCase()}&limit=5000`,
      { state: ['failed', 'paused'], sequence_id: ID, limit: 1_000, offset: 0 },
    ],
    ['instances.list', 'state=&tenant_id=&', { offset: 0, limit: 100 }],
    ['sequences.get', 'unknown=1&__proto__=2', {}],
    ['cron.nextFires', 'unknown=1&__proto__=2', { n: 5 }],
    [
      'instances.list',
      `offset=${'9'.repeat(30)}&limit=${'9'.repeat(30)}`,
      { offset: Number.MAX_SAFE_INTEGER, limit: 1_000 },
    ],
    ['sequences.list', '', { newest_only: false, include_definition: true, offset: 0, limit: 200 }],
    ['workers.tasks', 'state=pending', { state: ['pending'], offset: 0, limit: 50 }],
    [
      'instances.timeline',
      'include_outputs=false',
      { offset: 0, limit: 200, include_outputs: false },
    ],
  ];
  for (const [id, raw, expected] of rows) assert.deepEqual(queryOf(id, raw), expected, raw);
});

test('metadata filters are collected by key', () => {
  const raw = 'metadata.a%20b=x%26y&metadata.__proto__=z';
  const checked = validators.parseQuery('instances.deadLetters', raw);
  assert.ok(checked.ok);
  assert.equal(Object.entries(checked.value.metadata ?? {}).join(' '), 'a b,x&y __proto__,z');
  const many = Array.from({ length: 17 }, (_, index) => `metadata.k${index}=v`).join('&');
  assert.match(String(queryOf('instances.list', many)), /^at most 16 metadata filters/);
});

test('bad query values are refused and named', () => {
  const rows: readonly (readonly [RouteId, string, string | RegExp])[] = [
    ['instances.list', 'limit=-1', 'limit must be >= 0'],
    ['instances.list', 'limit=1.5', 'limit must be an integer'],
    ['instances.list', 'limit=', 'limit must be an integer'],
    ['instances.list', 'limit=0x10', 'limit must be an integer'],
    ['instances.list', 'offset=%205', 'offset must be an integer'],
    ['instances.list', 'offset=1e2', 'offset must be an integer'],
    ['instances.list', 'limit=1&limit=2', 'limit is given more than once'],
    ['instances.list', 'state=failed,nope', /^state\[1\] must be one of scheduled, /],
    ['instances.list', 'sequence_id=7', 'sequence_id must be a UUID'],
    ['instances.list', 'tenant_id=%00', /percent-encoded UTF-8 without NUL$/],
    ['instances.list', 'tenant_id=%ff', /percent-encoded UTF-8 without NUL$/],
    ['instances.timeline', 'limit=0', 'limit must be >= 1'],
    ['queues.series', 'handler=a&step=61', 'step must be a multiple of 60'],
    ['instances.timeline', 'include_outputs=maybe', 'include_outputs must be a boolean'],
    ['sequences.byName', 'tenant_id=t&namespace=n', 'name is required'],
    ['sequences.byName', 'tenant_id=&namespace=n&name=x', 'tenant_id is required'],
    ['sequences.byName', 'tenant_id=t&namespace=n&name=x&version=v1', /^version must be an int/],
  ];
  for (const [id, raw, expected] of rows) {
    const message = String(queryOf(id, raw));
    if (expected instanceof RegExp) assert.match(message, expected, raw);
    else assert.equal(message, expected, raw);
  }
});

test('a name that no address has is refused where it is stored, and can be removed', () => {
  const named = [
    'rateLimits.put',
    'tenantLimits.put',
    'rateLimits.delete',
    'triggers.delete',
  ] as const;
  const dots = named.map((route) =>
    validators.parseParams(route, { key: '..', id: '..', slug: '..' }),
  );
  assert.deepEqual(column(dots, 'ok'), [false, false, true, true]);
});

test('ids in paths are compared in lower case and must be UUIDs', () => {
  const good = validators.parseParams('instances.get', { id: ID.toUpperCase() });
  assert.deepEqual(good, { ok: true, value: { id: ID } });
  const bad = validators.parseParams('instances.get', { id: 'dlq' });
  assert.deepEqual(bad, { ok: false, message: 'id must be a UUID' });
});

test('timestamps need a real date, an offset and a year that can be stored', () => {
  for (const [text, expected] of [
    ['1970-01-01T00:00:00Z', 0],
    ['2024-02-29T23:59:59.9999Z', Date.UTC(2024, 1, 29, 23, 59, 59, 999)],
    ['2030-01-01t00:00:00z', Date.UTC(2030, 0, 1)],
    ['2030-01-01 00:00:00.5-05:30', Date.UTC(2030, 0, 1, 5, 30, 0, 500)],
    ['9999-12-31T23:59:59.999Z', Date.UTC(9999, 11, 31, 23, 59, 59, 999)],
  ] as const) {
    assert.equal(toUnixMs(text), expected, text);
  }
  for (const text of [
    ...['1969-12-31T23:59:59Z', '1970-01-01T00:00:00+00:01', '9999-12-31T23:59:59-00:01'],
    ...['0000-01-01T00:00:00Z', '2023-02-29T00:00:00Z', '2030-13-01T00:00:00Z', '2030-01-01', ''],
    ...['2030-00-10T00:00:00Z', '2030-01-01T24:00:00Z', '2030-01-01T00:00:60Z'],
    ...['2030-01-01T00:00:00+24:00', '2030-01-01T00:00:00', '+012030-01-01T00:00:00Z'],
    '2030-01-01T00:00:00Z\n',
  ]) {
    assert.equal(toUnixMs(text), undefined, text);
  }
});

/** What is wrong with each schema; those that should compile do. */
function assertSchemas(
  rows: readonly (readonly [JsonObject, RegExp | undefined])[],
  compiles: (problem: string | undefined) => boolean,
): void {
  for (const [schema, expected] of rows) {
    const problem = checkUserSchema(schema);
    const shown = JSON.stringify(schema).slice(0, 150);
    if (expected === undefined) assert.equal(problem, undefined, shown);
    else assert.match(problem ?? 'accepted', expected, shown);
    if (compiles(problem)) compileUserSchema(schema);
  }
}

test('schemas of users are refused where they cannot be run safely', () => {
  const doubling: JsonObject = { type: 'object', $defs: { d0: { type: 'string' } } };
  const defs = doubling.$defs as JsonObject;
  for (let n = 1; n <= 40; n += 1) {
    const half = { $ref: `#/$defs/d${n - 1}` };
    defs[`d${n}`] = { allOf: [half, { ...half }] };
  }
  const rows: readonly (readonly [JsonObject, RegExp | undefined])[] = [
    [{}, undefined],
    [{ type: 'object', properties: { pattern: { type: 'string' } } }, undefined],
    [{ $ref: '#/$defs/a', $defs: { a: { type: 'string' } } }, undefined],
    [{ $id: 'https://x.y', $schema: 'https://json-schema.org/draft/2020-12/schema' }, undefined],
    [{ $schema: 'http://json-schema.org/draft-07/schema#', items: [{ type: 'null' }] }, undefined],
    [{ items: [{ type: 'string' }] }, /^must be a valid JSON Schema: items /],
    [{ $schema: 'http://json-schema.org/draft-04/schema#' }, /2020-12 or draft-07$/],
    [{ type: 'strin' }, /^must be a valid JSON Schema: type /],
    [{ minimum: 'x' }, /^must be a valid JSON Schema: minimum /],
    [{ pattern: '^(a+)+$' }, /^must not use pattern: it is not supported$/],
    [{ allOf: [{ items: { pattern: 'x' } }] }, /must not use pattern/],
    [{ patternProperties: { x: {} } }, /must not use patternProperties/],
    [{ $ref: '#/x-own/a', 'x-own': { a: { pattern: 'x' } } }, /must not use pattern/],
    [{ $ref: '#/x-own/a', 'x-own': { a: { type: 1 } } }, /valid JSON Schema/],
    [{ $ref: 'https://example.com/a.json' }, /must not use a \$ref other than/],
    [{ $ref: '#anchor' }, /must not use a \$ref other than/],
    [{ $ref: '#/$defs/none' }, /names nothing/],
    [{ $ref: '#/__proto__' }, /names nothing/],
    [{ properties: { child: { $ref: '#' } } }, /recursive \$ref/],
    [{ ...doubling, $ref: '#/$defs/d40' }, /too complex/],
    [{ properties: { a: { $id: 'x' } } }, /must not use \$id/],
    [{ 'x-own': { b: [{ $anchor: '%' }] } }, /must not use \$anchor/],
    [{ properties: { id: {}, nullable: {}, $id: {} } }, undefined],
    [{ id: 'x' }, /must not use id/],
    [{ $async: true }, /must not use \$async/],
    [{ items: { nullable: true } }, /must not use nullable/],
    [{ $ref: '#/$defs/a%62', $defs: { ab: {} } }, /must not use a \$ref other than/],
    [{ description: 'x'.repeat(65_536) }, /at most 65536 bytes/],
  ];
  assertSchemas(rows, (problem) => problem === undefined);
});

test('what compiling the schema of a user costs is bounded by what becomes code', () => {
  const wide = (count: number, of: JsonValue): JsonObject => ({
    properties: Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, of])),
  });
  const deep = (count: number): JsonObject =>
    count === 0 ? { type: 'null' } : { items: deep(count - 1) };
  const chain = Array.from({ length: 100 }, (_, at) => [`a${at}`, { $ref: `#/$defs/a${at + 1}` }]);
  const names = Array.from({ length: 900 }, (_, at) => `n${at}`);
  const parts =
    /^is too complex: more than 1000 schemas, keywords and listed names with references/;
  const depth = /^is too complex: more than 100 schemas within one another with references/;
  const rows: readonly (readonly [JsonObject, RegExp | undefined])[] = [
    [wide(499, { type: 'string' }), undefined],
    [wide(500, { type: 'string' }), parts],
    // Remarks are no code.
    [wide(499, { type: 'string', title: 'x', description: 'y' }), undefined],
    // A loop goes through long ones.
    [{ enum: names, required: names }, undefined],
    [{ properties: { a: { type: 'string' }, b: { enum: names } }, ...wide(470, true) }, undefined],
    [wide(50, { required: names.slice(0, 21) }), parts],
    [wide(200, { type: ['string', 'null', 'number', 'array'] }), parts],
    [{ dependentRequired: wide(400, ['a', 'b']).properties as JsonValue }, parts],
    [{ dependencies: wide(400, ['a', 'b']).properties as JsonValue }, parts],
    [{ $defs: { a: wide(20, true) }, ...wide(40, { $ref: '#/$defs/a' }) }, undefined],
    [{ $defs: { a: wide(20, true) }, ...wide(50, { $ref: '#/$defs/a' }) }, parts],
    [deep(99), undefined],
    [deep(100), depth],
    [{ $defs: { ...Object.fromEntries(chain), a100: {} }, $ref: '#/$defs/a0' }, depth],
  ];
  // As stored ones are, whatever they cost.
  assertSchemas(rows, () => true);
});

test('a schema that was stored before its cost was bounded goes on judging', () => {
  const properties = (count: number): JsonObject => ({
    properties: Object.fromEntries(
      Array.from({ length: count }, (_, at) => [`p${at}`, { type: 'string' }]),
    ),
  });
  const check = compileUserSchema(properties(1_200));
  assert.equal(check({ p1199: 'x' }), undefined);
  assert.equal(check({ p1199: 1 }), 'p1199 must be string');
  const never = compileUserSchema({ ...properties(2_400) });
  assert.match(never({}) ?? 'judged', /^cannot be judged: its schema of \d+ values is too large/);
});

test('a compiled schema of a user says where a value is wrong', () => {
  const check = compileUserSchema({
    type: 'object',
    required: ['constructor'],
    properties: {
      constructor: { type: 'string' },
      list: { type: 'array', items: { format: 'uuid' }, uniqueItems: true },
      mail: { format: 'email' },
    },
  });
  assert.equal(check({ constructor: 'x', list: [ID], mail: 'anything' }), undefined);
  assert.match(check({}) ?? '', /required property 'constructor'/);
  assert.match(check({ constructor: 1 }) ?? '', /^constructor must be string$/);
  assert.match(check({ constructor: 'x', list: ['no'] }) ?? '', /^list\[0\] must match format/);
  assert.match(check({ constructor: 'x', list: [ID, ID] }) ?? '', /^list must NOT have duplicate/);
});

test('uniqueItems of a user takes time in proportion to the array', () => {
  const check = compileUserSchema({ uniqueItems: true });
  const distinct = Array.from({ length: 20_000 }, (_, n) => ({ n, text: 'x' }));
  assert.equal(check(distinct), undefined);
  assert.match(check([...distinct, { text: 'x', n: 7 }]) ?? '', /duplicate/);
  assert.equal(check([1, '1', [1], { 0: 1 }, null, 'null']), undefined);
});

test('every schema of the contract is valid JSON Schema 2020-12', () => {
  const meta = new Ajv2020({ strict: false });
  for (const route of Object.values(ROUTES)) {
    const schemas = [route.body, route.query, route.params, ...Object.values(route.replies)];
    for (const schema of schemas) {
      if (schema) assert.ok(meta.validateSchema(schema), `${route.id} ${meta.errorsText()}`);
    }
  }
});

test('replies are held against the declared status and shape', () => {
  const created = { id: ID, deduplicated: false };
  assert.equal(validators.describeReply('instances.create', 201, created), undefined);
  const seen = validators.describeReply('instances.create', 201, { id: ID });
  assert.equal(seen, 'deduplicated is required');
  assert.equal(validators.describeReply('instances.create', 404, { error: 'x' }), undefined);
  assert.match(validators.describeReply('instances.create', 418, {}) ?? '', /not declared/);
  assert.equal(validators.describeReply('sequences.delete', 204, undefined), undefined);
});

const bodyRoutes = Object.values(ROUTES)
  .filter((route) => route.body !== undefined)
  .map((route) => route.id as BodyRouteId);

test('any JSON value as a body or a schema gets an answer and never an exception', (t) => {
  const fields = ['type', 'id', 'blocks', 'instances', 'context', 'retry', 'signal_type', '$ref'];
  const key = fc.oneof(fc.constantFrom(...fields, '__proto__', 'items'), fc.string());
  const word = fc.oneof(fc.constantFrom('step', 'router', 'loop', '#', '#/items'), fc.string());
  const { json } = fc.letrec((tie) => ({
    json: fc.oneof(
      { depthSize: 'medium', withCrossShrink: true },
      fc.oneof(word, fc.integer(), fc.double(), fc.boolean(), fc.constant(null)),
      fc.array(tie('json'), { maxLength: 4 }),
      fc.dictionary(key, tie('json'), { maxKeys: 6 }),
    ),
  }));
  check(t, byDepth(200, 500), fc.tuple(fc.constantFrom(...bodyRoutes), json), ([id, value]) => {
    const message = messageOf(id, value);
    assert.ok(message === undefined || (message.length > 0 && message.length < 2_000));
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      if (checkUserSchema(value as JsonObject) === undefined)
        compileUserSchema(value as JsonObject);
    }
  });
});

test('what cannot be made a text is refused in each member of each body, and never an exception', () => {
  const odd = JSON.parse('{"toString":null,"valueOf":1,"then":{}}') as JsonObject;
  for (const id of bodyRoutes) {
    for (const name of Object.keys(ROUTES[id].body?.properties ?? {})) {
      for (const value of [odd, [odd], [odd, odd]]) messageOf(id, { [name]: value });
    }
  }
  for (const id of ['migrations.migrate', 'sequences.migrateInstances'] as const) {
    assert.match(messageOf(id, { sequence_id: odd }) ?? '', /sequence_id must be/);
  }
});

test('any query text, and any instant, gets an answer and never an exception', (t) => {
  const name = fc.constantFrom('limit', 'offset', 'state', 'metadata.x', 'version', '%', '=', '&');
  const text = fc.array(fc.oneof(name, fc.string(), fc.constant('=')), { maxLength: 8 });
  const route = fc.constantFrom(...Object.values(ROUTES));
  const instant = fc.integer({ min: 0, max: Date.UTC(9999, 11, 31) });
  check(t, byDepth(300, 1_000), fc.tuple(route, text, instant), ([{ id }, parts, ms]) => {
    const checked = validators.parseQuery(id, parts.join(''));
    assert.ok(checked.ok || checked.message.length > 0);
    assert.equal(toUnixMs(new Date(ms).toISOString()), ms);
  });
});

test('a validation that would take more than ten million steps is refused before it begins', () => {
  const words = Array.from({ length: 4_900 }, (_, at) => `v${at}`);
  const check = compileUserSchema({ properties: { x: { items: { enum: words } } } });
  assert.equal(check({ x: Array(1_000).fill('v4899') }), undefined);
  assert.match(check({ x: Array(30_000).fill('v4899') }) ?? '', /more than \d+ values/);
  const small = compileUserSchema({ properties: { x: { items: { type: 'string' } } } });
  assert.equal(small({ x: Array(30_000).fill('v4899') }), undefined);
});

const MEMBERS =
  'type id handler params retry timeout when initial_backoff max_backoff max_attempts len starts_with url parallel'.split(
    ' ',
  );
const HANDLERS = 'noop log sleep http_request fail transform assert'.split(' ');

test('a word is taken for the nearest one that is known', () => {
  const cases = casesIn(`
# slips: a letter missing, too many, wrong; two exchanged; two slips
timout         | timeout
paramms        | params
hendler        | handler
tpye           | type
paralell       | parallel
ulr            | url
# the case and the separators of another language
initialBackoff | initial_backoff
max-attempts   | max_attempts
startswith     | starts_with
Retry          | retry
# the same stem
retries        | retry
length         | len
timeout_ms     | timeout
# nothing is near
description    | -
x              | -
  `);
  for (const [word, meant] of cases) assert.equal(suggest(word!, MEMBERS) ?? '-', meant, word);
  assert.equal(suggest('', MEMBERS), undefined);
  assert.equal(suggest('timeout'.repeat(20), MEMBERS), undefined);
});

test('the nearest of several words is named, and of equally near ones the first', () => {
  assert.equal(suggest('max_backof', MEMBERS), 'max_backoff');
  assert.deepEqual([suggest('cat', ['cut', 'cot']), suggest('handler', [])], ['cut', undefined]);
});

test('names that anybody may choose are compared by slips alone', () => {
  const cases = casesIn(`
htp_request     | http_request
http-request    | http_request
HTTPRequest     | http_request
Sleep           | sleep
transform_order | -
mail            | -
send_invoice    | -
  `);
  for (const [word, meant] of cases) assert.equal(misspelt(word!, HANDLERS) ?? '-', meant, word);
});
