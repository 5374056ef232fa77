/** The validation of releases by a replay of ended runs, over HTTP. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import type pg from 'pg';
import type { Release, ValidationReport } from '../../schema/release.js';
import {
  eventually,
  forEach,
  type Json,
  loop,
  newHandler,
  parallel,
  race,
  router,
  type SharedApi,
  sharedApi,
  sleep,
  step,
  type Tenant,
  transform,
  tryCatch,
  useApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { act, decisionsOf, look } from '../helpers/releases.js';

const ZERO = { replayed: 0, matches: 0, diverged: 0, inconclusive: 0, divergences: [] };

/** Takes more turns than a replay may have. */
const endless = [
  step('a', 'noop'),
  loop('l', 'true', [loop('m', 'true', [step('b', 'noop')], 100_000)], 100_000),
];

/** A draft that leads from one definition to another. */
async function draftOf(
  tenant: Tenant,
  baseline: Json[],
  candidate: Json[],
  more: Json = {},
): Promise<Release> {
  const name = `s-${randomUUID()}`;
  const body = {
    baseline_sequence_id: await tenant.sequence(baseline, { name, version: 1 }),
    candidate_sequence_id: await tenant.sequence(candidate, { name, version: 2, ...more }),
  };
  return expectStatus(await tenant.post<Release>('/releases', body), 201);
}

async function validate(
  tenant: Tenant,
  release: Release,
  body: Json = {},
): Promise<ValidationReport> {
  return expectStatus(await act<ValidationReport>(tenant, release, 'validate', body), 200);
}

/** An instance of the baseline that ended so. */
async function ended(
  tenant: Tenant,
  { baseline_sequence_id: id }: Release,
  state = 'completed',
  more: Json = {},
): Promise<string> {
  const instance = await tenant.create(id, more);
  await tenant.until(instance, state);
  return instance;
}

/** Definitions, one run, and what its replay says. */
async function compare(
  tenant: Tenant,
  baseline: Json[],
  candidate: Json[],
  state = 'completed',
  more: Json = {},
): Promise<ValidationReport> {
  const release = await draftOf(tenant, baseline, candidate);
  await ended(tenant, release, state, more);
  return validate(tenant, release);
}

const matched = (count: number) => ({ ...ZERO, replayed: count, matches: count });

describe('a validation', () => {
  let api: SharedApi;
  let tenant: Tenant;
  let sink: Server;
  let url: string;
  let requests = 0;

  before(async () => {
    sink = createServer((_, response) => {
      requests += 1;
      response.end('taken');
    });
    await new Promise<void>((resolve) => {
      sink.listen(0, '127.0.0.1', resolve);
    });
    url = `http://127.0.0.1:${(sink.address() as AddressInfo).port}`;
    api = await sharedApi();
    tenant = api.tenant();
  });
  after(async () => {
    await api.stop();
    sink.closeAllConnections();
    sink.close();
  });

  test('identical candidate, recorded output, completed run → match; added step → blocks_added; recorded failed vs replay completed → divergence with empty block lists', async () => {
    const a = transform('a', { n: 1 });
    const same = await compare(tenant, [a], [a]);
    assert.deepEqual(same, { ...matched(1), release_state: 'ready' });

    const release = await draftOf(tenant, [a], [a, step('b', 'noop')]);
    const instance_id = await ended(tenant, release);
    const divergence = {
      instance_id,
      recorded_state: 'completed',
      replayed_state: 'completed',
      blocks_added: ['b'],
      blocks_removed: [],
    };
    const added = await validate(tenant, release);
    const counts = { ...ZERO, replayed: 1, diverged: 1 };
    assert.deepEqual(added, { ...counts, divergences: [divergence], release_state: 'ready' });

    for (const candidate of [[a, step('bad', 'noop')], [a]]) {
      const fixed = await compare(tenant, [a, step('bad', 'fail')], candidate, 'failed');
      const [only] = fixed.divergences;
      assert.deepEqual(
        [only?.recorded_state, only?.replayed_state, only?.blocks_added, only?.blocks_removed],
        ['failed', 'completed', [], []],
      );
      assert.deepEqual([fixed.diverged, fixed.release_state], [1, 'ready']);
    }
  });

  test('sample 0 → 1 replay; 9999 with 52 runs → 50 replays, 20 divergence entries, 0 matches (no recordings)', async () => {
    const waits = [sleep('a', 600_000)];
    const few = await draftOf(tenant, waits, waits);
    const many = await draftOf(tenant, waits, waits);
    // Ended by request, so that nothing of them is recorded.
    const end = async (release: Release) => {
      const id = await tenant.create(release.baseline_sequence_id);
      await tenant.until(id, 'running');
      await tenant.move(id, 'completed');
    };
    await Promise.all([end(few), end(few), ...Array.from({ length: 52 }, () => end(many))]);
    const one = await validate(tenant, few, { sample: 0 });
    assert.deepEqual([one.replayed, one.matches], [1, 0]);
    const all = await validate(tenant, many, { sample: 9_999 });
    assert.deepEqual(
      [all.replayed, all.matches, all.diverged, all.inconclusive, all.divergences.length],
      [50, 0, 50, 0, 20],
    );
    for (const { blocks_added } of all.divergences) assert.deepEqual(blocks_added, ['a']);
  });

  test('no history → replayed 0, ready', async () => {
    const release = await draftOf(tenant, [step('a', 'noop')], [step('a', 'noop')]);
    assert.deepEqual(await validate(tenant, release), { ...ZERO, release_state: 'ready' });
    assert.equal((await look(tenant, release)).state, 'ready');
  });

  test('validation_summary readable on the release with validated_at; decision validating→ready by actor `validation`', async () => {
    const release = await draftOf(tenant, [step('a', 'noop')], [step('a', 'noop')]);
    await ended(tenant, release);
    const { release_state, ...evidence } = await validate(tenant, release);
    assert.equal(release_state, 'ready');
    const stored = await look(tenant, release);
    const { validated_at, ...summary } = stored.validation_summary ?? { validated_at: '' };
    assert.deepEqual(summary, evidence);
    assert.ok(Date.parse(validated_at) >= Date.parse(release.created_at));
    const decisions = await decisionsOf(tenant, release);
    assert.deepEqual(
      decisions.map(({ from_state, to_state, actor }) => `${from_state}→${to_state} ${actor}`),
      ['draft→draft operator', 'draft→validating operator', 'validating→ready validation'],
    );
    assert.match(decisions.at(-1)?.reason ?? '', /1 replayed.*1 matched/);
  });

  test('candidate deleted before validate → 404, release back in draft, skip-validate then works', async () => {
    const release = await draftOf(tenant, [step('a', 'noop')], [step('a', 'noop')]);
    expectStatus(await tenant.delete(`/sequences/${release.candidate_sequence_id}`), 204);
    expectStatus(await act(tenant, release, 'validate'), 404);
    assert.equal((await look(tenant, release)).state, 'draft');
    const decisions = await decisionsOf(tenant, release);
    const { from_state, to_state, actor } = decisions.at(-1) ?? {};
    assert.deepEqual([from_state, to_state, actor], ['validating', 'draft', 'validation']);
    assert.equal((await validate(tenant, release, { skip: true })).release_state, 'ready');
  });

  test('replays runs of all kinds of blocks, with workers, retries and signals, as matches', async () => {
    const [handler, flaky] = [newHandler(), newHandler()];
    const blocks = [
      step('first', handler),
      parallel('p', [sleep('p1', 5)], [step('p2', 'http_request', { params: { url } })]),
      race('r', [[step('fast', 'noop')], [step('slow', newHandler())]] as Json[][]),
      forEach('f', 'items', [transform('each', { got: '{{ data.item }}' })]),
      tryCatch('t', [step('bad', 'fail')], [step('caught', 'noop')], [step('last', 'noop')]),
      loop('l', 'true', [step('pass', 'noop')], 3),
      step('again', flaky, { retry: { max_attempts: 3, initial_backoff: 1 } }),
      router('way', { 'data.go': [step('yes', 'noop')] }, [step('no', 'noop')]),
      step('end', handler),
    ];
    const release = await draftOf(tenant, blocks, blocks);
    const id = await tenant.create(release.baseline_sequence_id, {
      context: { data: { items: [1, 2], go: false } },
    });
    await tenant.complete(await tenant.task(handler), { go: false });
    await tenant.fail(await tenant.task(flaky), 'not yet', true);
    await tenant.signal(id, 'update_context', { go: true });
    await tenant.complete(await tenant.task(flaky), { done: 1 });
    await tenant.complete(await tenant.task(handler));
    await tenant.until(id, 'completed');
    assert.ok((await tenant.rowsOf(id)).includes('yes'));
    assert.deepEqual(await validate(tenant, release), { ...matched(1), release_state: 'ready' });
  });

  test('takes what was recorded for the same call only, and names what differs', async () => {
    const handler = newHandler();
    const blocks = (amount: string, path: string) => [
      step('charge', handler, {
        params: { order: { amount } },
        retry: { max_attempts: 2, initial_backoff: 1 },
      }),
      step('tell', 'http_request', { params: { url: `${url}${path}`, method: 'POST' } }),
      tryCatch('t', [step('bad', 'http_request', { params: { url: 'no url', path } })], []),
    ];
    const of = async (candidate: Json[]) => {
      const release = await draftOf(tenant, blocks('{{data.total}}', '/a'), candidate);
      const id = await tenant.create(release.baseline_sequence_id, {
        context: { data: { total: '5', sum: '5' } },
      });
      await tenant.fail(await tenant.task(handler), 'later', true);
      await tenant.complete(await tenant.task(handler));
      await tenant.until(id, 'completed');
      return validate(tenant, release);
    };
    const same = await of(blocks('{{data.sum}}', '/a'));
    assert.deepEqual(same, { ...matched(1), release_state: 'ready' });
    const other = await of(blocks('{{data.total}}0', '/b'));
    assert.deepEqual(other.divergences[0]?.calls_changed, [
      { block_id: 'charge', member: 'params.order.amount' },
      { block_id: 'tell', member: 'params.url' },
      { block_id: 'bad', member: 'params.path' },
    ]);
    const added = loop('l', 'true', [step('tell', 'http_request', { params: { url } })], 2);
    const once = loop('l', 'true', [step('tell', 'http_request', { params: { url } })], 1);
    const unclear = await compare(tenant, [once], [added]);
    assert.deepEqual([unclear.diverged, unclear.inconclusive], [0, 1]);
    const { reason } = unclear.inconclusive_runs?.[0] ?? {};
    assert.equal(reason, 'step tell makes a call that nobody recorded');
  });

  test('runs what needs nothing but its parameters', async () => {
    const check = (name: string) => [step('a', 'assert', { params: { condition: `${name} > 0` } })];
    const more = { context: { data: { amount: 5 } } };
    const misspelt = await compare(tenant, check('amount'), check('ammount'), 'completed', more);
    const [only] = misspelt.divergences;
    assert.deepEqual([only?.recorded_state, only?.replayed_state], ['completed', 'failed']);
  });

  test('replays a failure of a worker as a failure', async () => {
    const handler = newHandler();
    const blocks = [step('a', 'noop'), step('b', handler), step('c', 'noop')];
    const release = await draftOf(tenant, blocks, blocks);
    const id = await tenant.create(release.baseline_sequence_id);
    await tenant.fail(await tenant.task(handler), 'no such order');
    await tenant.until(id, 'failed');
    assert.deepEqual(await validate(tenant, release), { ...matched(1), release_state: 'ready' });
  });

  test('begins with the data as it was at creation', async () => {
    const handler = newHandler();
    const blocks = [
      router('way', { 'data.go': [step('yes', 'noop')] }, [step('no', 'noop')]),
      step('a', handler),
    ];
    const release = await draftOf(tenant, blocks, blocks);
    const id = await tenant.create(release.baseline_sequence_id, {
      context: { data: { go: true } },
    });
    await tenant.complete(await tenant.task(handler), { go: false });
    await tenant.until(id, 'completed');
    assert.deepEqual(await validate(tenant, release), { ...matched(1), release_state: 'ready' });
  });

  test('takes the newest runs of the baseline that completed or failed, and no dry runs', async () => {
    const handler = newHandler();
    const blocks = [step('a', 'noop'), step('b', handler)];
    const release = await draftOf(tenant, blocks, blocks);
    const of = (more: Json = {}) => tenant.create(release.baseline_sequence_id, more);
    const cancelled = await of();
    await tenant.task(handler);
    await tenant.signal(cancelled, 'cancel');
    await tenant.until(cancelled, 'cancelled');
    await of();
    const done = await of({ namespace: 'another' });
    for (let left = 2; left > 0; left -= 1) {
      const task = await tenant.task(handler);
      if (task.instance_id === done) await tenant.complete(task);
    }
    await tenant.until(done, 'completed');
    expectStatus(
      await tenant.post(`/instances/${done}/fork`, { from_block_id: 'a', dry_run: true }),
      201,
    );
    const { replayed, matches } = await validate(tenant, release);
    assert.deepEqual([replayed, matches], [1, 1]);
  });

  test('is inconclusive about a run of blocks of its own, and about data that the candidate refuses', async () => {
    const handler = newHandler();
    const blocks = [step('a', handler)];
    const injected = await draftOf(tenant, blocks, blocks);
    const id = await tenant.create(injected.baseline_sequence_id);
    const more = { blocks: [step('own', 'noop')] };
    expectStatus(await tenant.post(`/instances/${id}/inject-blocks`, more), 200);
    await tenant.complete(await tenant.task(handler));
    await tenant.until(id, 'completed');
    const counts = { ...ZERO, replayed: 1, inconclusive: 1, release_state: 'ready' };
    const inconclusive_runs = [{ instance_id: id, reason: 'it ran blocks of its own' }];
    assert.deepEqual(await validate(tenant, injected), { ...counts, inconclusive_runs });

    const noop = [step('a', 'noop')];
    const input_schema = { type: 'object', required: ['order'] };
    const narrowed = await draftOf(tenant, noop, noop, { input_schema });
    const instance_id = await ended(tenant, narrowed);
    const reason = 'the candidate does not take its data';
    const seen = await validate(tenant, narrowed);
    assert.deepEqual(seen, { ...counts, inconclusive_runs: [{ instance_id, reason }] });
  });

  test('changes nothing of the runs, and reaches nobody', async () => {
    const own = api.tenant();
    const params = { url, method: 'POST', body: { secret: 1 } };
    const baseline = [
      step('a', 'log', { params: { message: 'hello' } }),
      step('b', 'http_request', { params }),
    ];
    const handler = newHandler();
    const candidate = [
      ...baseline,
      step('c', 'http_request', { params }),
      step('d', handler),
      sleep('e', 60_000),
    ];
    const release = await draftOf(own, baseline, candidate);
    const instances = await Promise.all(Array.from({ length: 5 }, () => ended(own, release)));
    const sent = requests;
    const before = await rowsOf(api.sql, instances);
    const report = await validate(own, release);
    assert.deepEqual([report.replayed, report.diverged], [5, 5]);
    assert.deepEqual(report.divergences[0]?.blocks_added, ['c', 'd', 'e']);
    assert.deepEqual(await rowsOf(api.sql, instances), before);
    assert.equal(requests, sent);
    assert.deepEqual(await own.tasks(handler), []);
    const { rows } = await api.sql.query(
      'select (select count(*)::int from instances where tenant_id = $1) as instances, ' +
        '(select count(*)::int from worker_tasks where tenant_id = $1) as tasks',
      [own.name],
    );
    assert.deepEqual(rows, [{ instances: 5, tasks: 0 }]);
  });

  test('a replay that would never end is inconclusive', async () => {
    const report = await compare(tenant, [step('a', 'noop')], endless);
    assert.deepEqual([report.replayed, report.inconclusive], [1, 1]);
    assert.equal(report.release_state, 'ready');
  });

  test('a candidate that cannot run at all fails its release', async () => {
    const release = await draftOf(tenant, [step('a', 'noop')], [step('a', 'noop')]);
    const twice = JSON.stringify({ blocks: [step('a', 'noop'), step('a', 'noop')] });
    await api.sql.query('update sequences set definition = $1 where id = $2', [
      twice,
      release.candidate_sequence_id,
    ]);
    assert.deepEqual(await validate(tenant, release), { ...ZERO, release_state: 'failed' });
    const stored = await look(tenant, release);
    assert.deepEqual([stored.state, stored.validation_summary], ['failed', undefined]);
    const decision = (await decisionsOf(tenant, release)).at(-1);
    assert.match(decision?.reason ?? '', /cannot run.*not unique/);
    assert.equal(decision?.actor, 'validation');
  });

  test('of two validations of one release, one is a conflict', async () => {
    const release = await draftOf(tenant, [step('a', 'noop')], [step('a', 'noop')]);
    const replies = await Promise.all([
      act(tenant, release, 'validate'),
      act(tenant, release, 'validate'),
    ]);
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 409]);
  });

  test('goes on when its caller has gone', async () => {
    const release = await draftOf(tenant, [step('a', 'noop')], endless);
    await ended(tenant, release);
    const gone = new AbortController();
    const reply = tenant.post(`/releases/${release.id}/validate`, {}, gone.signal);
    // On a machine that is busy elsewhere it may be answered before the caller goes.
    const left = reply.then(
      () => undefined,
      () => undefined,
    );
    await eventually(async () => assert.notEqual((await look(tenant, release)).state, 'draft'));
    gone.abort();
    await left;
    await eventually(async () => assert.equal((await look(tenant, release)).state, 'ready'));
  });
});

/** A hash of every row of the instances, by table. */
async function rowsOf(sql: pg.Pool, instances: readonly string[]): Promise<Json> {
  const hashes: Json = {};
  const { rows: tables } = await sql.query<{ name: string; key: string }>(
    "select table_name as name, column_name as key from information_schema.columns where table_schema = 'public' " +
      "and (column_name = 'instance_id' or (table_name = 'instances' and column_name = 'id'))",
  );
  assert.ok(tables.length > 8);
  for (const { name, key } of tables) {
    const { rows } = await sql.query<{ hash: string | null }>(
      `select md5(string_agg(t::text, '|' order by t::text)) as hash from ${name} t where ${key} = any($1::uuid[])`,
      [instances],
    );
    hashes[name] = rows[0]?.hash;
  }
  return hashes;
}

describe('a validation under way', () => {
  const api = useApi({ env: { ENGINE_SHARDS: '2' } });
  const tenant = api.tenant();

  /** Its replays take as long as they may, one after the other. */
  async function costly(): Promise<Release> {
    const release = await draftOf(tenant, [step('a', 'noop')], endless);
    await Promise.all(Array.from({ length: 10 }, () => ended(tenant, release)));
    return release;
  }

  /** Resolves when it is under way. */
  async function begin(release: Release): Promise<{ status: Promise<number | 'cut off'> }> {
    const reply = act(tenant, release, 'validate', { sample: 50 });
    const status = reply.then(
      ({ status }) => status,
      () => 'cut off' as const,
    );
    await eventually(async () => assert.equal((await look(tenant, release)).state, 'validating'));
    return { status };
  }

  test('holds nobody up, and is a draft again after a kill', async () => {
    const release = await costly();
    const { status } = await begin(release);
    await tenant.runUntil('completed', [step('a', 'noop'), sleep('b', 1)]);
    assert.equal((await look(tenant, release)).state, 'validating');
    await api.restart();
    assert.equal(await status, 'cut off');
    await eventually(async () => assert.equal((await look(tenant, release)).state, 'draft'));
    const decision = (await decisionsOf(tenant, release)).at(-1);
    assert.deepEqual(
      [decision?.from_state, decision?.to_state, decision?.actor],
      ['validating', 'draft', 'validation'],
    );
    assert.ok(decision?.reason);
    assert.equal((await validate(tenant, release, { skip: true })).release_state, 'ready');
  });

  // The last one: it ends the server, as the end of the file would.
  test('does not keep the engine from stopping', async () => {
    const { status } = await begin(await costly());
    assert.equal((await api.engine.stop()).code, 0);
    assert.ok(['cut off', 503].includes(await status));
  });
});
