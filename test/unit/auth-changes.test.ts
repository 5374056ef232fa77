/**
 * How keys change when the way to the table is not smooth: shards that do not answer, outcomes that
 * nobody knows. The shard and the clock are made up; registry and operations are the real ones.
 */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { beforeEach, test } from 'node:test';
import { pino } from 'pino';
import type { KeyRow, KeyUse } from '../../actors/catalog/api-keys.js';
import type { KeyMinted } from '../../schema/api-key.js';
import type { KeyState } from '../../src/db/reads/key-reads.js';
import { type EngineError, UNKNOWN_OUTCOME, unavailable, wrongCell } from '../../src/errors.js';
import { KeyRegistry } from '../../src/http/key-registry.js';
import { KeyOperations } from '../../src/http/operations/keys.js';
import type { FrontDeps } from '../../src/http/operations/operation.js';
import { frontCall } from '../helpers/front-call.js';
import { HandClock } from '../helpers/hand-clock.js';

const NOW = Date.UTC(2030, 0, 1);
const MINUTE_MS = 60_000;

interface Asked {
  readonly operation: string;
  readonly body: unknown;
}

async function newWorld(keysMax = 10) {
  const clock = new HandClock(NOW);
  const { now } = clock;
  const asked: Asked[] = [];
  /** How the shard answers the next questions: an error, or a success when there is none left. */
  const failures: (EngineError | undefined)[] = [];
  const states = new Map<string, KeyState>();
  const registry = new KeyRegistry({ now, keysMax, refusal: () => undefined });
  await registry.load(async () => []);
  const keys = new KeyOperations({
    registry,
    clock,
    log: pino({ level: 'silent' }),
    client: {
      ask: async (_shard, operation, _tenant, _target, body) => {
        asked.push({ operation, body });
        const failure = failures.shift();
        if (failure !== undefined) throw failure;
        return { status: 204, body: '' };
      },
    },
  });
  const reads = {
    rows: async ({ values: [id] }: { values: readonly unknown[] }) => {
      const state = states.get(id as string);
      return state === undefined ? [] : [state];
    },
  };
  const admission: { refusal?: EngineError } = {};
  const admitTenant = () => {
    if (admission.refusal !== undefined) throw admission.refusal;
  };
  const front = { now, reads, admitTenant } as unknown as FrontDeps;
  return {
    registry,
    asked,
    admission,
    failures,
    states,
    keys,
    get waiting() {
      return clock.waiting;
    },
    mint: async (more: object = {}): Promise<KeyMinted> => {
      const body = { tenant_id: 'a', capabilities: ['operator'], ...more };
      const call = frontCall('apiKeys.mint', { bodyText: JSON.stringify(body) });
      const reply = await keys.operations['apiKeys.mint'](front, call);
      return JSON.parse(String(reply?.body)) as KeyMinted;
    },
    revoke: async (id: string) =>
      (
        await keys.operations['apiKeys.revoke'](
          front,
          frontCall('apiKeys.revoke', { params: { id } }),
        )
      )?.status,
    use: ({ secret }: KeyMinted) =>
      registry.use(createHash('sha256').update(secret).digest('hex'))?.id,
    /** Runs the timers that are due by then, and what follows from them. */
    pass: async (ms: number) => {
      clock.pass(ms);
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

let world: Awaited<ReturnType<typeof newWorld>>;
beforeEach(async () => {
  world = await newWorld();
});

test('a key is valid when its row is stored, and not when that is not known', async () => {
  const key = await world.mint();
  assert.equal(world.use(key), key.id);
  world.failures.push(UNKNOWN_OUTCOME);
  await assert.rejects(world.mint(), { code: 'ENG_DATABASE_DOWN' });
  assert.equal(world.registry.size, 1);
});

test('neither the secret nor a part of it reaches the shard', async () => {
  const { secret } = await world.mint({ tenant_id: 'a', name: 'n' });
  const text = JSON.stringify(world.asked);
  assert.ok(!text.includes(secret.slice(3, 12)));
  const row = world.asked[0]?.body as KeyRow;
  assert.equal(row.secret_hash, createHash('sha256').update(secret).digest('hex'));
});

test('mintings under way count against the limit, and one that failed does not', async () => {
  world = await newWorld(2);
  world.failures.push(UNKNOWN_OUTCOME);
  const results = await Promise.allSettled([world.mint(), world.mint(), world.mint()]);
  assert.deepEqual(
    results.map((result) => (result.status === 'fulfilled' ? 'made' : result.reason.code)),
    ['ENG_DATABASE_DOWN', 'made', 'ENG_CONFLICT'],
  );
  await world.mint();
  await assert.rejects(world.mint(), { code: 'ENG_CONFLICT' });
});

test('a key is refused from the moment its revocation is taken up', async () => {
  const key = await world.mint();
  const revoked = world.revoke(key.id);
  assert.equal(world.use(key), undefined);
  assert.equal(await revoked, 204);
});

test('a revocation whose outcome is unknown is told so, stays in force and is carried through', async () => {
  const key = await world.mint();
  world.failures.push(UNKNOWN_OUTCOME, UNKNOWN_OUTCOME);
  await assert.rejects(world.revoke(key.id), { code: 'ENG_DATABASE_DOWN' });
  assert.equal(world.use(key), undefined);
  const tries = () => world.asked.filter(({ operation }) => operation === 'keys.revoke').length;
  assert.equal(tries(), 1);
  await world.pass(1_000);
  assert.equal(tries(), 2);
  await world.pass(1_000);
  assert.equal(tries(), 3);
  await world.pass(10_000);
  assert.equal(tries(), 3, 'it went through, and is not asked for again');
  assert.equal(world.use(key), undefined);
});

test('a revocation is not tried again where its tenant has left, which would leave the key in force', async () => {
  const key = await world.mint();
  world.failures.push(UNKNOWN_OUTCOME);
  await assert.rejects(world.revoke(key.id), { code: 'ENG_DATABASE_DOWN' });
  const tries = () => world.asked.filter(({ operation }) => operation === 'keys.revoke').length;
  world.admission.refusal = unavailable('ENG_TENANT_MOVING', 'is being moved');
  await world.pass(1_000);
  assert.equal(tries(), 1);
  delete world.admission.refusal;
  await world.pass(1_000);
  assert.equal(tries(), 2, 'it stays');
  const other = await world.mint();
  world.failures.push(UNKNOWN_OUTCOME);
  await assert.rejects(world.revoke(other.id), { code: 'ENG_DATABASE_DOWN' });
  world.admission.refusal = wrongCell('west', 'east');
  await world.pass(10_000);
  delete world.admission.refusal;
  await world.pass(10_000);
  assert.equal(tries(), 3);
});

test('revoking again what was revoked, or never known, does as the table says', async () => {
  world.states.set('ak_revoked', { tenant_id: 'a', revoked: true, last_used_at: null });
  world.states.set('ak_expired', {
    tenant_id: 'a',
    revoked: false,
    last_used_at: '2029-01-01T00:00:00.000Z',
  });
  assert.equal(await world.revoke('ak_revoked'), 204);
  assert.deepEqual(world.asked, []);
  assert.equal(await world.revoke('ak_expired'), 204);
  const body: KeyUse = { id: 'ak_expired', last_used_at: '2029-01-01T00:00:00.000Z' };
  assert.deepEqual(world.asked, [{ operation: 'keys.revoke', body }]);
  await assert.rejects(world.revoke('ak_unknown'), { code: 'ENG_NOT_FOUND' });
});

test('uses are stored once a minute, all together, and again when that failed', async () => {
  const [a, b] = [await world.mint(), await world.mint()];
  const stored = () =>
    world.asked.filter(({ operation }) => operation === 'keys.used').map(({ body }) => body);
  for (let count = 0; count < 5; count++) world.use(a);
  world.use(b);
  assert.deepEqual(stored(), []);
  world.failures.push(UNKNOWN_OUTCOME);
  const last_used_at = new Date(NOW).toISOString();
  const both = [a, b].map(({ id }) => ({ id, last_used_at }));
  await world.pass(MINUTE_MS);
  assert.deepEqual(stored(), [both]);
  await world.pass(MINUTE_MS);
  assert.deepEqual(stored(), [both, both]);
  await world.pass(MINUTE_MS);
  assert.equal(stored().length, 2, 'nothing was used since');
});

test('a use that was noted before a revocation does not undo it', async () => {
  const key = await world.mint();
  world.use(key);
  await world.revoke(key.id);
  await world.pass(MINUTE_MS);
  const operations = world.asked.map(({ operation }) => operation);
  assert.deepEqual(operations, ['keys.insert', 'keys.revoke']);
  const use = { id: key.id, last_used_at: new Date(NOW).toISOString() };
  assert.deepEqual(world.asked[1]?.body, use);
});

test('a stop leaves no timer behind', async () => {
  const key = await world.mint();
  world.failures.push(UNKNOWN_OUTCOME);
  await assert.rejects(world.revoke(key.id));
  assert.equal(world.waiting, 2);
  world.keys.stop();
  world.keys.stop();
  assert.equal(world.waiting, 0);
});
