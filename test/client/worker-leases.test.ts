/** Claims of a worker: kept by heartbeats, lost by silence, cancels and time limits, and given up in the end. */

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type AbortReason, TaskAbortedError } from '../../client/src/index.js';
import { eventually, newHandler, PREPARED, step, useSharedApi } from '../helpers/api.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';
import { type Between, reportsOf, runWorker, signalled } from '../helpers/workers.js';

const EXAMPLE = fileURLToPath(new URL('../../examples/worker.js', import.meta.url));

const LEASE_MS = 1_000 * Number(PREPARED.quick.env.ENGINE_WORKER_REAPER_STALE_SECS);
/** Where a lease must not end by silence, however late a busy machine sends heartbeats. */
const LONG_MS = 3_600_000;

const api = useSharedApi('quick');

function world() {
  const tenant = api.tenant();
  return { tenant, place: { url: api.url, tenant: tenant.name }, handler: newHandler() };
}

/** Resolves with why, once it is aborted. */
const abortOf = (signal: AbortSignal) =>
  new Promise<AbortReason>((resolve) => {
    signal.addEventListener('abort', () => {
      assert.ok(signal.reason instanceof TaskAbortedError);
      resolve(signal.reason.reason);
    });
  });

describe('claims', { concurrency: true }, () => {
  test('a task that takes longer than the lease stays with its worker', async (t) => {
    const { tenant, place, handler } = world();
    await runWorker(t, place, {
      leaseMs: LEASE_MS,
      handlers: {
        [handler]: () => new Promise((resolve) => setTimeout(resolve, 2 * LEASE_MS, { n: 1 })),
      },
    });
    await tenant.runUntil('completed', [step('a', handler)]);
    const [{ id } = { id: '' }] = await tenant.tasks(handler);
    assert.deepEqual(await tenant.attempts(id), [
      ['claimed', 1],
      ['completed', 1],
    ]);
  });

  test('a cancel aborts the signal, and whatever the handler returns then is not reported', async (t) => {
    const { tenant, place, handler } = world();
    const [began, aborted] = [signalled(), signalled<AbortReason>()];
    const { exchanges, warnings } = await runWorker(t, place, {
      leaseMs: LONG_MS,
      heartbeatMs: 200,
      handlers: {
        [handler]: async (_, { signal }) => {
          began.resolve();
          aborted.resolve(await abortOf(signal));
          return { late: true };
        },
      },
    });
    const id = await tenant.run([step('a', handler)]);
    await began.promise;
    await tenant.signal(id, 'cancel');
    assert.equal(await aborted.promise, 'lost');
    await tenant.until(id, 'cancelled');
    await eventually(() => assert.ok(warnings.some((line) => line.includes('claim was lost'))));
    assert.equal(reportsOf(exchanges).length, 0);
  });

  test('a worker that cannot reach the server stops its handlers when the lease is over, and another has the task', async (t) => {
    const { tenant, place, handler } = world();
    const [began, aborted] = [signalled(), signalled<AbortReason>()];
    let isCut = false;
    const between: Between = (_, forward) => {
      if (isCut) throw new TypeError('fetch failed');
      return forward();
    };
    const cut = { ...place, between };
    const { warnings } = await runWorker(t, cut, {
      leaseMs: LEASE_MS,
      stopTimeoutMs: 0,
      handlers: {
        [handler]: async (_, { signal }) => {
          isCut = true;
          began.resolve();
          aborted.resolve(await abortOf(signal));
          throw signal.reason;
        },
      },
    });
    const id = await tenant.run([step('a', handler)]);
    await began.promise;
    assert.equal(await aborted.promise, 'silent');
    await runWorker(t, place, { handlers: { [handler]: () => ({ by: 'another' }) } });
    await tenant.until(id, 'completed');
    const [task] = await tenant.tasks(handler);
    assert.equal(task?.claim_epoch, 2);
    assert.equal(warnings.filter((line) => line.includes('no response')).length, 1);
  });

  test('a result that comes after the claim was lost is dropped with a warning', async (t) => {
    const { tenant, place, handler } = world();
    const [began, release] = [signalled(), signalled()];
    const { warnings } = await runWorker(t, place, {
      // It assumes an hour; and without a free place it does not take the task again itself.
      leaseMs: LONG_MS,
      concurrency: 1,
      handlers: {
        [handler]: async () => {
          began.resolve();
          await release.promise;
          return { by: 'the first' };
        },
      },
    });
    const id = await tenant.run([step('a', handler)]);
    await began.promise;
    const again = await tenant.task(handler, { worker_id: 'the second' });
    release.resolve();
    await eventually(() => assert.match(warnings.join('\n'), /dropped: its claim is lost/));
    await tenant.complete(again, { by: 'the second' });
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.outputsOf(id), { a: { by: 'the second' } });
  });

  test('the time limit of a task aborts its signal', async (t) => {
    const { tenant, place, handler } = world();
    const reasons: AbortReason[] = [];
    await runWorker(t, place, {
      leaseMs: LONG_MS,
      handlers: {
        [handler]: async ({ attempt }, { signal }) => {
          if (attempt > 0) return { attempt };
          reasons.push(await abortOf(signal));
          throw signal.reason;
        },
      },
    });
    const retry = { max_attempts: 2, initial_backoff: 1 };
    // Long enough for the second try on a busy machine.
    const id = await tenant.runUntil('completed', [step('a', handler, { timeout: 2_000, retry })]);
    // The server's own limit began earlier, so that the next try may have ended before.
    await eventually(() => assert.deepEqual(reasons, ['timeout']));
    assert.deepEqual(await tenant.outputsOf(id), { a: { attempt: 1 } });
  });
});

describe('a worker that stops', { concurrency: true }, () => {
  test('finishes and reports what it has, and takes nothing more', async (t) => {
    const { tenant, place, handler } = world();
    const [began, release] = [signalled(), signalled()];
    const { worker } = await runWorker(t, place, {
      handlers: {
        [handler]: async () => {
          began.resolve();
          await release.promise;
          return { n: 1 };
        },
      },
    });
    const id = await tenant.run([step('a', handler)]);
    await began.promise;
    const stopped = worker.stop();
    const next = await tenant.run([step('a', handler)]);
    release.resolve();
    await stopped;
    assert.equal((await tenant.instance(id)).state, 'completed');
    assert.equal((await tenant.instance(next)).state, 'waiting');
    await worker.stop();
  });

  test('takes no task with it that its last poll was given', async (t) => {
    const { tenant, place, handler } = world();
    const stopped = signalled();
    const between: Between = async ({ sent }, forward) => {
      const response = await forward();
      // The task is claimed, and its answer on the way, when the worker is told to stop.
      if (sent.poll && /"claim_epoch"/.test(await response.clone().text())) {
        void worker.stop().then(stopped.resolve);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      return response;
    };
    let runs = 0;
    const handlers = {
      [handler]: () => {
        runs += 1;
      },
    };
    const { worker } = await runWorker(t, { ...place, between }, { leaseMs: LONG_MS, handlers });
    await tenant.run([step('a', handler)]);
    await stopped.promise;
    const [task] = await tenant.tasks(handler);
    assert.deepEqual([runs, task?.state, task?.lost_claims], [0, 'pending', 0]);
  });

  test('aborts what takes too long: what returns is reported, and the rest is offered again after its lease', async (t) => {
    const { tenant, place } = world();
    const [polite, quits, deaf] = [newHandler(), newHandler(), newHandler()];
    const began = signalled();
    let running = 0;
    const begin = () => {
      running += 1;
      if (running === 3) began.resolve();
    };
    const endings: string[] = [];
    const { worker } = await runWorker(t, place, {
      stopTimeoutMs: 50,
      handlers: {
        [polite]: async (_, { signal }) => {
          begin();
          return { was: await abortOf(signal) };
        },
        [quits]: async (_, { signal }) => {
          begin();
          throw new Error(await abortOf(signal));
        },
        [deaf]: () => {
          begin();
          return new Promise(() => undefined);
        },
      },
      hooks: { onTaskEnd: ({ ending }) => endings.push(ending) },
    });
    const first = await tenant.run([step('a', polite)]);
    const second = await tenant.run([step('a', deaf)]);
    await tenant.run([step('a', quits)]);
    await began.promise;
    await worker.stop();
    assert.deepEqual(endings, ['completed', 'given_up', 'given_up']);
    assert.deepEqual(await tenant.outputsOf(first), { a: { was: 'stopping' } });
    const again = await tenant.task(quits);
    assert.deepEqual([again.claim_epoch, again.lost_claims], [2, 0], 'its claim was given back');
    await tenant.complete(await tenant.task(deaf));
    await tenant.until(second, 'completed');
  });

  test('is a program like the example, which SIGTERM ends in order', async () => {
    const { tenant } = world();
    const settings = { ENGINE_URL: api.url, ENGINE_API_KEY: DEFAULT_API_KEY };
    const env = { ...process.env, ...settings, ENGINE_TENANT: tenant.name };
    const program = fork(EXAMPLE, { env, execArgv: [] });
    const exited = once(program, 'exit');
    try {
      const params = { name: 'Ada' };
      const id = await tenant.runUntil('completed', [step('a', 'greet', { params })]);
      assert.deepEqual(await tenant.outputsOf(id), { a: { greeting: 'Hello, Ada!' } });
    } finally {
      program.kill('SIGTERM');
    }
    assert.deepEqual(await exited, [0, null]);
  });
});
