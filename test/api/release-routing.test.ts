/** Where creations go while releases route them, and the validation of releases by replays. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe } from 'node:test';
import type { ScheduleCreated } from '../../schema/cron.js';
import type { TaskInstance } from '../../schema/instance.js';
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
  sleep,
  step,
  type Tenant,
  testsOf,
  transform,
  tryCatch,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { listen } from '../helpers/http-handler.js';
import { act, decisionsOf, look } from '../helpers/releases.js';
import {
  canary,
  expectedVariant,
  keyOn,
  move,
  pair,
  promoted,
  stampOf,
  versions,
} from '../helpers/routed.js';
import { changedTables, snapshotOf } from '../helpers/table-rows.js';

const api = useSharedApi();
const test = testsOf(api);

/** Creates one instance and reads it. */
const created = async (tenant: Tenant, sequence: string, more: Json = {}): Promise<TaskInstance> =>
  tenant.instance(await tenant.create(sequence, more));

/** What the columns say that no caller writes, in the same form as `stampOf`. */
async function attribution(id: string): Promise<string> {
  const { rows } = await api.sql.query<{
    release_id: string | null;
    release_variant: string | null;
  }>('select release_id, release_variant from instances where id = $1', [id]);
  const [row] = rows;
  assert.ok(row);
  return row.release_id === null ? 'none' : `${row.release_variant} of ${row.release_id}`;
}

/** Sequence, stamp and columns of an instance agree with this. */
async function assertRouted(instance: TaskInstance, sequence: string, stamp: string) {
  const { id } = instance;
  const seen = [instance.sequence_id, stampOf(instance), await attribution(id)];
  assert.deepEqual(seen, [sequence, stamp, stamp]);
}

/** The instances of these sequences, whose keys have this prefix or that have none. */
async function instancesOf(tenant: Tenant, ...sequences: string[]): Promise<TaskInstance[]> {
  const lists = await Promise.all(
    sequences.map((sequence) =>
      tenant.get<TaskInstance[]>(`/instances?limit=1000&sequence_id=${sequence}`),
    ),
  );
  return lists.flatMap((list) => expectStatus(list, 200));
}

const NEEDS = { type: 'object', required: ['customer'] };

describe('a canary', () => {
  test('Routing follows the FNV hash of idempotency_key, or else of metadata.cohort_key', async (tenant) => {
    const [v1, v2] = await pair(tenant);
    const release = await canary(tenant, v1, v2, 40);
    const keys = ['ключ-1', 'a', ...Array.from({ length: 8 }, () => randomUUID())];
    await Promise.all(
      keys.flatMap(async (key, at) => {
        const variant = expectedVariant(release, key, 40);
        const target = variant === 'candidate' ? v2 : v1;
        const other = keys[(at + 1) % keys.length];
        for (const more of [
          { idempotency_key: key, metadata: { cohort_key: other } },
          { metadata: { cohort_key: key } },
          { idempotency_key: key, dry_run: true },
        ]) {
          await assertRouted(await created(tenant, v1, more), target, `${variant} of ${release}`);
        }
      }),
    );
  });

  test('A routed instance has the sequence_id and the stamp of its side', async (tenant) => {
    const definitions = ['one', 'two'].map((id) => ({ blocks: [step(id, 'noop')] }));
    const [v1 = '', v2 = ''] = await versions(tenant, ...definitions);
    const release = await canary(tenant, v1, v2, 50);
    for (const [variant, sequence, block] of [
      ['candidate', v2, 'two'],
      ['baseline', v1, 'one'],
    ] as const) {
      const idempotency_key = keyOn(release, variant, 50);
      const id = await tenant.create(v1, { idempotency_key, metadata: { own: 1 } });
      const instance = await tenant.until(id, 'completed');
      await assertRouted(instance, sequence, `${variant} of ${release}`);
      assert.deepEqual(instance.metadata, { own: 1, release: { release_id: release, variant } });
      assert.deepEqual(await tenant.rowsOf(id), [block]);
    }
  });

  test('splits creations without a key one by one', async (tenant) => {
    const [v1, v2] = await pair(tenant);
    const release = await canary(tenant, v1, v2, 50);
    const metadata = { cohort_key: 5 };
    const all = await Promise.all(Array.from(Array(40), () => created(tenant, v1, { metadata })));
    const stamps = new Set(all.map(stampOf));
    assert.deepEqual(stamps, new Set([`baseline of ${release}`, `candidate of ${release}`]));
  });

  test('judges the data by the version that the instance gets', async (tenant) => {
    const [v1, v2] = await versions(tenant, {}, { input_schema: NEEDS });
    assert.ok(v1 && v2);
    const release = await canary(tenant, v1, v2, 50);
    const idempotency_key = keyOn(release, 'candidate', 50);
    const refused = tenant.creation(v1, { idempotency_key });
    expectStatus(await tenant.post('/instances', refused), 422);
    expectStatus(await tenant.post('/instances/batch', { instances: [refused] }), 422);
    expectStatus(
      await tenant.post(
        '/instances',
        tenant.creation(v1, { metadata: { cohort_key: idempotency_key } }),
      ),
      422,
    );
    await created(tenant, v1, { idempotency_key: keyOn(release, 'baseline', 50) });
    const taken = await created(tenant, v1, {
      idempotency_key,
      context: { data: { customer: 1 } },
    });
    assert.equal(taken.sequence_id, v2);
  });

  test('leaves instances alone that run', async () => {
    const [tenant, handler] = [api.tenant(), newHandler()];
    const blocks = [step('a', handler)];
    const [v1, v2] = await versions(tenant, { blocks }, { blocks });
    assert.ok(v1 && v2);
    const before = await tenant.create(v1);
    const release = await canary(tenant, v1, v2, 100);
    const during = await tenant.create(v1);
    await move(tenant, release, 'rollback');
    await tenant.fail(await tenant.task(handler), 'no');
    await tenant.fail(await tenant.task(handler), 'no');
    for (const id of [before, during]) {
      expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
    }
    await assertRouted(await tenant.instance(before), v1, 'none');
    await assertRouted(await tenant.instance(during), v2, `candidate of ${release}`);
  });

  test('routes each item of a batch like a creation of its own', async (tenant) => {
    const [v1, v2] = await pair(tenant);
    const release = await canary(tenant, v1, v2, 30);
    const keys = Array.from({ length: 10 }, () => randomUUID());
    const instances = [
      ...keys.map((idempotency_key) => tenant.creation(v1, { idempotency_key })),
      ...keys.map((cohort_key) => tenant.creation(v1, { metadata: { cohort_key } })),
      tenant.creation(v2, { metadata: { release: { release_id: release, variant: 'x' } } }),
    ];
    const reply = await tenant.post('/instances/batch', { instances });
    assert.deepEqual(expectStatus(reply, 201), { count: 21, created: 21 });
    for (const instance of await instancesOf(tenant, v1, v2)) {
      const key = instance.idempotency_key ?? instance.metadata.cohort_key;
      if (key === undefined) await assertRouted(instance, v2, 'none');
      else {
        const variant = expectedVariant(release, String(key), 30);
        await assertRouted(instance, variant === 'candidate' ? v2 : v1, `${variant} of ${release}`);
      }
    }
  });

  test('routes what schedules create, by the cohort key of the schedule', async (tenant) => {
    const [v1, v2] = await pair(tenant);
    const release = await canary(tenant, v1, v2, 50);
    const place = { tenant_id: tenant.name, namespace: 'test', sequence_id: v1 };
    const cohort_key = keyOn(release, 'candidate', 50);
    const forged = { release_id: release, variant: 'forged' };
    for (const metadata of [
      { cohort_key, release: forged },
      { which: 'baseline', cohort_key: keyOn(release, 'baseline', 50) },
    ]) {
      const body = { ...place, cron_expr: '0 0 0 1 1 ? 2998', metadata };
      const { id } = expectStatus(await tenant.post<ScheduleCreated>('/cron', body), 201);
      expectStatus(await tenant.post(`/cron/${id}/run`), 201);
    }
    const fired = await instancesOf(tenant, v1, v2);
    assert.equal(fired.length, 2);
    for (const instance of fired) {
      const variant = instance.metadata.which ?? 'candidate';
      await assertRouted(instance, variant === 'candidate' ? v2 : v1, `${variant} of ${release}`);
    }
  });
});

describe('other states', () => {
  test('After a promotion at 1 %, every creation on the baseline goes to the candidate', async (tenant) => {
    const [v1, v2] = await pair(tenant);
    const release = await promoted(tenant, v1, v2);
    for (const more of [{}, { idempotency_key: 'a' }, { metadata: { cohort_key: 'b' } }]) {
      await assertRouted(await created(tenant, v1, more), v2, `candidate of ${release}`);
    }
  });

  test('A paused or rolled back release routes to the baseline without a stamp, and so does a creation on the candidate id', async (tenant) => {
    const [v1, v2] = await pair(tenant);
    const release = await canary(tenant, v1, v2, 100);
    await assertRouted(await created(tenant, v1), v2, `candidate of ${release}`);
    await assertRouted(await created(tenant, v2), v2, 'none');
    await move(tenant, release, 'pause');
    await assertRouted(await created(tenant, v1), v1, 'none');
    await move(tenant, release, 'canary', { percent: 100 });
    await assertRouted(await created(tenant, v1), v2, `candidate of ${release}`);
    await move(tenant, release, 'rollback');
    await assertRouted(await created(tenant, v1), v1, 'none');
    await assertRouted(await created(tenant, v2), v2, 'none');
  });
});

// ---------------------------------------------------------------- validation

const tenant = api.tenant();

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
  test('Validation: an identical candidate matches, an added step is in blocks_added, and a failed run that now completes is a divergence without blocks', async () => {
    const a = transform('a', { n: 1 });
    assert.deepEqual(await compare(tenant, [a], [a]), { ...matched(1), release_state: 'ready' });

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

  test('Validation: sample 0 replays 1 run and 9999 replays 50 of 52, with at most 20 divergence entries', async () => {
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

  test('Validation without history replays 0 runs, and the release is ready', async () => {
    const release = await draftOf(tenant, [step('a', 'noop')], [step('a', 'noop')]);
    assert.deepEqual(await validate(tenant, release), { ...ZERO, release_state: 'ready' });
    assert.equal((await look(tenant, release)).state, 'ready');
  });

  test('The release shows validation_summary and validated_at, and the decision is by `validation`', async () => {
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

  test('Validation with a deleted candidate is 404 and leaves a draft, which can skip validation', async () => {
    const release = await draftOf(tenant, [step('a', 'noop')], [step('a', 'noop')]);
    expectStatus(await tenant.delete(`/sequences/${release.candidate_sequence_id}`), 204);
    expectStatus(await act(tenant, release, 'validate'), 404);
    assert.equal((await look(tenant, release)).state, 'draft');
    const decisions = await decisionsOf(tenant, release);
    const { from_state, to_state, actor } = decisions.at(-1) ?? {};
    assert.deepEqual([from_state, to_state, actor], ['validating', 'draft', 'validation']);
    assert.equal((await validate(tenant, release, { skip: true })).release_state, 'ready');
  });

  test('replays runs of all kinds of blocks, with workers, retries and signals, as matches', async (_, t) => {
    const { origin: url } = await listen(t, (_, response) => response.end('taken'));
    const [handler, flaky] = [newHandler(), newHandler()];
    const blocks = [
      router('early', { 'data.go': [step('late', 'noop')] }, [step('first', handler)]),
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

  test('changes nothing of the runs, and reaches nobody', async (_, t) => {
    const { origin: url, connects } = await listen(t, (_, response) => {
      response.setHeader('connection', 'close').end('taken');
    });
    const own = api.tenant();
    const ask = (id: string) => step(id, 'http_request', { params: { url, body: { secret: 1 } } });
    const baseline = [step('a', 'log', { params: { message: 'hello' } }), ask('b')];
    const candidate = [...baseline, ask('c'), step('d', newHandler()), sleep('e', 60_000)];
    const release = await draftOf(own, baseline, candidate);
    for (let runs = 0; runs < 3; runs += 1) await ended(own, release);
    const sent = connects();
    const before = await snapshotOf(api.database.connectionString, [own.name]);
    const report = await validate(own, release);
    assert.deepEqual([report.replayed, report.diverged], [3, 3]);
    assert.deepEqual(report.divergences[0]?.blocks_added, ['c', 'd', 'e']);
    const after = await snapshotOf(api.database.connectionString, [own.name]);
    assert.deepEqual(
      changedTables(before, after),
      ['actions', 'release_decisions', 'releases'].map((table) => `${table} of ${own.name}`),
    );
    assert.equal(connects(), sent);
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
