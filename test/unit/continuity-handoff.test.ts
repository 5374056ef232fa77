/** What stands against making, moving and exporting a handoff. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  creationConflict,
  type ExportFacts,
  exportConflict,
  type HandoffRequest,
  requestedHandoff,
} from '../../src/core/continuity/handoff.js';
import { type PreviewFacts, previewHandoff } from '../../src/core/continuity/preview.js';
import { acceptedTerms } from '../helpers/continuity-bodies.js';
import { at, id, NOW, runtime } from '../helpers/continuity-facts.js';

const FACTS: PreviewFacts = {
  execution: { continuity_id: id(20), tenant_id: 't', owner_runtime_id: id(1), epoch: 2 },
  runtimes: [runtime(1), runtime(2)],
  destination_runtime_id: id(2),
  terms: acceptedTerms(),
  effects: [],
  obstacles: [],
  now: NOW,
  decision: { id: id(30), created_at: at(0) },
};

function preview(more: Partial<PreviewFacts> = {}) {
  const made = previewHandoff({ ...FACTS, ...more });
  assert.ok(made !== undefined);
  return made;
}

const STORED = preview();
const REQUEST: HandoffRequest = {
  preview_sha256: STORED.preview_sha256,
  destination_runtime_id: id(2),
  terms: acceptedTerms(),
};

/** @param more what is different when the facts are looked at again */
function conflict(request: Partial<HandoffRequest>, more: Partial<PreviewFacts> = {}) {
  const again = previewHandoff({ ...FACTS, decision: { id: id(31), created_at: at(1) }, ...more });
  return creationConflict({ ...REQUEST, ...request }, STORED.placement_decision, again);
}

test('nothing stands against a handoff whose facts are those of the preview', () => {
  assert.equal(conflict({}), undefined);
  assert.equal(conflict({ preview_sha256: STORED.preview_sha256.toUpperCase() }), undefined);
  assert.equal(conflict({ continuity_id: id(20) }), undefined);
});

test('changed facts and other terms are conflicts', () => {
  assert.match(conflict({ continuity_id: id(21) }) ?? '', /another execution/);
  assert.match(conflict({}, { now: NOW + 60_000 }) ?? '', /no longer live/);
  const draining = [runtime(1), runtime(2, { draining: true })];
  assert.match(conflict({}, { runtimes: draining }) ?? '', /not compatible/);
  assert.match(conflict({ preview_sha256: 'a'.repeat(64) }) ?? '', /stale/);
  const other = [runtime(1), runtime(2, { plugins: ['new'] })];
  assert.match(conflict({}, { runtimes: other }) ?? '', /stale/);
  const again = [runtime(1), runtime(2, { observed_at: at(1) }), runtime(3)];
  assert.equal(conflict({}, { runtimes: again }), undefined);
  const later = { execution: { ...FACTS.execution, epoch: 3 } };
  assert.match(conflict({}, later) ?? '', /stale/);
});

test('a hash of other terms does not make a decision fit them', () => {
  for (const other of [
    acceptedTerms({ requirements: { minimum_trust: 'registered' } }),
    acceptedTerms({ classification: 'public' }),
    acceptedTerms({ policy: { version: 1, rules: [] } }),
  ]) {
    const fresh = preview({ terms: other });
    const request = { ...REQUEST, terms: other, preview_sha256: fresh.preview_sha256 };
    const seen = creationConflict(request, STORED.placement_decision, fresh) ?? '';
    assert.match(seen, /something else/);
  }
});

test('a decision is for one destination', () => {
  const fresh = preview({ destination_runtime_id: id(1) });
  const request = {
    ...REQUEST,
    destination_runtime_id: id(1),
    preview_sha256: fresh.preview_sha256,
  };
  assert.match(creationConflict(request, STORED.placement_decision, fresh) ?? '', /something else/);
});

const HANDOFF = requestedHandoff(id(40), REQUEST, STORED, STORED.placement_decision, NOW);

test('a handoff begins as requested, at version 0, with what it was asked with', () => {
  assert.deepEqual(HANDOFF, {
    id: id(40),
    continuity_id: id(20),
    tenant_id: 't',
    source_runtime_id: id(1),
    destination_runtime_id: id(2),
    expected_epoch: 2,
    state: 'requested',
    capsule_id: null,
    capsule_expires_at: null,
    placement_decision_id: id(30),
    preview_sha256: STORED.preview_sha256,
    version: 0,
    failure_code: null,
    terms: JSON.stringify(acceptedTerms()),
    created_at: at(0),
    updated_at: at(0),
  });
});

const EXPORT: ExportFacts = {
  handoff: HANDOFF,
  decision: STORED.placement_decision,
  requirements: acceptedTerms().requirements,
  destination: runtime(2),
  instanceState: 'paused',
  hasBegun: true,
  hasCheckpoint: true,
};

test('an export needs the same requirements, a destination that is allowed, and a resting instance', () => {
  const exported = (more: Partial<ExportFacts>, now = NOW) =>
    exportConflict({ ...EXPORT, ...more }, now) ?? '';
  assert.equal(exported({}), '');
  assert.equal(exported({ instanceState: 'waiting' }), '');
  const { requirements } = acceptedTerms({ requirements: { handlers: ['more'] } });
  assert.match(exported({ requirements }), /does not fit/);
  for (const decision of [
    { continuity_id: id(21) },
    { epoch: 3 },
    { selected_runtime_id: id(1) },
  ]) {
    assert.match(exported({ decision: { ...EXPORT.decision, ...decision } }), /does not fit/);
  }
  assert.match(exported({ destination: undefined }), /no longer live/);
  assert.match(exported({ destination: runtime(2, { draining: true }) }), /no longer allowed/);
  assert.match(exported({}, NOW + 60_000), /no longer live/);
  for (const instanceState of ['running', 'scheduled', 'failed'] as const) {
    assert.equal(exported({ instanceState }), '');
    assert.match(exported({ instanceState, hasBegun: false }), /this one is/);
  }
  for (const instanceState of ['completed', 'cancelled'] as const) {
    assert.match(exported({ instanceState }), /paused or waiting .* this one is/);
  }
  assert.match(exported({ hasCheckpoint: false }), /no checkpoint/);
});
