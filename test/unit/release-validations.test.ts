/** How validations are led: those of a tenant one after the other, and to an end whatever fails. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { beforeEach, test } from 'node:test';
import type { Verdict } from '../../actors/release/core/replay.js';
import {
  REPLAYS_MS,
  RUN_BYTES_MAX,
  VALIDATIONS_MAX,
  VALIDATIONS_PER_TENANT_MAX,
  Validations,
} from '../../actors/release/front/validation.js';
import type { ValidationEnd } from '../../actors/release/releases.js';
import type { SampledRun } from '../../actors/release/replay-reads.js';
import type { ValidationReport } from '../../schema/release.js';
import type { Clock } from '../../src/base/clock.js';
import { conflict, type EngineError, unavailable } from '../../src/base/errors.js';
import { createLogger } from '../../src/base/log.js';
import { TooCostly } from '../../src/base/offload.js';
import type { FrontDeps } from '../../src/http/operation.js';
import type { HttpReply } from '../../src/http/server.js';
import { column } from '../helpers/columns.js';
import { frontCall } from '../helpers/front-call.js';

const AWAY = unavailable('ENG_DATABASE_DOWN', 'the database is away');
/** The parts around the validations, which do what the test says. */
class World {
  now = 0;
  readonly timers: (() => void)[] = [];
  readonly asked: string[] = [];
  readonly ends: ValidationEnd[] = [];
  runs: readonly SampledRun[] = [];
  verdict: (id: string) => Promise<Verdict> = async () => ({ kind: 'match' });
  read: () => Promise<string | undefined> = async () => '{}';
  problem: string | undefined;
  /** Thrown by the owner instead of taking an end; the first first. */
  readonly refusals: EngineError[] = [];
  readonly validations: Validations;
  readonly #front: FrontDeps;

  constructor() {
    const clock: Clock = {
      now: () => this.now,
      monotonic: () => this.now,
      setTimeout: (work) => this.timers.push(work),
      clearTimeout: () => undefined,
    };
    const client = {
      ask: async (_: number, operation: string, __: string, id: string, body: unknown) => {
        this.asked.push(operation);
        if (operation === 'releases.beginValidation') {
          const release = { id, tenant_id: 't', baseline_sequence_id: 'b' };
          return { status: 200, body: JSON.stringify({ release }) };
        }
        const refusal = this.refusals.shift();
        if (refusal !== undefined) throw refusal;
        const end = body as ValidationEnd;
        this.ends.push(end);
        return { status: 200, body: JSON.stringify({ state: end.outcome }) };
      },
    };
    const offload = {
      run: async (_: string, job: { name: string }, { run }: { run: { id: string } }) =>
        job.name === 'compileCandidate' ? this.problem : this.verdict(run.id),
    };
    const reads = {
      rows: async ({ name, values: [id] }: { name: string; values: readonly unknown[] }) => {
        if (name === 'reads_replay_sample') return this.runs;
        if (name === 'reads_replay_run') return id === 'gone' ? [] : [{ id }];
        const definition = await this.read();
        return definition === undefined ? [] : [{ tenant_id: 't', definition }];
      },
    };
    this.#front = { reads } as unknown as FrontDeps;
    this.validations = new Validations({
      client,
      pool: { through: () => offload as never },
      unpoliciedRetry: 'redispatch',
      clock,
      log: createLogger('silent', 'test'),
    });
  }

  validate(body = '{}', tenant = 't'): Promise<HttpReply> {
    const operation = this.validations.operations['releases.validate'];
    const call = { tenant, params: { id: randomUUID() }, bodyText: body };
    return operation(this.#front, frontCall('releases.validate', call));
  }

  async report(tenant?: string): Promise<ValidationReport> {
    return JSON.parse(String((await this.validate('{}', tenant)).body)) as ValidationReport;
  }
}

const runs = (...ids: string[]) => ids.map((id) => ({ id, bytes: 10 }));

let world: World;
beforeEach(() => {
  world = new World();
});

test('every run is judged, and the owner is told of all', async () => {
  world.runs = [...runs('a', 'gone', 'b'), { id: 'large', bytes: RUN_BYTES_MAX + 1 }];
  const { release_state, ...evidence } = await world.report();
  const inconclusive_runs = [
    { instance_id: 'gone', reason: 'it has been removed' },
    { instance_id: 'large', reason: 'it is too large' },
  ];
  const counts = { replayed: 4, matches: 2, diverged: 0, inconclusive: 2 };
  assert.deepEqual(evidence, { ...counts, divergences: [], inconclusive_runs });
  assert.deepEqual([release_state, world.ends], ['ready', [{ outcome: 'ready', evidence }]]);
});

test('runs are inconclusive that are not reached in time, or whose replay costs too much or throws', async () => {
  world.runs = runs('costly', 'broken', 'c', 'd', 'e');
  world.verdict = async (id) => {
    if (id === 'costly') throw new TooCostly();
    if (id === 'broken') throw new SyntaxError('no JSON');
    world.now += REPLAYS_MS / 2;
    return { kind: 'match' };
  };
  const { replayed, matches, inconclusive, release_state } = await world.report();
  assert.deepEqual([replayed, matches, inconclusive, release_state], [5, 2, 3, 'ready']);
});

test('validations of a tenant follow one another, and more than may wait are refused before they begin', async () => {
  world.runs = runs('a');
  let underWay = 0;
  const goOn: (() => void)[] = [];
  world.verdict = async () => {
    underWay += 1;
    assert.ok(underWay <= 2, 'one of each tenant');
    await new Promise<void>((resolve) => goOn.push(resolve));
    underWay -= 1;
    return { kind: 'match' };
  };
  const turns = async () => {
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  const of = (tenant: string, count: number) =>
    Array.from({ length: count }, () => world.report(tenant));
  const reports = of('t', VALIDATIONS_PER_TENANT_MAX);
  await turns();
  assert.equal(underWay, 1, 'the others of the tenant wait');
  await assert.rejects(world.report('t'), { code: 'ENG_TENANT_SHARE', status: 429 });
  reports.push(...of('other', VALIDATIONS_MAX - VALIDATIONS_PER_TENANT_MAX));
  await turns();
  assert.equal(underWay, 2, 'another tenant begins at once');
  await assert.rejects(world.report('third'), { code: 'ENG_OVERLOADED', status: 503 });
  assert.equal((await world.validate('{"skip":true}')).status, 200);
  assert.equal(world.asked.length, VALIDATIONS_MAX + 1);
  for (let ended = 0; ended < VALIDATIONS_MAX; ended += 1) {
    while (goOn.length === 0) await new Promise((resolve) => setImmediate(resolve));
    goOn.shift()?.();
  }
  for (const report of await Promise.all(reports)) assert.equal(report.matches, 1);
});

test('a candidate that is gone, history that cannot be read, or a defect makes the release a draft again', async () => {
  for (const [read, refused] of [
    [async () => undefined, { code: 'ENG_NOT_FOUND' }],
    [() => Promise.reject(AWAY), { code: 'ENG_DATABASE_DOWN' }],
    [() => Promise.reject(new TypeError('no such thing')), TypeError],
  ] as const) {
    world = new World();
    world.read = read;
    await assert.rejects(world.report(), refused);
    const [end] = world.ends;
    assert.ok(end?.outcome === 'draft');
    assert.doesNotMatch(end.reason, /no such thing/);
  }
});

test('a candidate that does not compile fails its release', async () => {
  world.problem = 'block a is not unique';
  world.runs = runs('a');
  const { replayed, release_state } = await world.report();
  assert.deepEqual([replayed, release_state], [0, 'failed']);
});

test('an end that the owner could not take is told again until it does', async () => {
  world.refusals.push(AWAY, AWAY, AWAY);
  await assert.rejects(world.report(), { code: 'ENG_DATABASE_DOWN' });
  while (world.timers.length > 0) {
    world.timers.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
  // Whether the first one was stored after all is not known; that it is ready is not claimed again.
  assert.deepEqual(column(world.ends, 'outcome'), ['draft']);
  assert.equal(world.refusals.length, 0);
});

test('an end that has been overtaken is not told again, and nothing begins after the stop', async () => {
  world.refusals.push(conflict('release is not being validated'), AWAY);
  await assert.rejects(world.report(), { code: 'ENG_CONFLICT' });
  assert.deepEqual(world.timers, []);
  const failed = assert.rejects(world.report(), { code: 'ENG_DATABASE_DOWN' });
  await world.validations.stop();
  await failed;
  await assert.rejects(world.report(), { code: 'ENG_STOPPING' });
  assert.deepEqual(world.timers, []);
});
