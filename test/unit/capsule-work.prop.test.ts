/** Laws of what is sealed and opened: every output comes back as the row that it was. */

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { type OutputText, sealCapsule } from '../../src/core/continuity/sealed-payload.js';
import type { JsonValue } from '../../src/core/json.js';
import { parseJson } from '../../src/core/json-guard.js';
import { openCapsule } from '../../src/sealed-capsules.js';
import { KEYRING, sealTask } from '../helpers/capsule-tasks.js';
import { check } from '../helpers/properties.js';

const NOW = '2026-01-02T00:00:00.000Z';

const outputs = fc.array(
  fc.record({
    block_id: fc.string({ minLength: 1 }),
    iteration: fc.constantFrom('', '0', '3.1'),
    attempt: fc.nat(),
    try: fc.nat(),
    // As every text that reaches a row.
    output: fc.option(fc.json().filter((text) => parseJson(text).ok)),
    output_ref: fc.constantFrom(null, '__error__'),
    output_size: fc.nat(),
    created_at: fc.constantFrom('2026-01-01T00:00:00.000Z', NOW, '2026-01-03T00:00:00.000Z'),
  }),
  { maxLength: 8 },
);

const parsed = (text: string | null) => (text === null ? null : (JSON.parse(text) as JsonValue));

test('outputs come back as rows; none is of later than now', (t) => {
  check(t, 200, outputs, (rows: OutputText[]) => {
    const sealed = sealCapsule(sealTask(rows));
    assert.ok(sealed.ok);
    const { capsule, payload_base64 } = sealed.value;
    const opened = openCapsule({
      capsule,
      sealed: Buffer.from(payload_base64, 'base64'),
      keys: KEYRING.opening,
      now: NOW,
    });
    assert.ok(opened.ok);
    assert.deepEqual(
      opened.value.outputs.map((text) => JSON.parse(text)),
      rows.map(({ output, created_at, ...row }) => ({
        ...row,
        // JSON has one zero, and the text of a capsule is JSON.
        output: JSON.parse(JSON.stringify(parsed(output))),
        created_at: created_at > NOW ? NOW : created_at,
      })),
    );
  });
});

test('outputs that a stranger made up are refused, not stored', () => {
  const [good] = fc.sample(outputs, 20).flat();
  assert.ok(good);
  for (const wrong of [{ block_id: 1 }, { attempt: -1 }, { try: 'x' }, { created_at: 'now' }]) {
    const task = sealTask([{ ...good, ...wrong } as never]);
    const sealed = sealCapsule({ ...task, nonce: randomBytes(12) });
    assert.ok(sealed.ok);
    const opened = openCapsule({
      capsule: sealed.value.capsule,
      sealed: Buffer.from(sealed.value.payload_base64, 'base64'),
      keys: KEYRING.opening,
      now: NOW,
    });
    assert.ok(!opened.ok && /^outputs\[0\]\./.test(opened.message));
  }
});
