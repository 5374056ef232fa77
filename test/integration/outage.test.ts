/**
 * Postgres that stops answering without breaking a connection, as a stalled disk or a paused
 * machine does: every process of the server is stopped by a signal, and continued later.
 */

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { type Client, createClient } from '../helpers/client.js';
import { startPostgres, type TestPostgres } from '../helpers/database.js';
import { type Engine, startEngine } from '../helpers/engine.js';

const TENANT = 'outage';
/** Within this readiness must say that the database is away. */
const NOTICED_MS = 3_000;
const RECOVERY_MS = 10_000;

let postgres: TestPostgres;
let engine: Engine;
let client: Client;
/** With connections of its own: those of `client` wait for the database. */
let probe: Client;
let sequence: string;

before(async () => {
  postgres = await startPostgres();
  const database = await postgres.createDatabase();
  engine = await startEngine({ databaseUrl: database.connectionString });
  const options = { url: engine.url, apiKey: engine.apiKey, tenant: TENANT, timeoutMs: 60_000 };
  client = createClient({ ...options, connections: 64 });
  probe = createClient({ ...options, connections: 4 });
  const reply = await client.post<{ id: string }>('/sequences', {
    tenant_id: TENANT,
    namespace: 'n',
    name: 'noop',
    version: 1,
    blocks: [{ type: 'step', id: 'a', handler: 'noop' }],
  });
  assert.equal(reply.status, 201);
  sequence = reply.body.id;
});

after(async () => {
  await client?.close();
  await probe?.close();
  await engine?.stop();
  await postgres?.stop();
});

/** The postmaster and its backends. */
function signalPostgres(signal: NodeJS.Signals): void {
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => parentOf(pid) === postgres.pid);
  for (const pid of [postgres.pid, ...children]) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      // A backend may have ended since it was listed.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

function parentOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    // Gone between the listing and the look.
    return 0;
  }
}

const create = (through = client) =>
  through.post<{ id: string }>('/instances', {
    sequence_id: sequence,
    tenant_id: TENANT,
    namespace: 'n',
  });

async function untilReady(status: number, withinMs: number): Promise<void> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const reply = await probe.get('/health/ready');
    if (reply.status === status) return;
    assert.ok(performance.now() < deadline, `readiness stayed ${reply.status}`);
  }
}

test('while Postgres is silent the engine lives and says so, and loses nothing', async (t) => {
  if (process.platform !== 'linux') return t.skip('the processes are found through /proc');
  const resident = (await create()).body.id;
  const acknowledged: string[] = [];
  const note = async () => {
    const reply = await create();
    if (reply.status === 201) acknowledged.push(reply.body.id);
    else assert.equal(reply.status, 503, reply.text);
  };
  const before = Array.from({ length: 100 }, note);
  signalPostgres('SIGSTOP');
  let during: Promise<void>[] = [];
  try {
    during = Array.from({ length: 100 }, note);
    await untilReady(503, NOTICED_MS + RECOVERY_MS);
    assert.equal((await probe.get('/health/live')).status, 200);
    // Reads of an instance in memory need no database.
    assert.equal((await probe.get(`/instances/${resident}`)).status, 200);
    const refused = await create(probe);
    assert.equal(refused.status, 503);
    assert.ok(refused.headers['retry-after'] !== undefined);
  } finally {
    signalPostgres('SIGCONT');
  }
  await untilReady(200, RECOVERY_MS);
  await Promise.all([...before, ...during]);
  assert.ok(acknowledged.length > 0, 'what was accepted before the outage is committed after it');
  const replies = await Promise.all(acknowledged.map((id) => client.get(`/instances/${id}`)));
  assert.deepEqual(
    replies.filter(({ status }) => status !== 200),
    [],
  );
  assert.equal((await create()).status, 201);
  assert.ok(engine.isRunning());
});
