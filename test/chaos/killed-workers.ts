/**
 * Kills of worker processes and of their server at random moments, whatever the workers are written in. Every claim is
 * run once and ends at most once, what a worker has done and could report is there, and every instance completes.
 */

import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { TestContext } from 'node:test';
import type { WorkerAttempt } from '../../schema/worker.js';
import { type Api, eventually, newHandler, step, type Tenant } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';
import type { LedgerLine, WorkerPlan } from '../system/library-worker.child.js';
import { createRandom } from './random.js';

const WORKERS = 3;
/** Between two faults at least so many handlers begin: each fault meets work. */
const BEGINNINGS = 25;
const STALE_SECS = 2;

/** Of a server that soon gives a silent worker's tasks to others. */
export const KILLS_ENV = {
  ENGINE_SHARDS: '2',
  ENGINE_WORKER_REAPER_STALE_SECS: String(STALE_SECS),
  ENGINE_WORKER_REAPER_TICK_SECS: '1',
};

export interface Kills {
  readonly api: Api;
  readonly seed: number;
  readonly workerKills: number;
  readonly serverKills: number;
  /** Starts a worker process with the text of its plan. */
  start(plan: string): ChildProcess;
}

export async function surviveKills(t: TestContext, kills: Kills): Promise<void> {
  t.diagnostic(`seed ${kills.seed}`);
  const tenant = kills.api.tenant();
  const handlers = [newHandler(), newHandler()];
  const faults = kills.workerKills + kills.serverKills;
  const ids = await createInstances(tenant, handlers, Math.ceil((faults + 2) * BEGINNINGS * 0.6));
  const folder = mkdtempSync(path.join(tmpdir(), 'killed-workers-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const ledger = path.join(folder, 'ledger');
  writeFileSync(ledger, '');
  const fleet = new Fleet(kills, {
    url: kills.api.url,
    apiKey: DEFAULT_API_KEY,
    tenant: tenant.name,
    handlers,
    leaseMs: STALE_SECS * 1_000,
    ledger,
  });
  t.after(() => fleet.end());
  await injectFaults(fleet, kills, ledger);
  for (const id of ids) await tenant.until(id, 'completed');
  assert.deepEqual(await fleet.stop(), Array(WORKERS).fill(0), 'each ends by itself when told');
  const lines = linesOf(ledger);
  t.diagnostic(`${ids.length} instances, ${lines.length} lines, ${fleet.started} processes`);
  await checkClaims(tenant, lines);
  await checkOutputs(tenant, ids, lines);
}

async function createInstances(tenant: Tenant, handlers: readonly string[], count: number) {
  const retry = { max_attempts: 100, initial_backoff: 1, max_backoff: 1 };
  const sequence = await tenant.sequence(handlers.map((name) => step(name, name, { retry })));
  return Promise.all(Array.from({ length: count }, () => tenant.create(sequence)));
}

async function injectFaults(
  fleet: Fleet,
  { api, seed, workerKills, serverKills }: Kills,
  ledger: string,
): Promise<void> {
  const random = createRandom(seed, 0);
  const left = { worker: workerKills, server: serverKills };
  while (left.worker + left.server > 0) {
    const begun = linesOf(ledger).length;
    await eventually(() => assert.ok(linesOf(ledger).length >= begun + BEGINNINGS));
    const isServer = random.integer(1, left.worker + left.server) <= left.server;
    if (isServer) {
      left.server -= 1;
      await api.restart();
    } else {
      left.worker -= 1;
      await fleet.killOne(random.integer(0, WORKERS - 1));
    }
  }
}

/** Worker processes; one that is killed has a successor with another id. */
class Fleet {
  started = 0;
  readonly #kills: Kills;
  readonly #plan: Omit<WorkerPlan, 'workerId' | 'seed'>;
  readonly #processes: ChildProcess[];
  /** Of the processes, in their order. */
  readonly #names: string[] = [];

  constructor(kills: Kills, plan: Omit<WorkerPlan, 'workerId' | 'seed'>) {
    this.#kills = kills;
    this.#plan = plan;
    this.#processes = Array.from({ length: WORKERS }, (_, at) => this.#start(at));
  }

  #start(at: number): ChildProcess {
    this.started += 1;
    const workerId = `w${this.started}`;
    this.#names[at] = workerId;
    const own = { workerId, seed: this.#kills.seed + this.started };
    return this.#kills.start(JSON.stringify({ ...this.#plan, ...own }));
  }

  async killOne(at: number): Promise<void> {
    const process = this.#processes[at] as ChildProcess;
    const exited = once(process, 'exit');
    process.kill('SIGKILL');
    await exited;
    this.#processes[at] = this.#start(at);
  }

  /** @returns their exit codes */
  async stop(): Promise<(number | null)[]> {
    // The last one that was started may not listen yet.
    await eventually(() => {
      const ready = linesOf(this.#plan.ledger).filter(({ kind }) => kind === 'ready');
      for (const name of this.#names) assert.ok(ready.some(({ mark }) => mark === name));
    });
    return Promise.all(
      this.#processes.map(async (process) => {
        const exited = once(process, 'exit');
        process.kill('SIGTERM');
        const [code] = (await exited) as [number | null];
        return code;
      }),
    );
  }

  end(): void {
    for (const process of this.#processes) if (process.exitCode === null) process.kill('SIGKILL');
  }
}

/** The last line may be half of one: its process was killed. */
function linesOf(ledger: string): LedgerLine[] {
  const text = readFileSync(ledger, 'utf8');
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  return whole
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as LedgerLine);
}

const ENDS = ['completed', 'failed', 'reclaimed', 'cancelled', 'timed_out'];

async function checkClaims(tenant: Tenant, lines: readonly LedgerLine[]): Promise<void> {
  const began = lines.filter(({ kind }) => kind === 'began');
  const claims = new Set(began.map(({ task, epoch }) => `${task} ${epoch}`));
  assert.equal(began.length, claims.size, 'no claim is run twice');
  for (const task of new Set(began.map((line) => line.task))) {
    const reply = await tenant.get<WorkerAttempt[]>(`/workers/tasks/${task}/attempts?limit=1000`);
    const history = expectStatus(reply, 200);
    for (const { epoch, kind } of lines.filter((line) => line.task === task)) {
      const ends = history
        .filter(({ claim_epoch, event }) => claim_epoch === epoch && ENDS.includes(event))
        .map(({ event }) => event);
      assert.equal(ends.length, 1, `claim ${epoch} of ${task} ended ${ends.join(', ') || 'not'}`);
      // What was done is told, unless the claim was lost before it could be.
      if (kind === 'done') assert.match(ends[0] ?? '', /completed|reclaimed/);
      if (kind === 'threw') assert.match(ends[0] ?? '', /failed|reclaimed/);
    }
  }
}

async function checkOutputs(tenant: Tenant, ids: readonly string[], lines: readonly LedgerLine[]) {
  const done = new Set(lines.filter(({ kind }) => kind === 'done').map(({ mark }) => mark));
  const marks: unknown[] = [];
  for (const id of ids) {
    const outputs = await tenant.outputs(id);
    assert.equal(outputs.length, 2, `${id} has an output of each step, once`);
    for (const { output } of outputs) {
      assert.ok(done.has(String(output.mark)), `${output.mark} is the effect of a handler`);
      marks.push(output.mark);
    }
  }
  assert.equal(new Set(marks).size, marks.length, 'no effect is the output of two steps');
}
