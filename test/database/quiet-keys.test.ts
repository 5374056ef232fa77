/** What the repair of lost messages costs while nothing is lost, by the real statements. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Keys } from '../../actors/limits/keys.js';
import type { PeerMessage } from '../../actors/runtime/protocol.js';
import type { Effect } from '../../actors/runtime/turn.js';
import { openLoads } from '../../actors/shard/loads.js';
import { realClock } from '../../src/base/real-clock.js';
import type { UnitEnvelope } from '../../src/db/units.js';
import { ActorWorld, committed } from '../helpers/actor-world.js';
import { eventually } from '../helpers/api.js';
import { usePool } from '../helpers/database.js';

const KEYS = 10_000;
/** Between two rounds. */
const EVERY_S = 5;

const uuid = (number: number) => `01950000-0000-7000-8000-${number.toString(16).padStart(12, '0')}`;
/** Keys with a lost message. */
const [LEFT, GRANTED, WANTED] = [KEYS + 1, KEYS + 2, KEYS + 3].map(uuid) as [
  string,
  string,
  string,
];

const { pool } = usePool(fill);

/** A key and an instance of each number. Slots of odd ones were taken by creations. */
async function fill(): Promise<void> {
  const id = "('01950000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid";
  const of = `from generate_series(1, ${KEYS + 3}) n`;
  for (const sql of [
    `insert into sequences (id, tenant_id, namespace, name, version, definition, created_at)
     values ('${uuid(1)}', 't', 'n', 's', 1, '{}', now())`,
    `insert into instances (id, sequence_id, tenant_id, namespace, state, priority, timezone, metadata,
       data, config, context_audit, runtime, execution, signal_count, audit_count, created_at, updated_at)
     select ${id}, '${uuid(1)}', 't', 'n', case when n = ${KEYS + 2} then 'scheduled' else 'running' end,
       2, 'UTC', '{}', '{}', '{}', '[]', '{}', case when n = ${KEYS + 2} then '{"w":1}' else '{}' end::json,
       0, 0, now(), now() ${of}`,
    `insert into permit_requests (instance_id, key_id, max_concurrency, number, created_at, has_slot)
     select ${id}, ${id}, 1, 1, now(), n <= ${KEYS} and n % 2 = 1 ${of} where n <> ${KEYS + 1}`,
    `insert into permits (instance_id, key_id, number)
     select ${id}, ${id}, 1 ${of} where (n > ${KEYS} or n % 2 = 0) and n < ${KEYS + 3}`,
  ]) {
    await pool.query(sql);
  }
}

class OneShard extends ActorWorld {
  readonly sent: PeerMessage[] = [];
  readonly rows: string[] = [];
  readonly keys: Keys;

  constructor(counted: typeof pool) {
    super();
    const loader = openLoads(counted, { shard: 0, shards: 1 });
    const clock = { ...realClock, setTimeout: () => undefined };
    this.keys = new Keys({ ...this.host(), loader, clock, now: () => 0, shards: 1 });
  }

  protected override endTurn(): void {
    this.keys.endTurn();
  }

  protected override perform(effect: Effect): void {
    if (effect.kind === 'peer') this.sent.push(effect.message);
  }

  protected override write(units: readonly UnitEnvelope[]): void {
    const put = (kind: string, { instance_id }: { readonly instance_id: string }) =>
      this.rows.push(`${kind} ${instance_id}`);
    this.commits.settle(units.map((unit) => committed(unit, put)));
  }
}

test('10,000 keys without a lost message cost 20 statements a second, and each lost one is repaired', async () => {
  let statements = 0;
  const counted = new Proxy(pool, {
    get: (target, name) => {
      const value = Reflect.get(target, name) as unknown;
      if (name === 'query') statements += 1;
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const shard = new OneShard(counted);
  shard.keys.start();
  await eventually(async () => {
    await shard.quiet();
    assert.equal(shard.sent.length, 2);
    assert.equal(shard.rows.length, 2);
  });
  shard.keys.stop();
  const granted = shard.sent.map((message) => 'instance' in message && message.instance);
  assert.deepEqual(granted.sort(), [GRANTED, WANTED]);
  assert.deepEqual(shard.rows.sort(), [`permit.clear ${LEFT}`, `permit.set ${WANTED}`]);
  assert.ok(statements <= 20 * EVERY_S, `${statements} statements`);
});
