/**
 * Cron schedules in virtual time: every fire once, at its time, whatever dies meanwhile.
 *
 * Cost: 8 s, since each test runs a cluster for minutes of its time.
 */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { routeOf, shardOf } from '../../src/base/ids.js';
import { createRandom } from '../chaos/random.js';
import { byTier } from '../helpers/depth.js';
import { CronWorld, type CronWorldOptions, SEQUENCE } from './cron-world.js';

const NOON = '2031-03-03T12:00:00.500Z';

async function play(
  options: Partial<CronWorldOptions>,
  scenario: (cron: CronWorld) => Promise<void>,
): Promise<void> {
  const cron = new CronWorld({ start: NOON, ...options });
  await cron.run(async () => scenario(cron));
}

/** A run that takes so long. */
const sleeping = (ms: number) => [
  { type: 'step', id: 'nap', handler: 'sleep', params: { duration_ms: ms } },
];

describe('a schedule fires', () => {
  test('at its very times, over a change of clocks', () =>
    play({ start: '2031-03-29T23:55:00.000Z', cronTickMs: 3_600_000 }, async (cron) => {
      const id = await cron.schedule('0 0,30 1,2 30 3 ? *', { timezone: 'Europe/Berlin' });
      await cron.until('2031-03-30T01:40:00Z');
      assert.deepEqual(cron.times(id), ['00:00:00', '00:30:00', '01:00:00']);
      assert.equal(cron.row(id)?.next_fire_at, '2032-03-29T23:00:00.000Z');
    }));

  test('and its instances are advanced at once', () =>
    play({}, async (cron) => {
      const id = await cron.schedule('*/10 * * * * ? *');
      await cron.until('2031-03-03T12:00:31Z');
      assert.deepEqual(cron.times(id), ['12:00:10', '12:00:20', '12:00:30']);
      assert.deepEqual(cron.states(id), ['completed', 'completed', 'completed']);
    }));

  test('beyond what was read ahead, too', () =>
    play({ cronTickMs: 60_000 }, async (cron) => {
      const id = await cron.schedule('0 17 13 * * ? *');
      await cron.until('2031-03-03T13:18:00Z');
      assert.deepEqual(cron.times(id), ['13:17:00']);
    }));

  test('hundreds that are due together', () =>
    play({}, async (cron) => {
      const ids = [];
      for (let i = 0; i < 600; i++) ids.push(await cron.schedule('0 * * * * ? *'));
      await cron.until('2031-03-03T12:01:30Z');
      for (const id of ids) assert.deepEqual(cron.times(id), ['12:01:00']);
    }));
});

describe('a change of the schedule', () => {
  test('counts from now on, and what is disabled does not fire', () =>
    play({}, async (cron) => {
      const id = await cron.schedule('*/10 * * * * ? *');
      await cron.until('2031-03-03T12:00:15Z');
      await cron.ask('cron.update', id, { cron_expr: '45 * * * * ? *' });
      assert.equal(cron.row(id)?.next_fire_at, '2031-03-03T12:00:45.000Z');
      await cron.until('2031-03-03T12:00:50Z');
      const off = await cron.ask('cron.update', id, { enabled: false });
      assert.equal(off.next_fire_at, '2031-03-03T12:01:45.000Z');
      await cron.until('2031-03-03T12:05:00Z');
      assert.deepEqual(cron.times(id), ['12:00:10', '12:00:45']);
      const on = await cron.ask('cron.update', id, { enabled: true });
      assert.equal(on.next_fire_at, '2031-03-03T12:05:45.000Z');
      await cron.until('2031-03-03T12:06:00Z');
      assert.deepEqual(cron.times(id), ['12:00:10', '12:00:45', '12:05:45']);
    }));

  test('that is none of when it fires keeps the fire that waits for a run', () =>
    play({ blocks: sleeping(6_000) }, async (cron) => {
      const id = await cron.schedule('0/5 * * * * ? *', { overlap_policy: 'buffer_one' });
      await cron.until('2031-03-03T12:00:10.500Z');
      await cron.ask('cron.update', id, { metadata: { n: 1 } });
      assert.equal(cron.row(id)?.next_fire_at, '2031-03-03T12:00:10.000Z');
      await cron.until('2031-03-03T12:00:13Z');
      const times = cron.times(id).map((time) => time.slice(0, 8));
      assert.deepEqual([times, cron.row(id)?.skipped_fires], [['12:00:05', '12:00:11'], 0]);
    }));

  /** None of them changes when `* * * * * ? *` fires. */
  const UNRELATED = [
    {},
    { metadata: { n: 1 } },
    { cron_expr: '* * * * * ? *', timezone: 'UTC', enabled: true },
    { timezone: null, enabled: null, timeout: null },
    { context: { data: { n: 1 } }, priority: 'high' },
    { overlap_policy: 'skip' },
    { overlap_policy: 'buffer_one' },
    { overlap_policy: 'allow', context: null },
  ];

  for (let seed = 1; seed <= byTier({ fast: 3, full: 10, deep: 100 }); seed++) {
    test(`seed ${seed}: no change that is none of when they fire loses a fire, however many come at once`, () =>
      play({ seed }, async (cron) => {
        cron.endFaults();
        // A writer that died before may still be on its way back, and the first fire would be late.
        await cron.world.sleep(5_000);
        const random = createRandom(seed);
        const ids: string[] = [];
        for (let n = 0; n < 6; n++) ids.push(await cron.schedule('* * * * * ? *'));
        const end = cron.world.now + 5_000;
        const changing = ids.flatMap((id, n) =>
          Array.from({ length: n }, async () => {
            while (cron.world.now < end) {
              await cron.ask('cron.update', id, random.pick(UNRELATED));
              await cron.world.sleep(random.pick([0, 1, 10, 100, 499, 500]));
            }
          }),
        );
        await Promise.all(changing);
        await cron.world.sleep(1_500);
        for (const id of ids) {
          const fired = cron.fired.filter((row) => row.cron_schedule_id === id);
          const seconds = fired.map((row) => Number(String(row.idempotency_key).slice(-7, -5)));
          const [first = 0] = seconds;
          assert.ok(seconds.length > 5);
          assert.deepEqual(
            seconds,
            Array.from(seconds, (_, n) => (first + n) % 60),
          );
        }
      }));
  }

  test('a schedule that is deleted fires no more', () =>
    play({}, async (cron) => {
      const id = await cron.schedule('*/10 * * * * ? *');
      await cron.until('2031-03-03T12:00:15Z');
      await cron.ask('cron.delete', id);
      await cron.until('2031-03-03T12:01:00Z');
      assert.deepEqual(cron.times(id), ['12:00:10']);
      assert.equal(cron.row(id), undefined);
    }));

  test('a sequence that is deleted takes it along, and nothing brings it back', () =>
    play({}, async (cron) => {
      const id = await cron.schedule('* * * * * ? *');
      await cron.until('2031-03-03T12:00:05.400Z');
      await cron.ask('catalog.delete', SEQUENCE, { cascade: false });
      const { length } = cron.fired;
      assert.ok(length > 0);
      await cron.until('2031-03-03T12:02:00Z');
      assert.equal(cron.row(id), undefined);
      assert.equal(cron.fired.length, length);
    }));
});

describe('exactly once', () => {
  const EVERY_TEN = ['12:00:10', '12:00:20', '12:00:30', '12:00:40'];
  type Strike = (cron: CronWorld, id: string) => void;
  type Times = (cron: CronWorld, id: string) => string[];
  const shardOfId = (id: string) => shardOf(routeOf(id), 2);
  const STRIKES: Readonly<Record<string, Strike>> = {
    'the writer dies at the commit of a fire': ({ cluster }) => cluster.newest.killWriter(),
    'the thread of the schedule dies at the commit of a fire': ({ cluster }, id) =>
      cluster.newest.killShard(shardOfId(id)),
    'the connection breaks after a commit': (cron) => cron.arm('exchange.lost after'),
    'the connection breaks before a commit': (cron) => cron.arm('exchange.lost before'),
    'the database is away for a moment': (cron) => cron.awayFor(500),
    'the process dies at the commit of a fire': ({ cluster }) => cluster.newest.exit('killed'),
  };
  for (const [what, strike] of Object.entries(STRIKES)) {
    const survives = (arm: (cron: CronWorld, id: string) => void, timesOf: Times) =>
      play({}, async (cron) => {
        const id = await cron.schedule('*/10 * * * * ? *');
        arm(cron, id);
        const end = Date.parse('2031-03-03T12:00:45Z');
        for (let n = 1; cron.world.now < end; n++) {
          await cron.ask('cron.update', id, { metadata: { n } });
          await cron.world.sleep(n % 2 === 0 ? 1 : 499);
        }
        assert.deepEqual(timesOf(cron, id), EVERY_TEN);
        assert.ok(cron.states(id).every((state) => state === 'completed'));
      });

    test(`while it is changed, and when ${what}`, () =>
      survives(
        (cron, id) => {
          cron.atNextFire = () => strike(cron, id);
        },
        (cron, id) => cron.times(id).map((time) => time.slice(0, 8)),
      ));

    test(`while it is changed, and when, just before a fire, ${what}`, () =>
      survives(
        (cron, id) => cron.world.at(Date.parse('2031-03-03T12:00:20Z'), () => strike(cron, id)),
        (cron) => cron.fired.map((row) => String(row.idempotency_key).slice(-13, -5)),
      ));
  }
});

describe('a missed stretch fires once, then the next time counts', () => {
  test('when the database was away', () =>
    play({}, async (cron) => {
      const id = await cron.schedule('*/10 * * * * ? *');
      await cron.until('2031-03-03T12:00:15Z');
      cron.awayFor(60_000);
      await cron.until('2031-03-03T12:01:35Z');
      const times = cron.times(id);
      // The second was on its way when the database went; the third stands for those from :30 on.
      const seen = [...times.slice(0, 2), ...times.slice(3)];
      assert.deepEqual(seen, ['12:00:10', '12:00:20', '12:01:20', '12:01:30']);
      assert.match(times[2] ?? '', /^12:01:1/);
    }));

  test('when nobody served for ten minutes', () =>
    play({}, async (cron) => {
      const id = await cron.schedule('0 * * * * ? *');
      await cron.until('2031-03-03T12:02:30Z');
      for (const thread of cron.cluster.newest.threads) thread.busyUntil = cron.world.now + 600_000;
      await cron.until('2031-03-03T12:15:30Z');
      const times = cron.times(id);
      const seen = [...times.slice(0, 2), ...times.slice(3)];
      assert.deepEqual(seen, ['12:01:00', '12:02:00', '12:13:00', '12:14:00', '12:15:00']);
      assert.match(times[2] ?? '', /^12:12:3/);
    }));
});

describe('while an earlier run has not ended', () => {
  const LONG = sleeping(25_000);

  const everyTen = (overlap_policy: string, scenario: (cron: CronWorld, id: string) => unknown) =>
    play({ blocks: LONG }, async (cron) => {
      await scenario(cron, await cron.schedule('*/10 * * * * ? *', { overlap_policy }));
    });

  test('allow: every fire makes an instance', () =>
    everyTen('allow', async (cron, id) => {
      await cron.until('2031-03-03T12:00:41Z');
      assert.deepEqual(cron.times(id), ['12:00:10', '12:00:20', '12:00:30', '12:00:40']);
      assert.deepEqual(cron.states(id), ['completed', 'running', 'running', 'running']);
    }));

  test('skip: no instance, and the skips are counted', () =>
    everyTen('skip', async (cron, id) => {
      await cron.until('2031-03-03T12:01:15Z');
      assert.deepEqual(cron.times(id), ['12:00:10', '12:00:40', '12:01:10']);
      const { skipped_fires, last_skipped_at } = cron.row(id) ?? {};
      assert.deepEqual([skipped_fires, last_skipped_at], [4, '2031-03-03T12:01:00.000Z']);
    }));

  test('buffer_one: one fire waits, and comes as soon as the run ends', () =>
    everyTen('buffer_one', async (cron, id) => {
      await cron.until('2031-03-03T12:00:34Z');
      assert.deepEqual(cron.times(id), ['12:00:10']);
      assert.equal(cron.row(id)?.next_fire_at, '2031-03-03T12:00:20.000Z');
      await cron.until('2031-03-03T12:01:15Z');
      // The first run ends at :35, the second at :00.
      const seen = cron.times(id).map((time) => time.slice(0, 8));
      assert.deepEqual(seen, ['12:00:10', '12:00:35', '12:01:00']);
      assert.equal(cron.row(id)?.skipped_fires, 0);
    }));

  test('buffer_one: the fire that waits survives its thread', () =>
    everyTen('buffer_one', async (cron, id) => {
      await cron.until('2031-03-03T12:00:30Z');
      cron.cluster.newest.killShard(shardOf(routeOf(id), 2));
      await cron.until('2031-03-03T12:00:41Z');
      assert.equal(cron.times(id).length, 2);
    }));

  test('cancel_previous: the run is cancelled before the next one begins', () =>
    everyTen('cancel_previous', async (cron, id) => {
      await cron.until('2031-03-03T12:00:31Z');
      assert.deepEqual(cron.times(id), ['12:00:10', '12:00:20', '12:00:30']);
      assert.deepEqual(cron.states(id), ['cancelled', 'cancelled', 'running']);
    }));
});

describe('whatever goes wrong', () => {
  const SEEDS = byTier({ fast: 4, full: 12, deep: 100 });
  const POLICIES = ['allow', 'skip', 'buffer_one', 'cancel_previous'];
  const EXPRESSIONS = ['*/2 * * * * ? *', '*/3 * * * * ? *'];
  for (let seed = 1; seed <= SEEDS; seed++) {
    test(`seed ${seed}: no fire time has two instances, and all goes on when it is over`, () =>
      play({ seed, blocks: sleeping(4_000) }, async (cron) => {
        const ids: string[] = [];
        for (const overlap_policy of POLICIES) {
          ids.push(await cron.schedule('*/3 * * * * ? *', { overlap_policy }));
        }
        for (let change = 0; change < POLICIES.length; change++) {
          await cron.world.sleep(5_000 + ((seed * 977 + change * 311) % 5_000));
          const cron_expr = EXPRESSIONS[(seed + change) % 2];
          await cron.ask('cron.update', ids[change] as string, { cron_expr });
        }
        const deleted = await cron.schedule('* * * * * ? *');
        await cron.world.sleep(3_000);
        await cron.ask('cron.delete', deleted);
        const before = cron.times(deleted).length;
        cron.endFaults();
        await cron.world.sleep(40_000);
        assert.equal(cron.times(deleted).length, before);
        const calmFrom = cron.fired.length;
        await cron.world.sleep(30_000);
        const calm = new Set(cron.fired.slice(calmFrom).map((row) => row.cron_schedule_id));
        for (const id of ids) assert.ok(calm.has(id), `${id} does not fire`);
        const keys = cron.fired.map((row) => row.idempotency_key);
        assert.equal(new Set(keys).size, keys.length);
      }));
  }
});
