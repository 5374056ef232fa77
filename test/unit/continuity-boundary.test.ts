/** How the checkpoints of an execution are shown, and in which order. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canonicalSha256 } from '../../src/core/continuity/canonical-json.js';
import {
  boundaryBlock,
  checkpointBoundary,
} from '../../src/core/continuity/checkpoint-boundary.js';

const CHECKPOINT = {
  id: 'p-1',
  instance_id: 'i-1',
  checkpoint_data: { safe_boundary: 'gate', context_snapshot: {} },
  created_at: '2026-01-01T00:00:00.000Z',
};

const LOCATION = {
  continuity_id: 'c-1',
  tenant_id: 't',
  epoch: 2,
  runtime_id: 'r-1',
  instance_id: 'i-1',
  handoff_id: null,
  entered_at: '2026-01-01T00:00:00.000Z',
};

const boundary = (id: string, epoch: number, created_at: string) =>
  checkpointBoundary(
    { ...CHECKPOINT, id, created_at },
    { ...LOCATION, epoch },
    { id: 's-1', version: 4 },
  );

test('a boundary says where the checkpoint stands', () => {
  assert.deepEqual(boundary('p-1', 2, CHECKPOINT.created_at), {
    checkpoint_id: 'p-1',
    instance_id: 'i-1',
    continuity_id: 'c-1',
    epoch: 2,
    sequence_id: 's-1',
    sequence_version: 4,
    block_id: 'gate',
    checkpoint_sha256: canonicalSha256(CHECKPOINT.checkpoint_data),
    provenance_head: null,
    created_at: CHECKPOINT.created_at,
  });
});

test('the block is named by safe_boundary, else by block_id, else unknown', () => {
  assert.equal(boundaryBlock({ safe_boundary: 'a', block_id: 'b' }), 'a');
  assert.equal(boundaryBlock({ safe_boundary: 1, block_id: 'b' }), 'b');
  for (const data of [{}, null, 'a', ['a'], { safe_boundary: null }]) {
    assert.equal(boundaryBlock(data), undefined);
    const shown = checkpointBoundary({ ...CHECKPOINT, checkpoint_data: data }, LOCATION, {
      id: 's-1',
      version: 4,
    });
    assert.equal(shown.block_id, 'unknown_boundary');
  }
});
