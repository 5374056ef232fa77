/**
 * Heavy work in the threads of the pool: the same answers as in place, and what is too much.
 *
 * Cost: 5 s, since it hands texts of many megabytes to threads.
 */

import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { MessageChannel } from 'node:worker_threads';
import type { OutputText } from '../../actors/continuity/core/capsule.js';
import { nextProvenanceEntry, type StoredChain } from '../../actors/continuity/core/provenance.js';
import {
  OPEN_CAPSULE,
  REPLAY_MIGRATION,
  SEAL_CAPSULE,
  VERIFY_PROVENANCE,
} from '../../actors/continuity/jobs.js';
import { COMPARE_DEFINITIONS, COMPILE_CANDIDATE, REPLAY_RUN } from '../../actors/release/jobs.js';
import type { StoredRun } from '../../actors/release/replay-reads.js';
import type { MigrationReplay, RunReplay } from '../../actors/release/stored-replays.js';
import { linkControl, serveControl } from '../../actors/runtime/control.js';
import type { Block } from '../../schema/blocks.js';
import type { ProvenanceEntry } from '../../schema/continuity.js';
import { IN_PLACE, type Job, type Offload, TooCostly } from '../../src/base/offload.js';
import {
  JOBS_MAX,
  JOBS_PER_TENANT_MAX,
  type OffloadControl,
  OffloadPool,
  offloadThrough,
} from '../../src/base/offload-pool.js';
import { KEYRING, sealTask } from '../helpers/capsule-tasks.js';
import { noop, work } from '../helpers/player.js';
import { record, recordLife } from '../helpers/recorder.js';

const ID = '0195ffff-0000-7000-8000-000000000000';

function chain(length: number): StoredChain {
  const entries: ProvenanceEntry[] = [];
  for (let number = 0; number < length; number += 1) {
    const facts = {
      id: ID,
      continuity_id: ID,
      tenant_id: 'acme',
      epoch: 0,
      kind: 'model_selected',
      payload_sha256: 'ab'.repeat(32),
      created_at: '2026-01-01T00:00:00.000Z',
    } as const;
    entries.push(nextProvenanceEntry(entries.at(-1) ?? null, facts, KEYRING.signing));
  }
  const { id, publicKey } = KEYRING.signing;
  return { text: JSON.stringify(entries), trusted: [[id, publicKey]], expectedHead: undefined };
}

const definition = (blocks: readonly object[], padding = 0) =>
  JSON.stringify({
    id: 's',
    blocks: [...blocks, { ...noop('pad'), params: { text: 'x'.repeat(padding) } }],
  });

const pair = (padding: number) => ({
  baseline: definition([noop('a')], padding),
  candidate: definition([noop('b')], padding),
});

const output = (text: string): OutputText => ({
  block_id: 'a',
  iteration: '',
  attempt: 0,
  try: 0,
  output: text,
  output_ref: null,
  output_size: Buffer.byteLength(text),
  created_at: '2026-01-01T00:00:00Z',
});
const LARGE_OUTPUT = output(JSON.stringify({ text: 'ä'.repeat(300_000) }));

/** What an instance of these blocks leaves behind, as it is stored. */
function stored(blocks: readonly Block[], isOpen = false): StoredRun {
  const turns = blocks.length + 10;
  const left = isOpen
    ? recordLife([...blocks], {
        turns,
        answer: ({ blockId }) => (blockId === 'gate' ? { kind: 'never' } : {}),
      })
    : record([...blocks]);
  assert.ok(left !== undefined);
  const { data, config, execution, outputs, tasks, receipts, signals, ...run } = left;
  return {
    state: 'waiting',
    timeout: null,
    ...run,
    data: JSON.stringify(data),
    config: JSON.stringify(config),
    execution: JSON.stringify(execution),
    has_injected: false,
    outputs: JSON.stringify(outputs),
    tasks: JSON.stringify(tasks),
    receipts: JSON.stringify(receipts),
    signals: JSON.stringify(signals),
  };
}

const oneStep = definition([noop('a')]);
const same = { baseline: oneStep, candidate: oneStep };
const ran = stored([noop('a'), noop('pad')]);

function runReplay(more: Partial<RunReplay> = {}): RunReplay {
  return { definitions: same, run: ran, unpoliciedRetry: 'redispatch', ...more };
}

/** Each pass takes no more than a turn may, and there are more than a replay may have. */
const inner = {
  type: 'loop',
  id: 'm',
  condition: 'true',
  max_iterations: 100_000,
  body: [noop('b')],
};
const endless = definition([{ ...inner, id: 'l', body: [inner] }]);

function migrationReplay(steps: number, more: Partial<MigrationReplay> = {}): MigrationReplay {
  const blocks: Block[] = [...Array.from({ length: steps }, (_, i) => noop(`s${i}`)), work('gate')];
  const text = JSON.stringify({ blocks });
  return {
    source: text,
    target: text,
    isSame: false,
    life: stored(blocks, true),
    sourceData: '{}',
    targetData: '{}',
    hasTransforms: false,
    receipts: [],
    unpoliciedRetry: 'fail',
    ...more,
  };
}

const threeSteps = migrationReplay(3);

/** Each job with an input for a thread, and what is to be in the answer. */
const CASES: readonly (readonly [
  what: string,
  job: Job<never, unknown>,
  input: unknown,
  says: RegExp,
])[] = [
  ['a long chain', VERIFY_PROVENANCE, chain(120), /"valid":true,"entries_checked":120/],
  ['large definitions', COMPARE_DEFINITIONS, pair(128 * 1024), /block_added.*block_removed/],
  ['a large capsule', SEAL_CAPSULE, sealTask([LARGE_OUTPUT]), /"ok":true/],
  ['a candidate that runs', COMPILE_CANDIDATE, same, /^""$/],
  [
    'a candidate with two blocks of one id',
    COMPILE_CANDIDATE,
    { ...same, candidate: definition([noop('a'), noop('a')]) },
    /not unique/,
  ],
  ['a run', REPLAY_RUN, runReplay(), /"kind":"match"/],
  [
    'a run of a candidate with two blocks of one id',
    REPLAY_RUN,
    runReplay({ definitions: { ...same, candidate: definition([noop('a'), noop('a')]) } }),
    /the candidate does not compile/,
  ],
  ['a run that goes on', REPLAY_RUN, runReplay({ run: { ...ran, state: 'scheduled' } }), /again/],
  ['a migration', REPLAY_MIGRATION, threeSteps, /"passed":true/],
  [
    'a migration to other steps',
    REPLAY_MIGRATION,
    { ...threeSteps, target: JSON.stringify({ blocks: [noop('new'), work('gate')] }) },
    /"passed":false/,
  ],
  [
    'a migration to what does not compile',
    REPLAY_MIGRATION,
    { ...threeSteps, target: definition([noop('a'), noop('a')]) },
    /"reason":"the target/,
  ],
  [
    'a migration of an instance with blocks of its own',
    REPLAY_MIGRATION,
    { ...threeSteps, life: { ...threeSteps.life, has_injected: true } },
    /blocks of its own/,
  ],
];

describe('heavy work', () => {
  const pool = new OffloadPool();
  const offload = pool.through();
  const { port1, port2 } = new MessageChannel();
  serveControl(pool.control, port1);
  const link = linkControl<OffloadControl>(port2, 60_000);
  /** As a shard uses it. */
  const elsewhere = offloadThrough(link.remote);
  after(() => {
    link.close('the end');
    port1.close();
    return pool.stop();
  });

  for (const [what, job, input, says] of CASES) {
    test(`${what}: ${job.name} says the same in place, in a thread, and for another thread`, async () => {
      const run = (where: Offload) => where.run('t', job, input as never);
      const expected = await run(IN_PLACE);
      assert.match(typeof expected === 'string' ? expected : JSON.stringify(expected ?? ''), says);
      assert.deepEqual(await run(offload), expected);
      assert.deepEqual(await run(elsewhere), expected);
    });
  }

  test('capsules of any size are opened to what was sealed, unless a bit was changed', async () => {
    for (const text of ['{"n":1}', LARGE_OUTPUT.output ?? '']) {
      const sealed = await offload.run('t', SEAL_CAPSULE, sealTask([output(text)]));
      assert.ok(sealed.ok);
      const { capsule, payload_base64 } = sealed.value;
      const task = { capsule, keys: KEYRING.opening, now: '2026-01-02T00:00:00Z' };
      const bytes = Buffer.from(payload_base64, 'base64');
      const opened = await offload.run('t', OPEN_CAPSULE, { ...task, sealed: bytes });
      assert.ok(opened.ok);
      assert.deepEqual(JSON.parse(opened.value.outputs[0] ?? '').output, JSON.parse(text));
      bytes[20] = (bytes[20] ?? 0) ^ 1;
      const refused = await offload.run('t', OPEN_CAPSULE, { ...task, sealed: bytes });
      assert.match(refused.ok ? '' : refused.message, /hash mismatch/);
    }
  });

  test('that throws rejects with what it threw, wherever it was asked for', async () => {
    const broken = runReplay({ run: { ...ran, outputs: 'no JSON' } });
    await assert.rejects(offload.run('t', REPLAY_RUN, broken), SyntaxError);
    await assert.rejects(elsewhere.run('t', REPLAY_RUN, broken), SyntaxError);
    assert.deepEqual(await offload.run('t', REPLAY_RUN, runReplay()), { kind: 'match' });
  });

  test('that takes too long is given up, and the next job has a thread again', async () => {
    const long = runReplay({ definitions: { ...same, candidate: endless }, ticksMax: 1e9 });
    for (const asked of [offload, elsewhere]) {
      await assert.rejects(asked.run('t', REPLAY_RUN, long, 50), TooCostly);
    }
    assert.deepEqual(await offload.run('t', REPLAY_RUN, runReplay()), { kind: 'match' });
  });

  test('that needs too much memory costs its thread only', async () => {
    const small = new OffloadPool(32);
    try {
      // Bit by bit: what goes far beyond the bound in one call of the runtime ends its process.
      const many = definition(
        Array.from({ length: 80_000 }, (_, at) => ({
          ...noop(`b${at}`),
          params: { text: '{{ data.x }}' },
        })),
      );
      const large = { baseline: many, candidate: many };
      await assert.rejects(small.through().run('t', COMPILE_CANDIDATE, large), TooCostly);
      const { kind } = await small.through().run('t', REPLAY_RUN, runReplay());
      assert.equal(kind, 'match');
    } finally {
      await small.stop();
    }
  });

  test('is refused beyond a bound, and taken again later; small work needs no thread', async () => {
    const [large, small] = [pair(128 * 1024), pair(0)];
    assert.ok(!COMPARE_DEFINITIONS.isSmall(large) && COMPARE_DEFINITIONS.isSmall(small));
    const ask = (tenant: string, where: Offload = offload) =>
      where.run(tenant, COMPARE_DEFINITIONS, large);
    // Until they are given up: no job of its own is over by itself before the others are refused.
    const gone = new AbortController();
    const long = runReplay({ definitions: { ...same, candidate: endless }, ticksMax: 1e12 });
    const some = (tenant: string, count: number) =>
      Array.from({ length: count }, () =>
        pool.through(gone.signal).run(tenant, REPLAY_RUN, long, 600_000),
      );
    const taken = some('t', JOBS_PER_TENANT_MAX);
    await assert.rejects(ask('t'), { code: 'ENG_TENANT_SHARE', status: 429 });
    await assert.rejects(ask('t', elsewhere), { code: 'ENG_TENANT_SHARE', status: 429 });
    taken.push(...some('u', JOBS_MAX - JOBS_PER_TENANT_MAX));
    const overloaded = { code: 'ENG_OVERLOADED', status: 503 };
    await assert.rejects(ask('v'), overloaded);
    await assert.rejects(ask('v', elsewhere), overloaded);
    assert.ok(await offload.run('t', COMPARE_DEFINITIONS, small));
    gone.abort();
    await Promise.allSettled(taken);
    assert.ok(await ask('t'));
  });

  test('is given up by who asked for it, and when the engine stops', async () => {
    const stopping = new OffloadPool();
    const gone = new AbortController();
    const stopped = { code: 'ENG_STOPPING', status: 503 };
    const own = stopping.through(gone.signal).run('t', VERIFY_PROVENANCE, chain(5_000));
    const other = stopping.through().run('t', VERIFY_PROVENANCE, chain(120));
    gone.abort();
    await assert.rejects(own, stopped);
    assert.match(await other, /"valid":true/);
    const last = assert.rejects(
      stopping.through().run('t', VERIFY_PROVENANCE, chain(5_000)),
      stopped,
    );
    await stopping.stop();
    await last;
    await assert.rejects(stopping.through().run('t', VERIFY_PROVENANCE, chain(120)), stopped);
  });
});
