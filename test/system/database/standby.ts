/** Two engines on one database: one works, the other waits, and takes over when the first cannot. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { before, test } from 'node:test';
import type { TaskInstance } from '../../../schema/instance.js';
import { eventually, type Json, step } from '../../helpers/api.js';
import { createClient, expectStatus } from '../../helpers/client.js';
import { DEFAULT_API_KEY, type Engine } from '../../helpers/engine.js';
import { type DatabaseWorld, told } from './world.js';

const TENANT = 'standby';
/** A take-over lasts some seconds, and longer on a slow machine. */
const TAKE_OVER_MS = 150_000;
const SOCKETS = 40;

type Question = readonly [method: string, path: string, body?: object];

export function describeStandbys(worldOf: () => DatabaseWorld): void {
  let world: DatabaseWorld;
  let sequence: string;

  const owner = () => world.tenant(TENANT);
  const untilStandby = (engine: Engine) =>
    eventually(() =>
      assert.ok(told(engine).includes('another engine owns the database: standing by')),
    );
  /** Resolves when the standby is ready; it is the owner from then on. */
  async function takeOver(standby: Engine): Promise<void> {
    await standby.waitReady(TAKE_OVER_MS);
    world.engine = standby;
    await eventually(() => assert.ok(told(standby).includes('took the database over')));
  }

  before(async () => {
    world = worldOf();
    sequence = await owner().sequence([step('a', 'noop')]);
  });

  /** Waits until the schedule has fired so often again; no fire time may have two instances. */
  async function untilFired(schedule: string, more: number): Promise<void> {
    const tenant = owner();
    const firings = async () => {
      const { body } = await tenant.get<TaskInstance[]>('/instances?namespace=cron&limit=1000');
      const keys = body.map(({ idempotency_key }) => idempotency_key ?? '');
      assert.ok(keys.every((key) => key.startsWith(`cron:${schedule}:`)));
      assert.equal(new Set(keys).size, keys.length);
      return keys.length;
    };
    const before = await firings();
    await eventually(async () => assert.ok((await firings()) >= before + more));
  }

  test('a standby lives, is not ready, and takes over at once when the owner is killed', async () => {
    const body = { tenant_id: TENANT, namespace: 'cron', sequence_id: sequence };
    const everySecond = { ...body, cron_expr: '* * * * * ? *' };
    const made = await owner().post<{ id: string }>('/cron', everySecond);
    const { id: schedule } = expectStatus(made, 201);
    await untilFired(schedule, 1);
    const before = await owner().create(sequence);
    const standby = await world.beside();
    await untilStandby(standby);
    const { url, apiKey } = standby;
    const client = createClient({ url, apiKey, tenant: TENANT });
    expectStatus(await client.get('/health/live'), 200);
    for (const path of ['/health/ready', '/instances']) {
      const { status, headers } = await client.get(path);
      assert.deepEqual([path, status], [path, 503]);
      assert.ok(headers['retry-after'] !== undefined, path);
    }
    assert.match((await client.get('/health/ready')).text, /standby/);
    // Whoever scrapes is told as well.
    assert.match((await client.get('/metrics')).text, /^engine_ready 0$/m);
    expectStatus(await client.with({ apiKey: null }).get('/metrics'), 401);
    await client.close();
    assert.ok(!told(standby).includes('took the database over'));

    await world.engine.kill('SIGKILL');
    await takeOver(standby);
    const tenant = owner();
    assert.equal((await tenant.instance(before)).id, before);
    await tenant.create(sequence);
    await untilFired(schedule, 1);
    expectStatus(await tenant.put(`/cron/${schedule}`, { enabled: false }), 200);
  });

  test('a stopped owner is replaced within 15 s, and once continued it answers nothing and exits', async () => {
    const stopped = world.engine;
    const resident = await owner().create(sequence);
    const standby = await world.beside();
    await untilStandby(standby);
    // Connections that are there before the other end is stopped.
    const sockets = await Promise.all(Array.from({ length: SOCKETS }, () => open(stopped)));
    stopped.signal('SIGSTOP');
    await takeOver(standby);
    const created = await owner().create(sequence);
    // Asked of the old owner, who does not know yet that it is none.
    const questions: readonly Question[] = [
      ['GET', '/health/ready'],
      ['GET', '/instances'],
      ['GET', `/instances/${resident}`],
      ['POST', '/instances', owner().creation(sequence) as Json],
      ['POST', '/workers/tasks/poll', { handler_name: 'h', worker_id: 'w' }],
    ];
    const asked = sockets.map((socket, i) => ask(socket, questions[i % questions.length]!));
    stopped.signal('SIGCONT');
    assert.equal((await stopped.exited).code, 1);
    // 408: the connection had been open for too long before anything was asked.
    const refusals = ['none', '503', '408'];
    const answers = new Set(await Promise.all(asked));
    const seen = [...answers].filter((status) => !refusals.includes(status));
    assert.deepEqual(seen, []);
    assert.equal((await owner().instance(created)).id, created);
  });
}

async function open(engine: Engine): Promise<Socket> {
  const socket = connect(engine.port, '127.0.0.1').on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

/** Resolves with the status, or with `none` when the connection ends without one. */
function ask(socket: Socket, [method, path, body]: Question): Promise<string> {
  const text = body === undefined ? '' : JSON.stringify(body);
  const head = [
    `${method} /api/v1${path} HTTP/1.1`,
    'host: owner',
    `x-api-key: ${DEFAULT_API_KEY}`,
    `x-tenant-id: ${TENANT}`,
    `content-length: ${text.length}`,
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n${text}`);
  return new Promise((resolve) => {
    socket.once('data', (data) => resolve(data.toString('latin1').slice(9, 12)));
    socket.once('close', () => resolve('none'));
  });
}
