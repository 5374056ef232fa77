/** The routes table: matching, capabilities, and that every row is complete. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TSchema } from '@sinclair/typebox';
import { type MatchResult, matchRoute } from '../../schema/route-match.js';
import { ROUTES, type Route, type RouteId } from '../../schema/routes.js';

const ID = '018f2f6e-0000-7000-8000-000000000001';

function idOf(result: MatchResult): RouteId | string {
  return typeof result === 'object' && 'route' in result ? result.route.id : JSON.stringify(result);
}

test('every operation is found under the prefix and at the bare path', () => {
  for (const route of Object.values(ROUTES)) {
    const path = route.path.replace('{id}', ID);
    for (const given of [path, `/api/v1${path}`]) {
      const match = matchRoute(route.method, given);
      assert.equal(idOf(match), route.id, `${route.method} ${given}`);
      assert.ok(typeof match === 'object' && 'params' in match);
      assert.equal(match.params.id, route.path.includes('{id}') ? ID : undefined);
      assert.equal(match.isBareAlias, given === path && route.isAtRoot !== true);
    }
  }
});

test('a fixed segment wins over a parameter', () => {
  assert.equal(idOf(matchRoute('GET', '/api/v1/instances/dlq')), 'instances.deadLetters');
  assert.equal(idOf(matchRoute('PATCH', '/api/v1/instances/bulk/state')), 'instances.bulkState');
  assert.equal(idOf(matchRoute('GET', '/api/v1/sequences/by-name')), 'sequences.byName');
  assert.equal(idOf(matchRoute('GET', '/api/v1/workers/tasks/stats')), 'workers.stats');
  assert.equal(idOf(matchRoute('POST', '/workers/tasks/poll/queue')), 'workers.pollQueue');
  // Where the fixed segment leads nowhere, the parameter is tried: the id is refused later.
  assert.equal(idOf(matchRoute('GET', '/instances/bulk/outputs')), 'instances.outputs');
});

test('HEAD is served wherever GET is', () => {
  assert.equal(idOf(matchRoute('HEAD', '/api/v1/instances')), 'instances.list');
  assert.deepEqual(matchRoute('HEAD', '/api/v1/workers/tasks/poll'), { allow: ['POST'] });
});

test('a known path with another method is told which methods it has', () => {
  assert.deepEqual(matchRoute('PUT', '/api/v1/instances'), { allow: ['POST', 'GET', 'HEAD'] });
  assert.deepEqual(matchRoute('GET', '/instances/batch'), { allow: ['POST'] });
  assert.deepEqual(matchRoute('DELETE', `/instances/${ID}`), { allow: ['GET', 'HEAD'] });
});

test('paths that are not exactly those of an operation are not found', () => {
  const paths = [
    '',
    '/',
    'instances',
    '/instances/',
    '//instances',
    '/instances//outputs',
    `/instances/${ID}/`,
    `/instances/${ID}/unknown`,
    '/api/v1',
    '/api/v1/',
    '/api/v1instances',
    '/api/v1/api/v1/instances',
    '/api/v2/instances',
    '/Instances',
    '/inst%61nces',
    '/constructor',
    '/__proto__',
    '/instances/../instances',
    '/'.repeat(5_000),
    '/instances'.repeat(5_000),
  ];
  for (const path of paths) assert.equal(matchRoute('GET', path), 'not-found', path.slice(0, 60));
});

test('path parameters are percent-decoded once, and a bad encoding is told apart', () => {
  const match = matchRoute('GET', '/instances/%2525%2Fa');
  assert.ok(typeof match === 'object' && 'params' in match);
  assert.equal(match.params.id, '%25/a');
  for (const bad of ['%', '%zz', '%c3%28', '%ed%a0%80']) {
    assert.equal(matchRoute('GET', `/instances/${bad}`), 'bad-encoding', bad);
  }
});

test('capabilities follow the table of who may do what', () => {
  const expected: readonly (readonly [RouteId, 'public' | readonly string[]])[] = [
    ['health.live', 'public'],
    ['info', 'public'],
    ['sequences.create', ['operator', 'publisher']],
    ['sequences.list', ['operator', 'publisher', 'auditor', 'starter']],
    ['instances.create', ['operator', 'starter']],
    ['instances.createBatch', ['operator', 'starter']],
    ['instances.batchAction', ['operator']],
    ['instances.fork', ['operator']],
    ['instances.get', ['operator', 'auditor', 'starter']],
    ['instances.deadLetters', ['operator', 'auditor', 'starter']],
    ['instances.signal', ['operator', 'approver', 'starter']],
    ['workers.poll', ['operator', 'worker']],
    ['workers.list', ['operator', 'worker', 'auditor']],
    ['handlers', ['operator', 'worker', 'auditor']],
    ['releases.list', ['operator', 'publisher', 'auditor']],
    ['releases.canary', ['operator', 'publisher']],
    ['sequences.compare', ['operator', 'publisher']],
  ];
  for (const [id, capability] of expected) assert.deepEqual(ROUTES[id].capability, capability, id);
});

const TENANTLESS =
  /^(triggers\.receive$|health\.|info$|metrics$|docs\.|whoami$|apiKeys\.|tenants\.|cells\.|tenantLimits\.|webhooks\.(outbox|redeliver|discard|deliver)|approvals\.(page|answerByLink))/;

test('only what is no resource of a tenant goes without one; a batch and the change feed name it themselves', () => {
  for (const { id, tenant } of Object.values(ROUTES)) {
    const expected = TENANTLESS.test(id)
      ? 'none'
      : id === 'instances.createBatch' || id.startsWith('changes.')
        ? 'optional'
        : 'required';
    assert.equal(tenant, expected, id);
  }
});

/** What a dry run answers, in place of a success that has no body. */
const isPreview = (reply: TSchema | null | undefined) =>
  reply?.required?.includes('dry_run') && reply.properties.dry_run.const === true;

/** What a change of many answers that goes on behind its answer. */
const isJob = ({ query }: Route, status: string) =>
  status === '202' && query?.properties.async !== undefined;

test('every row has one success, beside a preview of one, and says which parameters its path has', () => {
  for (const route of Object.values(ROUTES)) {
    const successes = Object.entries(route.replies).filter(([status]) => Number(status) < 300);
    // What is there already is answered with another status, and with the same shape.
    const done = successes
      .filter(([status]) => !isJob(route, status))
      .map(([, reply]) => reply)
      .filter((reply) => !isPreview(reply));
    assert.equal(new Set(done).size, 1, route.id);
    const params = Object.keys(route.params?.properties ?? {});
    assert.deepEqual(route.paramNames, params, route.id);
    assert.equal(typeof route.owner === 'object' ? route.paramNames.includes('id') : true, true);
  }
});

/** What changes or selects many beyond plain lists, and what grants rights. */
const STRICT_BODIES: readonly RouteId[] = [
  'instances.createBatch',
  'instances.bulkState',
  'instances.bulkReschedule',
  'instances.batchAction',
  'instances.pruneCheckpoints',
  'apiKeys.mint',
  'tenantLimits.put',
  'events.sendBatch',
  'workers.exchange',
  'approvals.link',
  'migrations.migrate',
  'sequences.migrateInstances',
  // A misspelt `context` would run it again with the data that it failed of.
  'instances.retry',
];
const STRICT_QUERIES: readonly RouteId[] = [
  'instances.timeline',
  'sequences.delete',
  'changes.list',
  'changes.stream',
  'workers.stats',
  'handlers',
  'approvals.list',
  'instances.failures',
  'queues.list',
  'activity.get',
  'releases.series',
];

test('lists, changes of many and what grants rights refuse unknown members; nothing else does', () => {
  const isClosed = (schema: TSchema | undefined) => schema?.additionalProperties === false;
  for (const { id, body, query, replies } of Object.values(ROUTES)) {
    assert.equal(isClosed(body), STRICT_BODIES.includes(id), `the body of ${id}`);
    if (query === undefined) continue;
    const isList = replies[200]?.type === 'array';
    assert.equal(isClosed(query), isList || STRICT_QUERIES.includes(id), `the query of ${id}`);
  }
  const filter = ROUTES['instances.batchAction'].body?.properties.filter;
  assert.ok(isClosed(filter));
});

test('whatever changes many can be asked for a dry run', () => {
  for (const id of [...STRICT_BODIES.slice(1, 5), 'sequences.delete'] as RouteId[]) {
    const { body, query } = ROUTES[id];
    assert.ok((body ?? query)?.properties.dry_run !== undefined, id);
  }
});
