/** Definitions as their authors write them. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SequenceDefinition } from 'durable-workflow-engine-client';
import { definitionText } from '../src/pages/sequences/drafts.ts';

const STORED: SequenceDefinition = {
  id: '0',
  tenant_id: 'acme',
  namespace: 'shop',
  name: 'order',
  version: 3,
  deprecated: true,
  hold: true,
  status: 'production',
  blocks: [{ type: 'step', id: 'a', handler: 'noop' }],
  created_at: '2026-01-01T00:00:00.000Z',
};

test('the text of a version has what its author says, and nothing that the engine makes', () => {
  const { namespace, name, blocks } = STORED;
  assert.deepEqual(JSON.parse(definitionText(STORED, 4)), { namespace, name, version: 4, blocks });
});

test('it keeps the schema of inputs, hooks, and a status that says something', () => {
  const more = {
    status: 'draft' as const,
    input_schema: { type: 'object' },
    on_failure: [{ type: 'step' as const, id: 'tell', handler: 'log' as const }],
  };
  const text = JSON.parse(definitionText({ ...STORED, ...more }, 3));
  assert.deepEqual(Object.keys(text), [
    'namespace',
    'name',
    'version',
    'status',
    'input_schema',
    'blocks',
    'on_failure',
  ]);
});
