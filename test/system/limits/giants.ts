/**
 * Instances at the limits, alone and all at once: they end as specified, in bounded memory, and others
 * make progress all the time. What they cost the others in time is in `docs/limits.md`.
 */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { OUTPUT_ROWS } from '../../../actors/instance/output-tables.js';
import { ITERATIONS_MAX } from '../../../schema/blocks.js';
import { type Api, eventually, newHandler, step } from '../../helpers/api.js';
import {
  busiest,
  COMPOSITES,
  deepest,
  endless,
  type Giant,
  heaviest,
  longest,
  longestList,
  widest,
} from '../../helpers/giants.js';
import { startNeighbour } from '../../helpers/neighbour.js';

/** Far more than they take (some 100 MB), far less than a leak of a row's size would take. */
const GROWTH_MIB_MAX = 768;

export function describeGiants(api: Api): void {
  const giants = api.tenant('giants');
  const neighbours = api.tenant('neighbours');

  const start = async ({ blocks, data = {} }: Giant): Promise<string> =>
    giants.run(blocks, { context: { data } });

  /** Without the whole record, whose context may be large. */
  async function stateOf(id: string): Promise<string> {
    const { rows } = await api.sql.query('select state from instances where id = $1', [id]);
    return String(rows[0]?.state);
  }

  const until = (id: string, state: string) =>
    eventually(async () => {
      await pause(20);
      assert.equal(await stateOf(id), state);
    });

  async function rowsOf(id: string): Promise<number> {
    const { rows } = await api.sql.query(
      `select count(*)::int as n from ${OUTPUT_ROWS} o where instance_id = $1 and output_ref is null`,
      [id],
    );
    return Number(rows[0]?.n);
  }

  /** Completes whatever task of the handler there is, until `work` has ended. */
  async function withWorker<T>(handler: string | undefined, work: () => Promise<T>): Promise<T> {
    if (handler === undefined) return work();
    let isOver = false;
    const serve = async () => {
      for (let n = 0; !isOver; n += 1) {
        const tasks = await giants.poll(handler, { limit: 20, wait_ms: 200 });
        await Promise.all(tasks.map((task) => giants.complete(task, { n })));
      }
    };
    const worker = serve();
    try {
      return await work();
    } finally {
      isOver = true;
      await worker;
    }
  }

  /** Runs the giants at once until all have completed; each must have left exactly its rows. */
  async function complete(...all: readonly Giant[]): Promise<void> {
    const handler = all.find((giant) => giant.handler !== undefined)?.handler;
    await withWorker(handler, async () => {
      const ids = await Promise.all(all.map(start));
      for (const [i, { rows }] of all.entries()) {
        await until(ids[i] as string, 'completed');
        assert.equal(await rowsOf(ids[i] as string), rows);
      }
    });
  }

  function residentMib(): number {
    const status = readFileSync(`/proc/${api.engine.pid}/status`, 'utf8');
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
  }

  /** By how much the server's memory grew at most while `work` was done. */
  async function growthOf(work: () => Promise<void>): Promise<number> {
    const before = residentMib();
    let peak = before;
    const sampling = setInterval(() => {
      peak = Math.max(peak, residentMib());
    }, 50);
    try {
      await work();
    } finally {
      clearInterval(sampling);
    }
    return peak - before;
  }

  describe('alone', () => {
    test('4,608 tasks of one instance are open at a time, and are withdrawn with it', async () => {
      const handler = newHandler();
      const giant = busiest(handler);
      const id = await start(giant);
      const open = async () => {
        const { rows } = await api.sql.query(
          'select count(*)::int as n from worker_tasks where rank is not null and instance_id = $1',
          [id],
        );
        return Number(rows[0]?.n);
      };
      await eventually(async () => assert.equal(await open(), giant.rows));
      await giants.signal(id, 'cancel');
      assert.equal(await stateOf(id), 'cancelled');
      assert.equal(await open(), 0);
      assert.deepEqual(await giants.poll(handler), []);
    });
  });

  test('all of them at once complete in bounded memory, and others make progress all the time', async () => {
    const sequence = await neighbours.sequence([step('a', 'noop')]);
    const idle = startNeighbour(neighbours, sequence);
    await eventually(() => assert.ok(idle.latenciesMs.length >= 50));
    await idle.stop();
    const idleMs = idle.latenciesMs.slice(-40).reduce((sum, ms) => sum + ms) / 40;

    const neighbour = startNeighbour(neighbours, sequence);
    const began = performance.now();
    const growth = await growthOf(() =>
      complete(
        deepest(COMPOSITES),
        longest(),
        longestList(),
        widest(),
        endless(),
        heaviest(newHandler(), 2_000, 8),
      ),
    );
    const tookMs = performance.now() - began;
    await neighbour.stop();
    assert.ok(growth < GROWTH_MIB_MAX, `memory grew by ${growth.toFixed(0)} MiB`);
    const least = tookMs / idleMs / 50;
    const { length } = neighbour.latenciesMs;
    assert.ok(
      length > least,
      `${length} neighbours in ${tookMs.toFixed(0)} ms, idle: ${idleMs} ms`,
    );
  });

  describe('a loop of 100,000 iterations does not hold up what is asked of its instance', () => {
    const iterations = async (id: string) => (await rowsOf(id)) / 2;
    const underWay = (id: string, more = 0) =>
      eventually(async () => assert.ok((await iterations(id)) > more));

    /** Sends the signal; the rows that were added from its answer on are none. */
    async function stopsAt(id: string, signal: string, state: string): Promise<number> {
      await giants.signal(id, signal);
      assert.equal(await stateOf(id), state);
      const done = await iterations(id);
      assert.ok(done < ITERATIONS_MAX / 2, 'it had ended before');
      await giants.instance(id);
      assert.equal(await iterations(id), done);
      return done;
    }

    test('pause holds it, and resume lets it go on from where it was', async () => {
      const id = await start(endless());
      await underWay(id);
      const done = await stopsAt(id, 'pause', 'paused');
      await giants.signal(id, 'resume');
      await underWay(id, done);
      const later = await stopsAt(id, 'pause', 'paused');
      assert.ok(later > done);
      await giants.signal(id, 'cancel');
    });
  });
}
