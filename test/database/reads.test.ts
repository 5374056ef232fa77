/**
 * The operations that the front thread answers from Postgres, over rows that were written with the
 * writer's own statements from the records that actors hold. Every reply is checked against the
 * wire contract.
 */

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, type TestContext, test } from 'node:test';
import type pg from 'pg';
import { pino } from 'pino';
import { BulkJobs } from '../../actors/bulk/front/jobs.js';
import { bulkOperations } from '../../actors/bulk/front/room.js';
import { added, NOTHING_YET, type WindowDeps } from '../../actors/bulk/front/work.js';
import type { BulkProgress } from '../../actors/bulk/jobs.js';
import { candidates } from '../../actors/instance/front/instance-reads.js';
import { instanceOperations } from '../../actors/instance/front/instances.js';
import type { InstanceRecord } from '../../actors/instance/record.js';
import { changeOf, newRecord, wholeLine } from '../../actors/instance/record.js';
import { wireInstance, wireTask } from '../../actors/instance/wire-texts.js';
import { isOpen, newTask, type WorkerTaskRecord } from '../../actors/instance/worker-task.js';
import { openQueueFront } from '../../actors/queue/front/workers.js';
import type { BulkJob } from '../../schema/bulk-job.js';
import type { RouteId } from '../../schema/routes.js';
import { type InstanceState, isTerminal } from '../../schema/states.js';
import { createValidators } from '../../schema/validators.js';
import { EngineError } from '../../src/base/errors.js';
import type { JsonObject } from '../../src/base/json.js';
import { realClock } from '../../src/base/real-clock.js';
import { isoTime } from '../../src/base/time.js';
import { createPool, type PoolOptions } from '../../src/db/pool.js';
import { createReads, READ_POOL_OPTIONS } from '../../src/db/reads.js';
import type { FrontDeps, UncheckedCall } from '../../src/http/operation.js';
import { createTestDatabase, type TestDatabase } from '../helpers/database.js';
import { frontCall } from '../helpers/front-call.js';
import { STATEMENTS } from '../helpers/store.js';
import { readRow } from '../helpers/unit-rows.js';

const changeMany: WindowDeps['changeMany'] = async (tenant, ids, change) => {
  assert.equal(tenant, 'acme');
  assert.ok(change.kind === 'state');
  moves.push(ids);
  const { rowCount } = await writer.query(
    'update instances set state = $2::text where id = any($1::uuid[])',
    [[...ids], change.state],
  );
  return { applied: rowCount ?? 0, skipped: 0, failed: 0 };
};
const lookups = { repeating: async () => 0, orphans: async () => new Set<string>() };
const jobs = new BulkJobs({
  clock: realClock,
  now: Date.now,
  log: pino({ level: 'silent' }),
  open: async () => [],
  nextAt: async () => undefined,
  standing: async () => undefined,
  candidates: ({ filter }, limit, place) => candidates(deps.reads, filter, limit, place),
  change: (_job, ...args) => changeMany(...args),
  ...lookups,
  progress: async (_id, progress) => {
    told.push(progress);
    return JOB;
  },
});

const operations = {
  ...instanceOperations,
  ...bulkOperations({
    clock: { monotonic: () => monotonic() },
    jobs: { runInline: (...args) => jobs.runInline(...args), wake: () => undefined },
    begin: async (tenant, job) => {
      begun.push({ tenant, ...job });
      return JOB;
    },
    ...lookups,
    changeMany,
  }),
  ...openQueueFront().operations,
};
type OperationId = keyof typeof operations;

const T0 = Date.UTC(2025, 0, 31, 12);
const validators = createValidators();

let database: TestDatabase;
let pool: pg.Pool;
/** Writes the rows, and does what the tests do behind the back of the reads. */
let writer: pg.Pool;
let deps: FrontDeps;
/** Of those who have patience for a time. */
let monotonic = () => 0;
/** The jobs that were begun, and what was told of them. */
let begun: object[] = [];
let told: BulkProgress[] = [];
const SEQUENCE = '0195ffff-0000-7000-8000-000000000001';
const JOB: BulkJob = {
  id: SEQUENCE,
  tenant_id: 'acme',
  operation: 'state',
  request: {},
  state: 'running',
  ...NOTHING_YET,
  error: null,
  requested_by: null,
  created_at: isoTime(T0),
  updated_at: isoTime(T0),
  ended_at: null,
  next_at: null,
};
/** What `changeMany` was asked. */
let moves: (readonly string[])[] = [];

before(async () => {
  database = await createTestDatabase();
  pool = createPool({
    ...READ_POOL_OPTIONS,
    connectionString: database.connectionString,
    applicationName: 'reads-test',
    onError: () => undefined,
  });
  writer = createPool({
    connectionString: database.connectionString,
    applicationName: 'reads-test-writer',
    connectionsMax: 2,
    onError: () => undefined,
  });
  deps = {
    reads: createReads(pool),
    now: () => T0 + 3_600_000,
    keyring: undefined,
    admitTenant: () => undefined,
  };
});

after(async () => {
  await pool.end();
  await writer.end();
  await database.drop();
});

beforeEach(async () => {
  moves = [];
  begun = [];
  told = [];
  monotonic = () => 0;
  await writer.query(
    'truncate instances, dead_letters, block_outputs, audit_log, worker_tasks, workers',
  );
});

// ---------------------------------------------------------------- what the tests share

interface Reply<T> {
  readonly text: string;
  readonly body: T;
  readonly link: string | undefined;
  readonly location: string | undefined;
  readonly cursor: string | undefined;
}

/** Runs the operation as a router would, and checks its answer against the contract. */
async function ask<T = { id: string }[]>(
  id: OperationId,
  call: Partial<UncheckedCall> = {},
  using: FrontDeps = deps,
  status = 200,
): Promise<Reply<T>> {
  const reply = await operations[id](using, frontCall(id, { tenant: 'acme', ...call }) as never);
  assert.equal(reply.status, status);
  const text = String(reply.body);
  const body: unknown = JSON.parse(text);
  assert.equal(validators.describeReply(id as RouteId, status, structuredClone(body)), undefined);
  const headers = new Map(reply.headers ?? []);
  return {
    text,
    body: body as T,
    link: headers.get('link'),
    location: headers.get('location'),
    cursor: headers.get('x-next-cursor'),
  };
}

async function assertRefused(answer: Promise<unknown>, code: EngineError['code'], message: RegExp) {
  await assert.rejects(answer, (error) => {
    assert.ok(error instanceof EngineError, String(error));
    assert.equal(error.code, code);
    assert.match(error.message, message);
    return true;
  });
}

/** Rows are objects, or the texts of objects as actors write them. */
async function put(kind: string, ...rows: readonly (object | string)[]): Promise<void> {
  const texts = rows.map((row) => (typeof row === 'string' ? row : JSON.stringify(row)));
  await writer.query(STATEMENTS[kind]!.text, [`[${texts.join(',')}]`]);
}

let counter = 0;

function newId(): string {
  counter += 1;
  return `01950000-0000-7000-8000-${counter.toString(16).padStart(12, '0')}`;
}

interface Given {
  readonly tenant?: string;
  readonly namespace?: string;
  readonly sequenceId?: string;
  readonly state?: InstanceState;
  readonly createdAt?: number;
  readonly metadata?: JsonObject;
  readonly data?: JsonObject;
  readonly parent?: string;
}

function instance(given: Given = {}): InstanceRecord {
  const record = newRecord(
    {
      id: newId(),
      body: {
        sequence_id: given.sequenceId ?? SEQUENCE,
        tenant_id: given.tenant ?? 'acme',
        namespace: given.namespace ?? 'default',
        metadata: given.metadata ?? {},
        context: { data: given.data ?? {} },
      },
    },
    given.createdAt ?? T0,
    undefined,
  );
  record.snapshot.state = given.state ?? 'scheduled';
  return given.parent === undefined ? record : { ...record, parent_instance_id: given.parent };
}

async function store(...records: readonly InstanceRecord[]): Promise<void> {
  await put(
    'instance.insert',
    ...records.map((record) => readRow('instance.insert', wholeLine(record))),
  );
  const failed = records.filter((record) => record.snapshot.state === 'failed');
  await put(
    'deadLetter.set',
    ...failed.map((record) => ({
      instance_id: record.id,
      tenant_id: record.tenant_id,
      created_at: record.created_at,
      failed_at: record.created_at,
      reason: 'by design',
    })),
  );
}

async function patch(record: InstanceRecord): Promise<void> {
  const [{ kind }, line] = changeOf(record, true);
  assert.equal(kind, 'instance.patch');
  await put(kind, readRow(kind, line));
}

async function stored(given: Given = {}): Promise<InstanceRecord> {
  const record = instance(given);
  await store(record);
  return record;
}

function task(owner: InstanceRecord, changes: Partial<WorkerTaskRecord> = {}): WorkerTaskRecord {
  const made = newTask(
    newId(),
    owner,
    {
      blockId: 'charge',
      node: 0,
      iteration: '',
      handler: 'charge_card',
      queueName: null,
      params: { amount: 5 },
      overlay: null,
      runs: 0,
      attempt: 0,
      timeoutMs: null,
      external: true,
    },
    undefined,
    T0,
  );
  const claim = changes.state === 'claimed' ? { claimed_at: isoTime(T0) } : {};
  return { ...made, ...claim, ...changes };
}

async function storeTasks(...tasks: readonly WorkerTaskRecord[]): Promise<void> {
  const rows = tasks.map((it) => ({
    ...it,
    rank: isOpen(it) ? it.rank : null,
    params: JSON.parse(it.params),
    output: JSON.parse(it.output ?? 'null'),
    resume_checkpoint: JSON.parse(it.resume_checkpoint ?? 'null'),
    overlay: JSON.parse(it.overlay ?? 'null'),
    secrets: JSON.parse(it.secrets ?? 'null'),
    history: JSON.parse(it.history),
  }));
  await put('task.insert', ...rows);
}

const ids = (rows: readonly { readonly id: string }[]) => rows.map((row) => row.id);

// ---------------------------------------------------------------- instances

describe('instances', () => {
  test('an instance is listed exactly as its actor shows it', async () => {
    const plain = await stored();
    const full: InstanceRecord = {
      ...instance({
        createdAt: T0 - 1,
        metadata: { 'a "key"': [1.5e10, null, 'ä\u2028'], __proto__x: {} },
        data: { nested: { deep: [true, '\\"'] }, empty: {} },
        parent: plain.id,
        state: 'waiting',
      }),
      concurrency_key: 'k"ey',
      max_concurrency: 3,
      idempotency_key: 'once',
      priority: 3,
      context_audit: [{ who: 'me' }],
      updated_at: isoTime(T0 + 17),
    };
    full.snapshot.runtime = { run_id: plain.id, attempt: 1 };
    full.snapshot.nextFireAt = null;
    await store(full);
    const { text } = await ask('instances.list');
    assert.equal(text, `[${wireInstance(plain)},${wireInstance(full)}]`);
  });

  test('a context that has changed is shown as it is, with its tasks, too', async () => {
    const data = { nested: { deep: [true] }, seen: false, __proto__x: 1 };
    const record = await stored({ data, state: 'waiting' });
    const given = [task(record), task(record, { overlay: '{"seen":"in a loop"}' })];
    await storeTasks(...given);
    record.snapshot.data = { ...record.snapshot.data, seen: true, paid: { by: 'é' } };
    await patch(record);
    const { text } = await ask('instances.list');
    assert.equal(text, `[${wireInstance(record)}]`);
    const shown = await ask<{ instance: { context: { data: JsonObject } } }>('instances.timeline', {
      params: { id: record.id },
      search: 'include_outputs=true',
    });
    assert.deepEqual(shown.body.instance.context.data, record.snapshot.data);
    const tasks = await ask('workers.tasks');
    const expected = given.map((made) =>
      wireTask(made, record.snapshot, JSON.parse(made.overlay ?? 'null')),
    );
    assert.equal(tasks.text, `[${expected.toReversed().join(',')}]`);
  });

  test('a link cannot be broken out of', async () => {
    await stored({ namespace: 'a>b' });
    const { link } = await ask('instances.list', { search: 'limit=1&namespace=a>b' });
    assert.match(link ?? '', /^<[^<>]*namespace=a%3Eb&cursor=[\w-]+>; rel="next"$/);
  });

  test('the tenant header overrides the query; without it lists span tenants', async () => {
    const mine = await stored();
    const theirs = await stored({ tenant: 'globex', createdAt: T0 - 1 });
    const list = async (call: Partial<UncheckedCall>) =>
      ids((await ask('instances.list', call)).body);
    assert.deepEqual(await list({ search: 'tenant_id=globex' }), [mine.id]);
    assert.deepEqual(await list({ tenant: '' }), [mine.id, theirs.id]);
    assert.deepEqual(await list({ tenant: '', search: 'tenant_id=globex' }), [theirs.id]);
  });

  test('the audit shows the newest 200 entries of packed rows, newest first', async () => {
    const owner = await stored();
    const rows = Array.from({ length: 90 }, (_, at) => ({
      instance_id: owner.id,
      seq: at + 1,
      tenant_id: 'acme',
      created_at: isoTime(T0 + at),
      entries: [0, 1, 2].map((place) => ({
        id: newId(),
        event_type: place === 0 ? (at % 2 === 0 ? 'state_transition' : undefined) : 'step',
        from_state: place === 0 ? 'running' : null,
        to_state: place === 0 ? 'waiting' : undefined,
        block_id: place === 0 ? undefined : 'a',
        details: { number: at * 3 + place },
      })),
    }));
    await put('audit.insert', ...rows);
    const page = (search: string) =>
      ask<{ details?: { number: number } }[]>('instances.audit', {
        params: { id: owner.id },
        search,
      });
    const { body, cursor } = await page('');
    const older = await page(`limit=150&cursor=${cursor}`);
    assert.equal(older.cursor, undefined);
    const numbers = [...body, ...older.body].map(({ details }) => details?.number);
    // The entry of the creation is the oldest.
    const expected = Array.from({ length: 270 }, (_, place) => 269 - place);
    assert.deepEqual(numbers.slice(0, 270), expected);
    assert.equal(body.length, 200);
    assert.deepEqual(body[2], {
      id: rows[89]?.entries[0]?.id,
      instance_id: owner.id,
      tenant_id: 'acme',
      event_type: 'state_transition',
      from_state: 'running',
      to_state: 'waiting',
      details: { number: 267 },
      created_at: isoTime(T0 + 89),
    });
  });

  test('a transition is stored as its id and the codes or names of its states, or without its type and details', async () => {
    const states = { from_state: 'scheduled', to_state: 'running' };
    const forms = [
      (id: string) => [id, 0, 1],
      (id: string) => [id, states.from_state, states.to_state],
      (id: string) => ({ id, ...states }),
    ];
    for (const form of forms) {
      const { id: instance_id } = await stored();
      const id = newId();
      const created_at = isoTime(T0 + 1);
      const later = newId();
      const entries = [
        form(id),
        { event_type: 'step', details: { number: 1 } },
        [1, 2],
        { id: later, event_type: 'step', details: { number: 2 } },
      ];
      await put('audit.insert', { instance_id, seq: 1, tenant_id: 'acme', created_at, entries });
      const params = { id: instance_id };
      const { body } = await ask<{ id: string }[]>('instances.audit', { params });
      const following = (place: number) => `${id.slice(0, 19)}800${place}${id.slice(23)}`;
      const common = { instance_id, tenant_id: 'acme', created_at };
      const transition = { ...common, event_type: 'state_transition', details: {} };
      const step = (number: number) => ({ ...common, event_type: 'step', details: { number } });
      assert.deepEqual(body.slice(0, 4), [
        { id: later, ...step(2) },
        { id: following(2), ...transition, from_state: 'running', to_state: 'waiting' },
        { id: following(1), ...step(1) },
        { id, ...transition, ...states },
      ]);
      const timeline = await ask<{ state_transitions: unknown[] }>('instances.timeline', {
        params,
      });
      assert.deepEqual(timeline.body.state_transitions.slice(-2), [
        { ...states, at: created_at },
        { from_state: 'running', to_state: 'waiting', at: created_at },
      ]);
    }
  });
});

// ---------------------------------------------------------------- bulk change

describe('the bulk change of states', () => {
  const change = (filter: object, call: Partial<UncheckedCall> = {}) =>
    ask<{ count: number; updated: number }>('instances.bulkState', {
      bodyText: JSON.stringify({ filter, state: 'cancelled' }),
      ...call,
    });

  test('every match that is not terminal is moved once, in windows', async () => {
    const states: InstanceState[] = ['scheduled', 'running', 'completed', 'cancelled', 'failed'];
    // Many are of the same instant, which a window must not skip or repeat.
    const records = Array.from({ length: 2_000 }, (_, n) =>
      instance({ state: states[n % 5] as InstanceState, createdAt: T0 + Math.floor(n / 700) }),
    );
    await store(...records, instance({ tenant: 'globex' }));
    const { body } = await change({});
    assert.deepEqual(body, { count: 1_200, updated: 1_200 });
    const seen = moves.map((window) => window.length);
    assert.deepEqual(seen, Array(12).fill(100));
    const movable = records.filter((record) => !isTerminal(record.snapshot.state));
    assert.deepEqual(moves.flat(), ids(movable).reverse());
    assert.deepEqual((await change({})).body, { count: 0, updated: 0 });
  });

  const PATH = '/api/v1/instances/bulk/state';
  const LOCATION = `/api/v1/instances/bulk/jobs/${SEQUENCE}`;
  const asJob = (call: Partial<UncheckedCall>) =>
    ask<object>(
      'instances.bulkState',
      { bodyText: JSON.stringify({ filter: {}, state: 'cancelled' }), path: PATH, ...call },
      deps,
      202,
    );

  test('what takes longer than its caller waits goes on as a job from where it stands', async () => {
    const records = Array.from({ length: 1_200 }, () => instance());
    await store(...records);
    monotonic = () => moves.length * 1_001;
    const { location } = await asJob({});
    assert.equal(location, LOCATION);
    assert.equal(moves.flat().length, 1_000);
    const counts = told.map((progress) => progress.counts).reduce(added);
    assert.deepEqual(counts, { ...NOTHING_YET, matched: 1_000, applied: 1_000 });
    const { place, end } = told.at(-1)!;
    assert.equal(end, undefined);
    const { found } = await candidates(deps.reads, { tenant_id: 'acme' }, 500, place);
    assert.deepEqual(ids(found), ids(records.slice(0, 200).reverse()));
  });

  test('a caller who wants a job gets one before anything is changed', async () => {
    await store(instance());
    const prefers = (text: string) => ({
      header: (name: string) => (name === 'prefer' ? text : undefined),
    });
    await asJob({ search: 'async=true' });
    await asJob(prefers('return=minimal, Respond-Async; wait=5'));
    assert.equal(moves.length, 0);
    assert.deepEqual([begun.length, told], [2, []]);
    const { body } = await change({}, prefers('respond-asynchronously'));
    assert.deepEqual(body, { count: 1, updated: 1 });
  });

  test('matches that are rare are found however many rows lie between them', async () => {
    const many = Array.from({ length: 3_000 }, (_, n) =>
      instance({ createdAt: T0 + n, namespace: n % 1_450 === 0 ? 'rare' : 'default' }),
    );
    await store(...many);
    const rare = { tenant_id: 'acme', namespace: 'rare' };
    const found: string[] = [];
    let looks = 0;
    let place: string | undefined;
    do {
      const so = await candidates(deps.reads, rare, 2, place);
      found.push(...ids(so.found));
      place = so.next;
      looks += 1;
    } while (place !== undefined);
    assert.deepEqual(found, ids(many.filter(({ namespace }) => namespace === 'rare')).reverse());
    assert.ok(looks > 1);
    assert.deepEqual((await change({ namespace: 'rare' })).body, { count: 3, updated: 3 });
  });
});

// ---------------------------------------------------------------- workers

describe('workers', () => {
  test('a task is listed exactly as its actor shows it, unless it was withdrawn', async () => {
    const owner = await stored({ data: { item: 1, kept: [2] }, state: 'waiting' });
    const plain = task(owner);
    const full = task(owner, {
      created_at: isoTime(T0 - 1),
      queue_name: 'slow',
      overlay: '{"item":{"id":9},"runs":0,"new":null}',
      timeout_ms: 5_000_000_000,
      state: 'completed',
      worker_id: 'w "1"',
      claim_epoch: 2,
      claimed_at: isoTime(T0 + 1),
      heartbeat_at: isoTime(T0 + 2),
      completed_at: isoTime(T0 + 3),
      output: '{"paid":true}',
      error_message: 'no',
      error_retryable: false,
      checkpoint_seq: 4,
      resume_checkpoint: '{"page":3}',
    });
    await storeTasks(full, plain, task(owner, { state: 'failed', withdrawn: true }));
    const { text } = await ask('workers.tasks');
    const expected = [plain, full].map((made) =>
      wireTask(made, owner.snapshot, JSON.parse(made.overlay ?? 'null')),
    );
    assert.equal(text, `[${expected.join(',')}]`);
  });

  test('the attempts of a task stay readable after it was withdrawn', async () => {
    const owner = await stored();
    const made = task(owner, { state: 'failed', withdrawn: true, worker_id: 'w1', claim_epoch: 1 });
    const entry = { task_id: made.id, claim_epoch: 1, created_at: isoTime(T0) };
    const history = [
      { ...entry, id: newId(), worker_id: 'w1', event: 'claimed' },
      { ...entry, id: newId(), worker_id: 'w1', event: 'failed', reason: 'broke' },
      { ...entry, id: newId(), event: 'cancelled' },
    ];
    made.history = JSON.stringify(history);
    await storeTasks(made);
    const params = { id: made.id };
    const { text } = await ask('workers.attempts', { params });
    assert.equal(text, made.history);
    const page = await ask('workers.attempts', { params, search: 'offset=1&limit=1' });
    assert.deepEqual(page.body, [history[1]]);
    assert.match(page.link ?? '', /offset=2/);
    for (const call of [{ params, tenant: 'globex' }, { params: { id: newId() } }]) {
      const answer = ask('workers.attempts', call);
      await assertRefused(answer, 'ENG_NOT_FOUND', /^not found: worker task /);
    }
  });

  test('workers are listed by when they were last seen, with what they hold', async () => {
    const owner = await stored();
    await storeTasks(task(owner, { state: 'claimed', worker_id: 'w1' }), task(owner));
    const seen = (worker: string, handler: string, ago: number, more: object = {}) => ({
      tenant_id: 'acme',
      worker_id: worker,
      handler_name: handler,
      queue_name: null,
      version: null,
      last_seen_at: isoTime(deps.now() - ago),
      ...more,
    });
    await put(
      'worker.seen',
      seen('w1', 'mail', 30_000, { version: '1.0', queue_name: 'slow' }),
      seen('w1', 'charge_card', 20_000, { version: '1.1' }),
      seen('w2', 'mail', 10_000),
      seen('w3', 'mail', 61_000),
      seen('w4', 'mail', 1_000, { tenant_id: 'globex' }),
    );
    const w1 = {
      worker_id: 'w1',
      handlers: ['charge_card', 'mail'],
      queues: ['slow'],
      version: '1.1',
      last_seen_at: isoTime(deps.now() - 20_000),
      alive: true,
      in_flight: 1,
    };
    const { body } = await ask<{ worker_id: string; alive: boolean }[]>('workers.list');
    assert.deepEqual([body[0]?.worker_id, body[1]], ['w2', w1]);
    assert.equal(body.length, 2);
    const all = await ask<typeof body>('workers.list', { search: 'include_stale=true' });
    assert.deepEqual(all.body.at(-1), { ...all.body.at(-1), worker_id: 'w3', alive: false });
    const long = await ask<typeof body>('workers.list', {
      search: 'alive_within_secs=9007199254740991',
    });
    assert.equal(long.body.length, 3);
  });
});

// ---------------------------------------------------------------- failures

describe('failures', () => {
  /** Holds a lock that every read of instances waits for. */
  async function whileLocked(body: () => Promise<void>): Promise<void> {
    const client = await writer.connect();
    try {
      await client.query('begin');
      await client.query('lock table instances in access exclusive mode');
      await body();
    } finally {
      await client.query('rollback');
      client.release();
    }
  }

  /** A pool of another kind, which ends with the test. */
  function poolOf(t: TestContext, changes: Partial<PoolOptions>): pg.Pool {
    const made = createPool({
      connectionString: database.connectionString,
      applicationName: 'reads-test-other',
      connectionsMax: 1,
      onError: () => undefined,
      ...changes,
    });
    t.after(() => made.end());
    return made;
  }

  test('a list that takes too long answers 503 and names a cheaper way, unless the server stands still', async (t) => {
    const impatient = createReads(poolOf(t, { statementTimeoutMs: 500 }));
    const [slow, silent] = [impatient, createReads(pool, 50)].map((reads) => ({ ...deps, reads }));
    await whileLocked(async () => {
      await assertRefused(ask('instances.list', {}, slow), 'ENG_SLOW_READ', /name the tenant/);
      const still = ask('instances.list', {}, silent);
      await assertRefused(still, 'ENG_DATABASE_DOWN', /the database does not answer$/);
    });
    assert.deepEqual((await ask('instances.list', {}, slow)).body, []);
  });

  test('a connection that breaks in the middle of a list answers 503, and the next list works', async () => {
    await whileLocked(async () => {
      const answer = ask('instances.list');
      const broken = assertRefused(answer, 'ENG_DATABASE_DOWN', /^unavailable: the database/);
      let ended = 0;
      while (ended === 0) {
        const { rowCount } = await writer.query(
          "select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock' " +
            "and application_name = 'reads-test' and datname = current_database()",
        );
        ended = rowCount ?? 0;
      }
      await broken;
    });
    assert.deepEqual((await ask('instances.list')).body, []);
  });

  test('a database that is away answers 503', async (t) => {
    const away = poolOf(t, { connectionString: 'postgres://nobody@127.0.0.1:1/none' });
    await assertRefused(
      ask('instances.list', {}, { ...deps, reads: createReads(away) }),
      'ENG_DATABASE_DOWN',
      /^unavailable: the database cannot be reached$/,
    );
  });

  test('what is wrong inside the database is not told', async () => {
    await writer.query('alter table audit_log rename to audit_log_away');
    const { id } = await stored();
    const answer = ask('instances.audit', { params: { id } });
    await assertRefused(
      answer,
      'ENG_DATABASE_DOWN',
      /^unavailable: the database cannot answer: its schema [a-z ]+ \(42P01\)$/,
    );
    await writer.query('alter table audit_log_away rename to audit_log');
  });
});
