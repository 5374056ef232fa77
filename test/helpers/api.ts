/**
 * The API of a real server as its users see it. `startApi` runs the server on a database of its
 * own; each test works as a tenant of its own, so that tests of one file do not see one another.
 * Every reply is held against the contract (by its client), and errors have nothing internal.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import type { BlockOutput, TaskInstance, TreeNode } from '../../schema/instance.js';
import type { WorkerAttempt, WorkerTask } from '../../schema/worker.js';
import type { Client, Reply, RequestOptions } from './client.js';
import { createClient, expectStatus, requestsBy } from './client.js';
import type { TestDatabase } from './database.js';
import { createTestDatabase, requireReachable, stopSharedServer } from './database.js';
import { DEFAULT_API_KEY, type Engine, type EngineOptions, startEngine } from './engine.js';

export type Json = Record<string, unknown>;

/** Never over within a test, and a time that no test lives to see. */
export const LONG_MS = 600_000;
export const FAR = '2100-01-01T00:00:00.000Z';

/** One tenant's view of the API. Methods that take no status require the success status. */
export interface Tenant extends Client {
  readonly name: string;
  /** A sequence's body that is complete, under a new name in the namespace `test`. */
  definition(blocks: readonly Json[], more?: Json): Json;
  /** Stores such a sequence; resolves with its id. */
  sequence(blocks: readonly Json[], more?: Json): Promise<string>;
  /** Creates an instance of a stored sequence; resolves with its id. */
  create(sequenceId: string, more?: Json): Promise<string>;
  /** Stores the blocks and creates one instance; resolves with its id. */
  run(blocks: readonly Json[], more?: Json): Promise<string>;
  /** A creation's body that is complete. */
  creation(sequenceId: string, more?: Json): Json;
  instance(id: string): Promise<TaskInstance>;
  /** Resolves when the instance is in this state; the error says in which one it stayed. */
  until(id: string, state: string): Promise<TaskInstance>;
  /** Polls as the worker `w1` unless `more` says otherwise. */
  poll(handler: string, more?: Json): Promise<WorkerTask[]>;
  /** Polls until there is a task. */
  task(handler: string, more?: Json): Promise<WorkerTask>;
  /** Completes the task as its own worker with its own epoch. */
  complete(task: WorkerTask, output?: Json): Promise<void>;
  fail(task: WorkerTask, message: string, retryable?: boolean): Promise<void>;
  /** Oldest first. */
  outputs(id: string): Promise<(BlockOutput & { output: Json })[]>;
  /** The blocks that left a row, in order; a block inside a loop once for each row. */
  rowsOf(id: string): Promise<string[]>;
  /** The latest output of each block. */
  outputsOf(id: string): Promise<Record<string, Json>>;
  /** Runs the blocks until the instance is in this state; resolves with its id. */
  runUntil(state: string, blocks: readonly Json[], data?: Json, more?: Json): Promise<string>;
  /** Creates an instance that came into this state and stays in it; resolves with its id. */
  inState(state: string, more?: Json): Promise<string>;
  signal(id: string, type: string, payload?: unknown): Promise<void>;
  /** PATCH state; resolves with the instance as the reply shows it. */
  move(id: string, state: string, more?: Json): Promise<TaskInstance>;
  /** The nodes of the tree by their blocks. */
  tree(id: string): Promise<Record<string, TreeNode>>;
  /** The states of the nodes by their blocks. */
  nodeStates(id: string): Promise<Record<string, string>>;
  /** The failed instances, newest first. */
  deadLetters(): Promise<string[]>;
  /** The tasks of the handler that are listed, newest first. */
  tasks(handler: string): Promise<WorkerTask[]>;
  /** The history of a task as pairs of event and epoch, oldest first. */
  attempts(taskId: string): Promise<[event: string, epoch: number][]>;
  /** The status of a call about a task by the worker of its claim, unless `more` says otherwise. */
  call(name: TaskCall, task: WorkerTask, more?: Json): Promise<number>;
}

export type TaskCall = 'complete' | 'fail' | 'heartbeat';

export interface Api {
  /** The current process; replaced by `restart`. */
  readonly engine: Engine;
  readonly database: TestDatabase;
  /** Of the current process, without the prefix. */
  readonly url: string;
  /** Asks the database itself, as superuser; connects at the first query. */
  readonly sql: pg.Pool;
  /** With the root key, without a tenant. */
  readonly root: Client;
  /** A tenant with a new name, or the one named. */
  tenant(name?: string): Tenant;
  /** Ends the process with the signal, SIGKILL by default, and starts it anew on the same port. */
  restart(signal?: NodeJS.Signals, changes?: Partial<EngineOptions>): Promise<void>;
  /** Stops the server and drops the database, unless the caller brought it. */
  stop(): Promise<void>;
}

export interface ApiOptions extends EngineOptions {
  /** Default: a new database. The caller drops the one that it gives. */
  readonly database?: TestDatabase;
}

/** The master key of the prepared servers that seal and sign. */
export const SHARED_MASTER_KEY = 'a7'.repeat(32);

/**
 * The servers that test files share. Each costs two seconds of processor time and 300 MB, so a setting is
 * added to one of them instead of a new server, unless two tests need different values of it.
 */
export const PREPARED = {
  /** The defaults, with every feature on; no claim expires during a test. */
  standard: {
    env: {
      ENGINE_SHARDS: '4',
      ENGINE_ALLOW_INTERNAL_URLS: 'true',
      ENGINE_ENCRYPTION_KEY: SHARED_MASTER_KEY,
      ENGINE_CORS_ORIGINS: 'https://console.example',
      ENGINE_UI_LINKS: JSON.stringify([
        { label: 'Trace', url: 'https://traces.example/{trace_id}' },
        { label: 'Logs', url: 'https://logs.example/?q={instance_id}+{block_id}', on: 'step' },
      ]),
      ENGINE_WORKER_REAPER_STALE_SECS: '3600',
    },
    isCovered: true,
  },
  /**
   * Claims expire soon, bodies, contexts and outputs are small, and the tenant header is optional. Safety
   * scans for due timers are so rare that whatever goes on was woken by an event. The writer has several lanes.
   */
  quick: {
    env: {
      ENGINE_SHARDS: '2',
      ENGINE_WRITER_LANES: '3',
      ENGINE_ENCRYPTION_KEY: SHARED_MASTER_KEY,
      ENGINE_WORKER_REAPER_STALE_SECS: '4',
      ENGINE_WORKER_REAPER_TICK_SECS: '1',
      ENGINE_WORKER_LOST_CLAIMS_MAX: '3',
      ENGINE_TICK_INTERVAL_MS: '60000',
      ENGINE_MAX_BODY_BYTES: '16384',
      ENGINE_MAX_CONTEXT_BYTES: '4096',
      ENGINE_MAX_OUTPUT_BYTES: '8192',
      ENGINE_REQUIRE_TENANT_HEADER: 'false',
      ENGINE_ALLOW_NO_TENANT_ISOLATION: 'true',
    },
  },
  /**
   * `--insecure-auth` on one shard, without an encryption key; workers must send `claim_epoch`, and a
   * retryable failure without a policy fails the step.
   */
  open: {
    apiKey: null,
    env: {
      ENGINE_SHARDS: '1',
      ENGINE_REQUIRE_CLAIM_EPOCH: 'true',
      ENGINE_UNPOLICIED_RETRY: 'fail',
    },
  },
} satisfies Record<string, ApiOptions>;

export type PreparedName = keyof typeof PREPARED;

/** Names the URL of a prepared server and that of its database, separated by `|`. */
const variableOf = (kind: PreparedName) => `TEST_API_${kind.toUpperCase()}`;

/** The prepared servers that several of the files name; what a single file names it starts by itself. */
export function preparedIn(sources: readonly string[]): PreparedName[] {
  const named = sources.map((source) => {
    const uses = source.matchAll(/\b(?:sharedApi|useSharedApi|useTenant)\((?:'(\w+)')?\)/g);
    return new Set([...uses].map(([, kind = 'standard']) => kind));
  });
  return (Object.keys(PREPARED) as PreparedName[]).filter(
    (kind) => named.filter((kinds) => kinds.has(kind)).length > 1,
  );
}

/** What a test may touch of a server that others use at the same time: of its rows, only its own. */
export interface SharedApi extends Pick<Api, 'url' | 'root' | 'sql' | 'tenant' | 'stop'> {
  readonly database: Pick<TestDatabase, 'connectionString'>;
}

/**
 * A prepared server, for tests that stay within tenants of their own, and look neither at its process nor
 * at numbers that other tests change. `npm test` starts those that the chosen files name; a file that is
 * run by itself starts its own.
 */
export async function sharedApi(kind: PreparedName = 'standard'): Promise<SharedApi> {
  const options: ApiOptions = PREPARED[kind];
  const [url, connectionString] = process.env[variableOf(kind)]?.split('|') ?? [];
  if (url === undefined || connectionString === undefined) return startApi(options);
  const { apiKey = DEFAULT_API_KEY } = options;
  const root = checked(createClient({ url, apiKey, connections: 64 }));
  const sql = new pg.Pool({ connectionString, max: 1 });
  return {
    url,
    root,
    database: { connectionString },
    sql,
    tenant: (name = newName()) => tenantOf(() => root, name),
    stop: async () => {
      await sql.end();
      await root.close();
    },
  };
}

/** What prepared servers get to end by themselves. Their Postgres goes then, and they with this process. */
const END_MS = 90_000;

/**
 * Does the work beside these servers, which are found by `env`. In the end they are stopped, and the shared Postgres
 * too, whatever has failed before. Resolves with what failed first.
 */
export async function withPrepared(
  kinds: readonly PreparedName[],
  work: (env: Readonly<Record<string, string>>) => Promise<void>,
): Promise<unknown> {
  await requireReachable();
  if (kinds.length > 0) console.log(`starting the servers ${kinds.join(', ')}`);
  const starts = await Promise.allSettled(kinds.map((kind) => startApi(PREPARED[kind])));
  const apis = starts.flatMap((it) => (it.status === 'fulfilled' ? [it.value] : []));
  const addresses = apis.map(({ url, database }) => `${url}|${database.connectionString}`);
  const env = Object.fromEntries(kinds.map((kind, at) => [variableOf(kind), addresses[at] ?? '']));
  const [done] = await Promise.allSettled(apis.length < kinds.length ? [] : [work(env)]);
  const stops = Promise.allSettled(apis.map((api) => api.stop()));
  const late = { status: 'rejected', reason: new Error('the servers did not end') } as const;
  const stopped = await Promise.race([stops, pause(END_MS, [late])]);
  const [end] = await Promise.allSettled([stopSharedServer()]);
  const failed = [...starts, done, ...stopped, end].find((it) => it?.status === 'rejected');
  return failed?.status === 'rejected' ? failed.reason : undefined;
}

/** @throws Error when the server does not get ready; the message ends with its output */
export async function startApi(options: ApiOptions = {}): Promise<Api> {
  const { database: given, ...engineOptions } = options;
  const database = given ?? (await createTestDatabase());
  let engine = await startEngine({ ...engineOptions, databaseUrl: database.connectionString });
  const { apiKey } = engine;
  let root = checked(createClient({ url: engine.url, apiKey, connections: 64 }));
  const clients = [root];
  const sql = new pg.Pool({ connectionString: database.connectionString, max: 1 });
  return {
    get engine() {
      return engine;
    },
    database,
    sql,
    get url() {
      return engine.url;
    },
    get root() {
      return root;
    },
    tenant: (name = newName()) => tenantOf(() => root, name),
    restart: async (signal = 'SIGKILL', changes = {}) => {
      await engine.kill(signal);
      engine = await engine.restart(changes);
      root = checked(createClient({ url: engine.url, apiKey, connections: 64 }));
      clients.push(root);
    },
    stop: async () => {
      await Promise.all([...clients.map((client) => client.close()), sql.end()]);
      const { code } = await engine.stop();
      if (given === undefined) await database.drop();
      assert.equal(code, 0, `the server ended with ${code}\n${engine.output()}`);
    },
  };
}

// ---------------------------------------------------------------- for a whole file

/**
 * A server for the tests of a file or a suite: it is started before the first and stopped after the
 * last of them.
 *
 * @param options a function is asked when the server is started
 */
export const useApi = (options: ApiOptions | (() => ApiOptions | Promise<ApiOptions>) = {}): Api =>
  started(async () => startApi(typeof options === 'function' ? await options() : options));

/** A prepared server, in the same way. */
export function useSharedApi(kind: PreparedName = 'standard'): SharedApi {
  return started(() => sharedApi(kind));
}

/** Tests that are given a tenant of their own, as `test` of Node.js takes them. */
export const testsOf =
  (api: Pick<SharedApi, 'tenant'>) =>
  (title: string, run: (tenant: Tenant, t: TestContext) => unknown) =>
    test(title, async (t) => void (await run(api.tenant(), t)));

/** A hook that needs the server, since hooks at the top of a file run all at once. */
export function beforeWith(api: SharedApi, prepare: () => Promise<unknown>): void {
  before(async () => {
    await starts.get(api)?.();
    await prepare();
  });
}

const starts = new WeakMap<SharedApi, () => Promise<void>>();

/** A tenant whose requests take another way to a server, such as a proxy. To be closed. */
export function tenantThrough(url: string, name: string): Tenant {
  const client = checked(createClient({ url, apiKey: DEFAULT_API_KEY, connections: 64 }));
  return tenantOf(() => client, name);
}

/** A new tenant of a prepared server. */
export const useTenant = (kind: PreparedName = 'standard'): Tenant => useSharedApi(kind).tenant();

/** Stands for the server that its hook starts; before that only tenants may be made of it. */
function started<Some extends SharedApi>(start: () => Promise<Some>): Some {
  let found: Some | undefined;
  const server = () => {
    assert.ok(found, 'the server is there in tests, and in hooks of `beforeWith`');
    return found;
  };
  const tenant = (name = newName()) => tenantOf(() => server().root, name);
  const api = new Proxy({} as Some, {
    get: (_, field) => (field === 'tenant' ? tenant : Reflect.get(server(), field)),
  });
  let starting: Promise<void> | undefined;
  const ready = () => {
    starting ??= start().then((it) => {
      found = it;
    });
    return starting;
  };
  starts.set(api, ready);
  before(ready);
  after(() => found?.stop());
  return api;
}

// ---------------------------------------------------------------- waiting

/** What is waited for takes milliseconds, and a machine may be slow and busy: only a hang takes this. */
const EVENTUALLY_MS = 120_000;

/** How long after the try before: short waits end promptly, long ones leave the processor to others. */
const POLL_MS = { min: 5, max: 25 } as const;
const POLL_SHARE = 0.1;

/**
 * Tries until `attempt` resolves without throwing.
 * @throws what the last try threw, when the time is up
 */
export async function eventually<T>(
  attempt: () => Promise<T> | T,
  timeoutMs = EVENTUALLY_MS,
): Promise<T> {
  const startedAt = performance.now();
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (performance.now() > startedAt + timeoutMs) throw error;
    }
    const waitedMs = performance.now() - startedAt;
    await pause(Math.min(POLL_MS.max, Math.max(POLL_MS.min, waitedMs * POLL_SHARE)));
  }
}

// ---------------------------------------------------------------- the contract

const INTERNALS = /\bat .*:\d+:\d+|SQLSTATE|node_modules|\/home|\/tmp|\bselect\b.*\bfrom\b/i;

/** The same client, whose replies have been held against the contract. */
export function checked(client: Client): Client {
  const request = async <T>(
    method: string,
    path: string,
    options?: RequestOptions,
  ): Promise<Reply<T>> => {
    const reply = await client.request<T>(method, path, options);
    checkReply(method, path, reply);
    return reply;
  };
  return {
    ...requestsBy(request),
    with: (changes) => checked(client.with(changes)),
    close: () => client.close(),
  };
}

/** @throws AssertionError that names the request */
function checkReply(method: string, path: string, reply: Reply<unknown>): void {
  const { status, headers, text } = reply;
  const what = `${method} ${path} answered ${status} ${text.slice(0, 300)}`;
  assert.ok(headers['x-request-id'], `${what} without x-request-id`);
  if (status >= 400 && method !== 'HEAD') checkError(reply, what);
}

/** What refusals may say, beside the message, of definitions, of migrations and of cells. */
const ERROR_MEMBERS = new Set(['error', 'errors', 'warnings', 'verdict', 'findings', 'cell']);

function checkError({ text, headers }: Reply<unknown>, what: string): void {
  const body = JSON.parse(text) as Json;
  for (const name of Object.keys(body)) assert.ok(ERROR_MEMBERS.has(name), `${what}: ${name}`);
  assert.ok(typeof body.error === 'string' && body.error !== '', what);
  assert.match(String(headers['x-error-code']), /^ENG_[A-Z_]+$/, what);
  assert.doesNotMatch(text, INTERNALS, what);
}

// ---------------------------------------------------------------- tenants

export const NAMESPACE = 'test';
export const WORKER = 'w1';

/** Of a tenant that no other test works for. */
const newName = () => `t-${randomUUID()}`;

/** @param root asked for at each call, since a restart replaces it */
function tenantOf(root: () => Client, name: string): Tenant {
  const client = () => root().with({ tenant: name });
  const self: Tenant = {
    name,
    request: (method, path, options) => client().request(method, path, options),
    get: (path) => client().get(path),
    post: (path, body, signal) => client().post(path, body, signal),
    put: (path, body) => client().put(path, body),
    patch: (path, body) => client().patch(path, body),
    delete: (path) => client().delete(path),
    with: (changes) => root().with({ tenant: name, ...changes }),
    close: () => root().close(),
    definition: (blocks, more = {}) => ({
      tenant_id: name,
      namespace: NAMESPACE,
      name: `s-${randomUUID()}`,
      version: 1,
      blocks,
      ...more,
    }),
    sequence: async (blocks, more) => {
      const body = self.definition(blocks, more);
      return expectStatus(await self.post<{ id: string }>('/sequences', body), 201).id;
    },
    creation: (sequenceId, more = {}) => ({
      sequence_id: sequenceId,
      tenant_id: name,
      namespace: NAMESPACE,
      ...more,
    }),
    create: async (sequenceId, more) => {
      const body = self.creation(sequenceId, more);
      return expectStatus(await self.post<{ id: string }>('/instances', body), 201).id;
    },
    run: async (blocks, more) => self.create(await self.sequence(blocks), more),
    instance: async (id) => expectStatus(await self.get<TaskInstance>(`/instances/${id}`), 200),
    until: (id, state) =>
      eventually(async () => {
        const instance = await self.instance(id);
        assert.equal(instance.state, state);
        return instance;
      }),
    poll: async (handler, more = {}) => {
      const body = { handler_name: handler, worker_id: WORKER, ...more };
      return expectStatus(await self.post<WorkerTask[]>('/workers/tasks/poll', body), 200);
    },
    task: (handler, more) =>
      eventually(async () => {
        const [task] = await self.poll(handler, more);
        assert.ok(task, `no task of ${handler}`);
        return task;
      }),
    complete: async (task, output = {}) => {
      const body = { worker_id: task.worker_id, claim_epoch: task.claim_epoch, output };
      expectStatus(await self.post(`/workers/tasks/${task.id}/complete`, body), 200);
    },
    fail: async (task, message, retryable = false) => {
      const { worker_id, claim_epoch } = task;
      const body = { worker_id, claim_epoch, message, retryable };
      expectStatus(await self.post(`/workers/tasks/${task.id}/fail`, body), 200);
    },
    outputs: async (id) => expectStatus(await self.get(`/instances/${id}/outputs`), 200),
    rowsOf: async (id) => (await self.outputs(id)).map((row) => row.block_id),
    outputsOf: async (id) =>
      Object.fromEntries((await self.outputs(id)).map((row) => [row.block_id, row.output])),
    runUntil: async (state, blocks, data = {}, more = {}) => {
      const id = await self.run(blocks, { context: { data }, ...more });
      await self.until(id, state);
      return id;
    },
    inState: async (state, more = {}) => {
      const alone = { completed: 'noop', failed: 'fail', scheduled: 'noop' }[state];
      const block = state === 'running' ? sleep('a', LONG_MS) : step('a', alone ?? newHandler());
      const at = state === 'scheduled' ? { next_fire_at: FAR } : {};
      const id = await self.run([block], { ...at, ...more });
      if (state === 'paused') await self.signal(id, 'pause');
      if (state === 'cancelled') await self.signal(id, 'cancel');
      await self.until(id, state);
      return id;
    },
    signal: async (id, signal_type, payload) => {
      expectStatus(await self.post(`/instances/${id}/signals`, { signal_type, payload }), 201);
    },
    move: async (id, state, more = {}) => {
      const body = { state, ...more };
      return expectStatus(await self.patch<TaskInstance>(`/instances/${id}/state`, body), 200);
    },
    tree: async (id) => {
      const nodes = expectStatus(await self.get<TreeNode[]>(`/instances/${id}/tree`), 200);
      return Object.fromEntries(nodes.map((node) => [node.block_id, node]));
    },
    nodeStates: async (id) =>
      Object.fromEntries(
        Object.entries(await self.tree(id)).map(([block, node]) => [block, node.state]),
      ),
    deadLetters: async () => {
      const reply = await self.get<TaskInstance[]>('/instances/dlq?limit=1000');
      return expectStatus(reply, 200).map((instance) => instance.id);
    },
    tasks: async (handler) =>
      expectStatus(await self.get(`/workers/tasks?limit=1000&handler_name=${handler}`), 200),
    attempts: async (taskId) => {
      const reply = await self.get<WorkerAttempt[]>(`/workers/tasks/${taskId}/attempts`);
      return expectStatus(reply, 200).map((entry) => [entry.event, entry.claim_epoch]);
    },
    call: async (name, task, more = {}) => {
      const needed = { complete: { output: {} }, fail: { message: 'no' }, heartbeat: {} }[name];
      const body = { worker_id: task.worker_id, ...needed, ...more };
      return (await self.post(`/workers/tasks/${task.id}/${name}`, body)).status;
    },
  };
  return self;
}

// ---------------------------------------------------------------- blocks

/** A step of an external handler unless the handler is a built-in name. */
export function step(id: string, handler: string, more: Json = {}): Json {
  return { type: 'step', id, handler, ...more };
}

export function sleep(id: string, duration_ms: number, more: Json = {}): Json {
  return step(id, 'sleep', { params: { duration_ms }, ...more });
}

/** A step whose output is its parameters, with templates filled in. */
export const transform = (id: string, params: Json): Json => step(id, 'transform', { params });

export function parallel(id: string, ...branches: Json[][]): Json {
  return { type: 'parallel', id, branches };
}

export function race(id: string, branches: Json[][], semantics?: string): Json {
  return { type: 'race', id, branches, ...(semantics === undefined ? {} : { semantics }) };
}

/** Routes by their conditions, in the order in which they are written. */
export function router(id: string, routes: Record<string, Json[]>, fallback?: Json[]): Json {
  const list = Object.entries(routes).map(([condition, blocks]) => ({ condition, blocks }));
  return { type: 'router', id, routes: list, ...(fallback && { default: fallback }) };
}

export function tryCatch(id: string, tried: Json[], caught: Json[], last?: Json[]): Json {
  const lists = { try_block: tried, catch_block: caught, ...(last && { finally_block: last }) };
  return { type: 'try_catch', id, ...lists };
}

export function loop(id: string, condition: string, body: Json[], max_iterations?: number): Json {
  return { type: 'loop', id, condition, body, ...(max_iterations && { max_iterations }) };
}

export function forEach(id: string, collection: string, body: Json[], more: Json = {}): Json {
  return { type: 'for_each', id, collection, body, ...more };
}

/** A handler name that no other test uses. */
export function newHandler(): string {
  return `handler-${randomUUID()}`;
}
