/** The thread that large capsules are worked on in. */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ThreadedMill } from '../../src/capsule-mill.js';
import type { OutputText } from '../../src/capsule-work.js';
import { EngineError } from '../../src/errors.js';
import { KEYRING, sealTask } from '../helpers/capsule-tasks.js';

let mill: ThreadedMill;

before(() => {
  mill = new ThreadedMill();
});
after(() => mill.stop());

/** Its text is larger than what is worked on in place. */
const LARGE = JSON.stringify({ text: 'ä'.repeat(300_000) });

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

for (const [what, text] of [
  ['a small capsule', '{"n":1}'],
  ['a large capsule', LARGE],
] as const) {
  test(`${what} is sealed and opened again`, async () => {
    const sealed = await mill.seal(sealTask([output(text)]));
    assert.ok(sealed.ok);
    const { capsule, payloadBase64 } = sealed.value;
    const task = {
      capsule,
      keyring: KEYRING,
      transferKey: undefined,
      now: '2026-01-02T00:00:00Z',
    };
    const bytes = Buffer.from(payloadBase64, 'base64');
    const opened = await mill.open({ ...task, sealed: bytes });
    assert.ok(opened.ok);
    assert.deepEqual(JSON.parse(opened.value.outputs[0] ?? '').output, JSON.parse(text));
    bytes[20] = (bytes[20] ?? 0) ^ 1;
    const refused = await mill.open({ ...task, sealed: bytes });
    assert.match(refused.ok ? '' : refused.message, /hash mismatch/);
  });
}

test('a capsule that is being worked on when the engine stops is given up', async () => {
  const stopping = new ThreadedMill();
  const sealing = stopping.seal(sealTask([output(LARGE)]));
  const refused = assert.rejects(
    sealing,
    (error) => error instanceof EngineError && error.code === 'ENG_STOPPING',
  );
  await stopping.stop();
  await refused;
});
