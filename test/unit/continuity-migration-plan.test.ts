/** Verdicts on migrations: the table, findings, the position that is reached, and effects. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  findingCodes,
  mayApply,
  migrationView,
  openSecrets,
  REPLAY_FAIL,
  REPLAY_PASS,
  sealSecrets,
  verdictOn,
} from '../../actors/continuity/core/migration.js';
import { carryOver, isCarried } from '../../actors/instance/core/carry-over.js';
import { lostCleanUps } from '../../actors/instance/core/owed-clean-ups.js';
import type { FrontierCase, PositionVerdict } from '../../actors/release/core/position.js';
import {
  brokenRule,
  type JudgedReceipt,
  replayToPosition,
} from '../../actors/release/core/position.js';
import type { RerunOptions } from '../../actors/release/core/rerun.js';
import type { Block, Hooks } from '../../schema/blocks.js';
import type { EffectReceipt } from '../../schema/continuity.js';
import type { EffectState } from '../../schema/continuity-words.js';
import type { Entry } from '../../schema/diff-entry.js';
import { emptyExecution } from '../../schema/execution.js';
import type { JsonObject } from '../../src/base/json.js';
import { advance } from '../../src/core/evaluator.js';
import { remapExecution } from '../../src/core/remap.js';
import { createKeyring } from '../../src/core/sealing/keys.js';
import { column } from '../helpers/columns.js';
import {
  failing,
  loop,
  noop,
  parallel,
  planOf,
  play,
  START,
  tryCatch,
  work,
} from '../helpers/player.js';
import { record, recordLife } from '../helpers/recorder.js';
import { casesIn } from '../helpers/table.js';

const entry = (category: Entry['category'], severity: Entry['severity']): Entry => {
  return { category, severity, summary: '' };
};

describe('the verdict', () => {
  const cases: readonly [string, readonly string[], boolean, string][] = [
    ['nothing found', [REPLAY_PASS], false, 'automatic'],
    ['only differences that behave', ['BLOCK_REMOVED', REPLAY_PASS], false, 'automatic'],
    ['transforms', [REPLAY_PASS], true, 'approval_required'],
    ['a risk', ['SIDE_EFFECT_RISK:BLOCK_ADDED', REPLAY_PASS], false, 'approval_required'],
    ['an output lost', ['CHECKPOINT_OUTPUT_REMOVED:a', REPLAY_PASS], false, 'approval_required'],
    ['a clean-up lost', ['CLEANUP_REMOVED:s', REPLAY_PASS], false, 'approval_required'],
    ['a failed replay', [REPLAY_FAIL], false, 'pin'],
    ['a failed replay and transforms', [REPLAY_FAIL], true, 'pin'],
    ['a failed replay and a risk', ['SIDE_EFFECT_RISK:BLOCK_ADDED', REPLAY_FAIL], false, 'pin'],
    ['incompatible', ['INCOMPATIBLE:INPUT_SCHEMA_NARROWED', REPLAY_PASS], false, 'incompatible'],
    ['incompatible before all', ['INCOMPATIBLE:X', REPLAY_FAIL], true, 'incompatible'],
  ];
  for (const [name, codes, hasTransforms, expected] of cases) {
    test(`${name}: ${expected}`, () => assert.equal(verdictOn(codes, hasTransforms), expected));
  }

  test('what is pinned or incompatible is never applied, not even approved', () => {
    const table = ['automatic', 'approval_required', 'pin', 'incompatible'] as const;
    const allowed = (isApproved: boolean) => table.filter((it) => mayApply(it, isApproved));
    assert.deepEqual(allowed(false), ['automatic']);
    assert.deepEqual(allowed(true), ['automatic', 'approval_required']);
  });

  test('findings are sorted and distinct, and say how grave they are', () => {
    const entries = [
      entry('block_added', 'behavioral'),
      entry('block_added', 'behavioral'),
      entry('block_added', 'side_effect_risk'),
      entry('input_schema_narrowed', 'incompatible'),
      entry('blocks_reordered', 'informational'),
    ];
    const losses = { outputs: ['z', 'a', 'z'], cleanUps: [{ code: 'CLEANUP_REMOVED:s' }] as never };
    assert.deepEqual(findingCodes({ entries }, losses, true), [
      'BLOCKS_REORDERED',
      'BLOCK_ADDED',
      'CHECKPOINT_OUTPUT_REMOVED:a',
      'CHECKPOINT_OUTPUT_REMOVED:z',
      'CLEANUP_REMOVED:s',
      REPLAY_PASS,
      'INCOMPATIBLE:INPUT_SCHEMA_NARROWED',
      'SIDE_EFFECT_RISK:BLOCK_ADDED',
    ]);
  });
});

// ---------------------------------------------------------------- the position

const NEVER = { kind: 'never' } as const;

/** The life of the source, left where nothing happens without the blocks that never answer. */
function judge(
  source: Block[],
  target: Block[],
  more: Partial<FrontierCase> &
    Partial<RerunOptions> & {
      stuck?: readonly string[];
      data?: JsonObject;
      check?: Parameters<typeof planOf>[1];
    } = {},
): PositionVerdict {
  const { stuck = ['gate'], data = {}, check, ticksMax, ...others } = more;
  const { unpoliciedRetry = 'redispatch', ...rest } = others;
  const options = { unpoliciedRetry } as const;
  const life =
    rest.life ??
    recordLife(source, {
      ...options,
      data,
      turns: 40,
      answer: ({ blockId }) => (stuck.includes(blockId) ? NEVER : {}),
    });
  assert.ok(life !== undefined, 'it has ended');
  return replayToPosition(
    {
      source: planOf(source),
      target: planOf(target, check),
      isSame: false,
      life,
      sourceData: life.data,
      targetData: life.data,
      hasTransforms: false,
      receipts: [],
      ...rest,
    },
    { ...options, ...(ticksMax && { ticksMax }) },
  );
}

const PASSED = { passed: true } as const;
const gate = work('gate');

function reasonOf(verdict: PositionVerdict): string {
  assert.ok(!verdict.passed);
  return verdict.reason;
}

const receipt = (state: EffectState, block_id = 'gate'): EffectReceipt => ({
  id: `receipt of ${block_id}`,
  ...{ tenant_id: 't', continuity_id: 'c', epoch: 0, instance_id: 'i', block_id, attempt: 0 },
  ...{ kind: 'worker', state, request_sha256: '', destination_fingerprint: 'd' },
  ...{ idempotency_key: null, provider_receipt_id: null },
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
});

describe('the position', () => {
  const source = [noop('a'), gate];
  /** A call, and the gate behind it. */
  const first = (handler: string, params: object): Block[] => [
    { type: 'step', id: 'a', handler, params } as Block,
    gate,
  ];

  test('is another one when a step that nobody recorded stands before it', () => {
    for (const target of [
      [noop('new'), ...source],
      [noop('a'), noop('new'), gate],
      [noop('a'), parallel('p', [gate], [noop('new')])],
    ]) {
      assert.match(reasonOf(judge(source, target)), /other steps/);
    }
  });

  test('has no step of which somebody has found out more than the engine knows', () => {
    for (const state of ['unknown', 'committed', 'compensated', 'abandoned'] as const) {
      const verdict = judge(source, source, { receipts: [receipt(state)] });
      assert.equal(reasonOf(verdict), 'step gate was sent already');
    }
    // Those that are under way are carried over, or keep the instance where it is.
    for (const state of ['planned', 'prepared', 'dispatched', 'failed'] as const) {
      assert.deepEqual(judge(source, source, { receipts: [receipt(state)] }), PASSED);
    }
    assert.deepEqual(judge(source, source, { receipts: [receipt('committed', 'a')] }), PASSED);
  });

  test('is reached by the same calls, or the member that differs is named', () => {
    const data = { n: 1, m: 1 };
    for (const handler of ['pay', 'http_request']) {
      const asked = (params: object) =>
        judge(first(handler, { n: '{{data.n}}' }), first(handler, params), { data });
      assert.deepEqual(asked({ n: '{{data.m}}' }), PASSED);
      assert.equal(reasonOf(asked({ n: 2 })), 'step a makes another call: params.n');
      const inPlace = judge(first(handler, {}), first('transform', {}), { data });
      assert.equal(reasonOf(inPlace), 'step a makes another call: handler');
    }
  });

  test('is reached by steps that say the same, whatever was merged since', () => {
    const pay = (n: string) => first('pay', { n });
    const merged = { n: 2, m: 2 };
    const changed = { data: { n: 1, m: 2 }, sourceData: merged, targetData: merged };
    const more = { ...changed, hasTransforms: true };
    assert.deepEqual(judge(pay('{{data.n}}'), pay('{{data.n}}'), more), PASSED);
    const other = judge(pay('{{data.n}}'), pay('{{data.m}}'), more);
    assert.equal(reasonOf(other), 'step a makes another call: params.n');
  });

  test('has no step that went out, where the instance cannot take that with it', () => {
    const before = { ...receipt('unknown'), attempt: -1 };
    assert.deepEqual(judge(source, source, { receipts: [before] }), PASSED);
    const verdict = judge(source, [noop('a'), tryCatch('t', [gate], [])], { receipts: [before] });
    assert.equal(reasonOf(verdict), 'step gate was sent already');
  });

  test('fails with a version that fails on the way', () => {
    const target = [{ ...noop('a'), output_schema: { type: 'string' } } as Block, gate];
    const verdict = judge(source, target, { check: () => () => 'it is no string' });
    assert.match(reasonOf(verdict), /one is open, the other failed/);
  });

  test('is judged by what has to hold of effects', () => {
    const verdict = judge(source, source, { receipts: [receipt('unknown', 'elsewhere')] });
    assert.equal(reasonOf(verdict), 'no_unknown_effects: fail');
  });

  test('is given up after too many turns', () => {
    const blocks = [loop('l', 'true', 100, [noop('x')]), gate];
    assert.match(reasonOf(judge(blocks, blocks, { ticksMax: 20 })), /more than 20 turns/);
  });

  test('comes of the data of the checkpoint, transformed for the target', () => {
    const route = (condition: string): Block => ({
      type: 'router',
      id: 'r',
      routes: [{ condition, blocks: [gate] }],
      default: [work('other')],
    });
    const data = { sourceData: { old: 1 }, targetData: { new: 1 }, hasTransforms: true };
    const stuck = ['gate', 'other'];
    // Recorded without data, it stands in the other branch.
    const there = [route('data.old == 2')];
    assert.deepEqual(judge(there, [route('data.new == 2')], { ...data, stuck }), PASSED);
    const verdict = judge(there, [route('data.new == 1')], { ...data, stuck });
    assert.equal(reasonOf(verdict), 'other steps come next');
  });

  test('lets a failed instance begin its retry in the target, behind what has completed', () => {
    const failed = [noop('a'), work('b')];
    const life = record(failed, {
      answer: ({ blockId }) => (blockId === 'b' ? { kind: 'permanent' } : {}),
    });
    const retried = (target: Block[]) => judge(failed, target, { life });
    assert.deepEqual(retried(failed), PASSED);
    assert.deepEqual(retried([noop('a'), { ...work('b'), handler: 'mended' } as Block]), PASSED);
    assert.deepEqual(retried([noop('a'), work('new'), work('b')]), PASSED);
    assert.deepEqual(retried([noop('a'), work('c')]), PASSED);
    assert.equal(reasonOf(retried([work('new'), ...failed])), 'other steps are executed');
  });

  test('lets what failed ask otherwise from now on, not what has completed', () => {
    const asks = (id: string, n: number) => ({ ...work(id), params: { n } }) as Block;
    const source = [asks('a', 1), asks('b', 1)];
    const fails =
      (kind: 'permanent' | 'retryable') =>
      ({ blockId }: { blockId: string }) =>
        blockId === 'b' ? { kind, after: 1_000 } : {};
    const failed = record(source, { answer: fails('permanent') });
    const tried = recordLife(source, { answer: fails('retryable'), turns: 6 });
    assert.ok(tried !== undefined);
    assert.ok(tried.tasks.some(({ block_id }) => block_id === 'b'));
    for (const life of [failed, tried]) {
      const judged = (target: Block[]) => judge(source, target, { life });
      assert.deepEqual(judged([asks('a', 1), asks('b', 2)]), PASSED);
      const other = judged([asks('a', 2), asks('b', 1)]);
      assert.equal(reasonOf(other), 'step a makes another call: params.n');
      assert.ok(!other.passed && other.finding.block_id === 'a');
    }
  });

  test('is not asked for what has not begun', () => {
    const life = { ...recordLife(source, { turns: 1 })!, execution: emptyExecution() };
    assert.deepEqual(judge(source, [work('other')], { life }), PASSED);
  });
});

// ---------------------------------------------------------------- clean-ups

describe('a clean-up that is owed', () => {
  const saga = (id: string, ...steps: readonly (readonly [string, ...string[]])[]): Block => ({
    ...{ type: 'saga', id },
    steps: steps.map(([action, ...undo]) => ({
      id: `do ${action}`,
      action: work(action),
      ...(undo.length > 0 && { compensation: undo.map((one) => work(one)) }),
    })),
  });
  const order = (...last: string[]) => [
    tryCatch(
      't',
      [work('pay')],
      [work('tell'), work('log')],
      last.map((id) => work(id)),
    ),
  ];
  const hooked = (...ids: string[]): Hooks => ({
    on_cancel: ids.map((id) => ({ type: 'step', id, handler: 'fail' })),
  });
  const trip = [saga('s', ['charge', 'refund'], ['ship'])];
  const scoped: Block[] = [{ type: 'cancellation_scope', id: 'c', blocks: order('free', 'close') }];
  const thrown = [tryCatch('t', [work('pay')], [parallel('p', [failing('no')], [work('tell')])])];
  const PLANS: Readonly<Record<string, Block[]>> = {
    same: trip,
    'same order': order('free', 'close'),
    'without refund': [saga('s', ['charge'], ['ship'])],
    'refund renamed': [saga('s', ['charge', 'refund2'], ['ship'])],
    'another before': [saga('s', ['book', 'unbook'], ['charge', 'refund'], ['ship'])],
    'another id': [saga('s2', ['charge', 'refund'], ['ship'])],
    'in a loop': [loop('l', 'true', 2, trip)],
    'no saga': [work('ship')],
    'free only': order('free'),
    scoped,
    'no block': [work('pay')],
    'the same hook': [work('a')],
    'no hook': [work('a')],
  };
  const HOOKS: Readonly<Record<string, Hooks>> = { 'the same hook': hooked('h'), 'no hook': {} };
  for (const [flow = '', acts = '', target = '', lost = ''] of casesIn(`
trip | ok charge, fail ship, fail refund | same | none
trip | ok charge, fail ship, fail refund | another before | none
trip | ok charge, fail ship, fail refund | without refund | s still has to compensate its step do charge: refund
trip | ok charge, fail ship, fail refund | refund renamed | s still has to compensate its step do charge: refund
trip | ok charge, fail ship, fail refund | another id | s still has to compensate its step do charge: refund
trip | ok charge, fail ship, fail refund | in a loop | s still has to compensate its step do charge: refund
trip | ok charge, fail ship, fail refund | no saga | s still has to compensate its step do charge: refund
trip | ok charge, fail ship, ok refund | no saga | none
trip | fail charge | no saga | none
trip | ok charge | same | none
trip | ok charge | without refund | step do charge of saga s has completed: refund
trip | ok charge, stop | no saga | step do charge of saga s has completed: refund
trip | ok charge, cancel, fail refund | without refund | s still has to compensate its step do charge: refund
trip | ok charge, ok ship | no saga | none
order | fail pay | no block | the finally list of t: free, close; the catch list of t: tell, log
order | ok pay, ok free, fail close | same order | none
order | ok pay, ok free, fail close | free only | the finally list of t: close
order | ok pay, ok free, fail close | no block | the finally list of t: close
order | fail pay, ok tell, fail log, ok free, ok close | no block | the catch list of t: log
order | ok pay, ok free, ok close | no block | none
thrown | fail pay, ok tell | no block | none
thrown | fail pay, fail tell | no block | the catch list of t: no, tell
scoped | fail pay, ok tell, fail log, cancel, ok free, ok close | no block | the catch list of t: log
scoped | fail pay, ok tell, fail log, cancel, ok free, ok close | scoped | none
scoped | fail pay, ok tell, fail log, cancel, ok free, fail close | no block | the finally list of t: close
hooked | cancel, wake | the same hook | none
hooked | cancel, wake | no hook | the hooks on_cancel: h
`)) {
    test(`counts when it would not run in the target: ${flow}, ${acts} → ${target}`, () => {
      const flows = { trip, scoped, thrown, order: order('free', 'close'), hooked: [work('a')] };
      const blocks = flows[flow as keyof typeof flows];
      const player = play(blocks, { hooks: flow === 'hooked' ? hooked('h') : {} });
      for (const act of acts.split(', ')) {
        if (act === 'stop') player.send({ kind: 'stop', state: 'failed' });
        else player.after(act as 'wake');
      }
      const { plan, snapshot } = player;
      const there = planOf(PLANS[target]!, undefined, HOOKS[target]);
      const carried = remapExecution(snapshot.execution, plan, there);
      const found = lostCleanUps(plan, snapshot.execution, there, carried);
      const told = found.map(({ summary, code }) => {
        assert.match(code, /^CLEANUP_REMOVED:(s|t|on_cancel)$/);
        return summary
          .replace(/^saga s/, 's')
          .replace(
            /(?: ha(?:s|ve) yet to end)?: .*the target would not run (?:its compensation )?/,
            ': ',
          );
      });
      assert.equal(told.join('; ') || 'none', lost);
    });
  }

  test('is gone on with by a retry in a target that has another step before it', () => {
    const player = play(trip).after('ok charge', 'fail ship', 'fail refund');
    const there = planOf(PLANS['another before']!);
    const execution = remapExecution(player.snapshot.execution, player.plan, there);
    const snapshot = { ...player.snapshot, execution };
    const env = { now: START, random: () => 0, stepBudget: 99, outputBytesBudget: 9_999 };
    const retried = { ...env, unpoliciedRetry: 'redispatch' } as const;
    advance(there, snapshot, { kind: 'retry' }, retried);
    const { dispatches } = advance(there, snapshot, { kind: 'wake' }, retried);
    assert.deepEqual(column(dispatches, 'blockId'), ['refund']);
  });

  test('keeps the instance where it is while only the block that is open can run it', () => {
    const player = play(order('free')).after('cancel', 'fail free');
    const { plan: source, snapshot } = player;
    const target = planOf([work('pay')]);
    const env = { now: START, random: () => 0, stepBudget: 0, outputBytesBudget: 0 };
    const carried = carryOver({
      ...{ source, target, snapshot, data: {}, outputs: new Map(), ended: new Set<string>() },
      env: { ...env, unpoliciedRetry: 'redispatch' },
      taskOf: () => undefined,
    });
    assert.ok(!isCarried(carried));
    assert.deepEqual(
      carried.map(({ code, block_id }) => [code, block_id]),
      [['CLEANUP_MOVED', 't']],
    );
  });
});

// ---------------------------------------------------------------- invariants

describe('what has to hold of effects', () => {
  const judged = (state: EffectState, more: Partial<JudgedReceipt> = {}): JudgedReceipt => ({
    ...{ block_id: 'a', state, destination_fingerprint: 'd', idempotency_key: null, iteration: '' },
    ...more,
  });
  const told = (...receipts: JudgedReceipt[]) => brokenRule(receipts) ?? 'all hold';
  const [TWICE, IN_DOUBT] = ['effect_at_most_once: fail', 'no_unknown_effects: fail'];

  test('each happens at most once, and none is in doubt', () => {
    assert.deepEqual([told(), told(judged('committed'))], ['all hold', 'all hold']);
    assert.equal(told(judged('committed'), judged('verified')), TWICE);
    assert.equal(told(judged('compensated'), judged('committed')), 'all hold');
    assert.equal(told(judged('abandoned'), judged('committed')), 'all hold');
    assert.equal(told(judged('unknown'), judged('committed')), IN_DOUBT);
    assert.equal(told(judged('dispatched')), 'no_unknown_effects: unknown');
    assert.equal(told(judged('prepared')), 'all hold');
  });

  test('passes of a loop are effects of their own, unless they share a key', () => {
    const passes = ['0', '1'].map((iteration) => ({ iteration }));
    assert.equal(told(...passes.map((pass) => judged('committed', pass))), 'all hold');
    const keyed = passes.map((pass) => judged('committed', { ...pass, idempotency_key: 'k' }));
    assert.equal(told(...keyed), TWICE);
    const elsewhere = judged('committed', { ...keyed[1], destination_fingerprint: 'e' });
    assert.equal(told(keyed[0] as JudgedReceipt, elsewhere), 'all hold');
    const unknown = judged('committed', { iteration: null });
    assert.equal(told(unknown, unknown), 'all hold');
  });
});

// ---------------------------------------------------------------- what is sealed

describe('what is stored of a migration', () => {
  const [mine, other] = [createKeyring(Buffer.alloc(32, 1)), createKeyring(Buffer.alloc(32, 2))];
  const rotated = createKeyring(Buffer.alloc(32, 2), Buffer.alloc(32, 1));
  const secrets = {
    checkpoint_data: { context_snapshot: { secret: 'word' } },
    source_context: { data: { secret: 'word' } },
    execution: emptyExecution(),
    next_fire_at: null,
    place_sha256: 'p',
  };
  const facts = { id: 'm', tenant_id: 't', state: 'planned' };
  const source_checkpoint = { id: 'c', instance_id: 'i', created_at: 'now' };
  const record = JSON.stringify({ plan: {}, source_checkpoint, manifest: null, expected_epoch: 3 });
  const rowOf = (key?: typeof mine.payload) => {
    const stored = JSON.stringify(sealSecrets(facts, secrets, key, Buffer.alloc(12)));
    return { ...facts, record, secrets: stored };
  };

  test('is sealed where there is a key, and opened with that or the next one', () => {
    const row = rowOf(mine.payload);
    assert.doesNotMatch(row.secrets, /word/);
    assert.deepEqual(openSecrets(row, mine.opening), secrets);
    assert.deepEqual(openSecrets(row, rotated.opening), secrets);
    assert.equal(openSecrets(row, other.opening), undefined);
    assert.equal(openSecrets(row, []), undefined);
    assert.equal(openSecrets({ ...row, id: 'n' }, mine.opening), undefined);
    assert.deepEqual(openSecrets(rowOf(), []), secrets);
  });

  test('is shown as one record', () => {
    assert.deepEqual(migrationView(rowOf(mine.payload), mine.opening), {
      state: 'planned',
      // Plans of former versions have none.
      plan: { findings: [] },
      expected_epoch: 3,
      source_checkpoint: { ...source_checkpoint, checkpoint_data: secrets.checkpoint_data },
      source_context: secrets.source_context,
    });
    assert.equal(migrationView(rowOf(mine.payload), []), undefined);
  });
});

const gated = (id: string, wait_for_input: object = {}): Block =>
  ({ ...noop(id), wait_for_input }) as Block;

const CHOICES = { choices: [{ label: 'Go', value: 'go' }] };

const GATES = [gated('a'), gated('b')];
const OFFERED = [gated('a', CHOICES), gated('b')];

const CASES: readonly (readonly [
  title: string,
  source: Block[],
  target: Block[],
  says: Readonly<Record<string, string>>,
  reason?: string,
])[] = [
  ['waits at the same gate', [gated('a')], [gated('a'), noop('b')], {}],
  ['waits at a gate that asks otherwise', [gated('a')], [gated('a', CHOICES)], {}],
  ['has had its answer, and waits at the next', GATES, [...GATES, noop('c')], { a: 'no' }],
  ['has had another answer', GATES, OFFERED, { a: 'no' }, 'step a does not offer the answer no'],
  ['would be asked before', [gated('a')], [gated('z'), gated('a')], {}, 'other steps come next'],
  ['would call before', [gated('a')], [work('z'), gated('a')], {}, 'other steps come next'],
];

for (const [title, source, target, says, reason] of CASES) {
  test(`an instance that ${title} ${reason === undefined ? 'passes' : 'does not pass'}`, () => {
    const verdict = judge(source, target, { life: recordLife(source, { turns: 5, says })! });
    assert.equal(verdict.passed, reason === undefined);
    assert.equal(verdict.passed ? undefined : verdict.reason, reason);
  });
}
