/** The preview of a handoff, and what its hash holds on to. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { RuntimeCapabilities } from '../../schema/handoff.js';
import { type TaskFacts, taskReceipt } from '../../src/core/continuity/effects.js';
import { kinFindings } from '../../src/core/continuity/kin.js';
import {
  type PreviewEvidence,
  type PreviewFacts,
  previewHandoff,
  previewHash,
} from '../../src/core/continuity/preview.js';
import { acceptedTerms } from '../helpers/continuity-bodies.js';
import { runtime as anyRuntime, at, id, NOW } from '../helpers/continuity-facts.js';
import { check } from '../helpers/properties.js';
import { column, lines } from '../helpers/rows.js';

const runtime = (n: number, more: Partial<RuntimeCapabilities> = {}) =>
  anyRuntime(n, { handlers: ['ship'], ...more });

const receipt = (more: Partial<TaskFacts> = {}) =>
  taskReceipt({
    tenant_id: 't',
    continuity_id: id(20),
    epoch: 0,
    instance_id: id(21),
    block_id: 'b',
    attempt: 0,
    id: id(22),
    handler_name: 'ship',
    params: {},
    state: 'completed',
    is_reported: false,
    is_touched: true,
    output: {},
    created_at: at(0),
    updated_at: null,
    ...more,
  });

const FACTS: PreviewFacts = {
  execution: { continuity_id: id(20), tenant_id: 't', owner_runtime_id: id(1), epoch: 2 },
  runtimes: [runtime(1), runtime(2)],
  destination_runtime_id: id(2),
  terms: acceptedTerms({ requirements: { handlers: ['ship'] } }),
  effects: [receipt()],
  obstacles: [],
  now: NOW,
  decision: { id: id(30), created_at: at(0) },
};

function preview(more: Partial<PreviewFacts> = {}) {
  const made = previewHandoff({ ...FACTS, ...more });
  assert.ok(made !== undefined);
  return made;
}

test('a destination that may take the execution is selected though another scores better', () => {
  const made = preview();
  assert.equal(made.compatible, true);
  assert.equal(made.source_runtime_id, id(1));
  assert.equal(made.placement_decision.candidates[0]?.runtime_id, id(1));
  assert.equal(made.placement_decision.selected_runtime_id, id(2));
  assert.equal(made.placement_decision_id, id(30));
  assert.equal(made.placement_decision.id, id(30));
  assert.deepEqual(column(made.findings, 'code'), ['COMPATIBLE']);
  assert.match(made.preview_sha256, /^[0-9a-f]{64}$/);
});

test('a destination that is denied is not selected, and the findings say why', () => {
  const made = preview({ runtimes: [runtime(1), runtime(2, { draining: true })] });
  assert.equal(made.compatible, false);
  assert.equal(made.placement_decision.selected_runtime_id, id(1));
  assert.deepEqual(lines(made.findings, 'code', 'status'), ['RUNTIME_DRAINING fail']);
  const policy = {
    version: 1,
    rules: [{ classification: 'internal', allowed_runtime_ids: [id(1)] }],
  };
  const denied = preview({ terms: acceptedTerms({ policy }) });
  assert.equal(denied.compatible, false);
  assert.deepEqual(column(denied.findings, 'code'), ['COMPATIBLE', 'RUNTIME_ID_DENIED']);
});

test('a doubt is not compatible', () => {
  const made = preview({ terms: acceptedTerms({ classification: 'confidential' }) });
  assert.equal(made.compatible, false);
  assert.equal(made.placement_decision.selected_runtime_id, null);
});

test('an unresolved effect stands in the way and is listed', () => {
  const open = receipt({ id: id(23), state: 'claimed' });
  const unknown = receipt({ id: id(24), state: 'failed' });
  const made = preview({ effects: [receipt(), open, unknown] });
  assert.equal(made.compatible, false);
  assert.deepEqual(made.unresolved_effects, [open, unknown]);
  // The destination itself is still allowed.
  assert.equal(made.placement_decision.selected_runtime_id, id(2));
});

test('a child that is open, or a parent, keeps the execution here, and the finding says what would change that', () => {
  const waiting = { o: { 3: { b: 0, p: 'child', a: 0, c: id(40) } as const } };
  const child = kinFindings({ instance: id(21), parent: null, execution: waiting });
  const parent = kinFindings({ instance: id(21), parent: id(41), execution: { o: {} } });
  for (const [obstacles, other] of [
    [child, id(40)],
    [parent, id(41)],
  ] as const) {
    const made = preview({ obstacles });
    assert.equal(made.compatible, false);
    assert.deepEqual(lines(made.findings, 'code', 'status'), ['COMPATIBLE pass', 'KIN_STAYS fail']);
    const { summary, remedy } = made.findings[1]!;
    assert.ok(summary.includes(id(21)) && summary.includes(other), summary);
    assert.match(String(remedy), /let the child end/);
    assert.notEqual(made.preview_sha256, preview().preview_sha256);
  }
  // One that is not made yet is made where the execution goes on.
  const asked = { o: { 3: { b: 0, p: 'child', a: 0 } as const } };
  assert.deepEqual(kinFindings({ instance: id(21), parent: null, execution: asked }), []);
});

test('a destination that is unknown or no longer live has no preview', () => {
  assert.equal(previewHandoff({ ...FACTS, destination_runtime_id: id(9) }), undefined);
  assert.equal(previewHandoff({ ...FACTS, now: NOW + 60_000 }), undefined);
});

test('the same facts give the same hash, whatever the decision is called and the time is', () => {
  const { preview_sha256 } = preview();
  const again = { decision: { id: id(31), created_at: at(9) }, now: NOW + 1_000 };
  assert.equal(preview(again).preview_sha256, preview_sha256);
  assert.equal(preview({ runtimes: FACTS.runtimes.toReversed() }).preview_sha256, preview_sha256);
});

test('when the destination was seen, and what others say, makes no preview stale', () => {
  const { preview_sha256 } = preview();
  for (const runtimes of [
    [runtime(1), runtime(2, { observed_at: at(1) })],
    [runtime(1), runtime(2, { expires_at: at(60_001) })],
    [runtime(1), runtime(2), runtime(3)],
    [runtime(2)],
    [runtime(1, { draining: true }), runtime(2)],
  ]) {
    assert.equal(preview({ runtimes }).preview_sha256, preview_sha256);
  }
});

test('what nobody has taken yet, and what failed, stands in no handoff’s way', () => {
  const { preview_sha256 } = preview();
  const queued = receipt({ state: 'pending', is_touched: false });
  const failed = receipt({ state: 'failed', is_reported: true });
  const made = preview({ effects: [receipt(), queued, failed] });
  assert.deepEqual([made.compatible, made.unresolved_effects], [true, []]);
  assert.equal(made.preview_sha256, preview_sha256);
});

test('every fact that matters makes the preview stale', () => {
  const { execution } = FACTS;
  const stale: Partial<PreviewFacts>[] = [
    { execution: { ...execution, epoch: 3 } },
    { execution: { ...execution, continuity_id: id(40) } },
    { execution: { ...execution, owner_runtime_id: id(2) } },
    { runtimes: [runtime(1), runtime(2, { plugins: ['new'] })] },
    { runtimes: [runtime(1), runtime(2, { draining: true })] },
    { terms: acceptedTerms({ requirements: {} }) },
    { terms: acceptedTerms({ requirements: { handlers: ['ship'] }, classification: 'public' }) },
    {
      terms: acceptedTerms({
        requirements: { handlers: ['ship'] },
        policy: { version: 1, rules: [] },
      }),
    },
    { destination_runtime_id: id(1) },
    { effects: [receipt({ state: 'failed' })] },
  ];
  const hashes = [{}, ...stale].map((more) => preview(more).preview_sha256);
  assert.equal(new Set(hashes).size, hashes.length);
});

const EVIDENCE: PreviewEvidence = {
  ...acceptedTerms({
    requirements: { handlers: ['a', 'b'], regions: ['eu'] },
    policy: { version: 1, rules: [{ classification: 'internal', allowed_regions: ['eu'] }] },
  }),
  continuity_id: id(20),
  epoch: 2,
  source_runtime_id: id(1),
  destination: runtime(2, { regions: ['eu', 'us'] }),
  compatible: false,
  findings: preview().findings,
  unresolved_effects: [receipt({ state: 'failed' }), receipt({ id: id(23), state: 'claimed' })],
};

type Path = readonly string[];

/** Every value in the evidence that is no object. */
function leaves(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [path];
  return Object.entries(value).flatMap(([key, inner]) => leaves(inner, [...path, key]));
}

/** The value with one part of it replaced, and with the members of its objects in another order. */
function rebuilt(value: unknown, [key, ...rest]: Path, leaf: unknown): unknown {
  if (typeof value !== 'object' || value === null) return key === undefined ? leaf : value;
  if (Array.isArray(value)) return value.map((item, i) => part(item, `${i}`));
  const members = Object.entries(value).map(([name, inner]) => [name, part(inner, name)] as const);
  return Object.fromEntries(members.reverse());

  function part(inner: unknown, name: string): unknown {
    return name === key ? rebuilt(inner, rest, leaf) : inner;
  }
}

test('the hash is stable under the order of keys, and any change of an input changes it', (t) => {
  const hash = previewHash(EVIDENCE);
  const paths = leaves(EVIDENCE);
  const leaf = fc.oneof(fc.constant(null), fc.string(), fc.nat(), fc.boolean());
  check(t, 400, fc.tuple(fc.constantFrom(...paths), leaf), ([path, value]) => {
    const old = path.reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], EVIDENCE);
    const same = rebuilt(EVIDENCE, path, old) as PreviewEvidence;
    assert.equal(previewHash(same), hash);
    const changed = rebuilt(EVIDENCE, path, value) as PreviewEvidence;
    assert.equal(previewHash(changed) === hash, value === old, path.join('.'));
  });
});

test('the order of lists matters', () => {
  const { requirements } = EVIDENCE;
  const swapped = { ...requirements, handlers: ['b', 'a'] };
  assert.notEqual(previewHash({ ...EVIDENCE, requirements: swapped }), previewHash(EVIDENCE));
});
