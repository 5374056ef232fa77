/** Verifying provenance beside everything else: long chains in a thread of their own, and bounded. */

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { ProvenanceVerdict } from '../../schema/continuity.js';
import type { Chain } from '../../src/chain.thread.js';
import { CHAINS_MAX, Chains, IN_PLACE_MAX } from '../../src/chains.js';
import { createKeyring } from '../../src/core/continuity/keys.js';
import { nextProvenanceEntry, type ProvenanceEntry } from '../../src/core/continuity/provenance.js';
import { EngineError } from '../../src/errors.js';

const ID = '0195ffff-0000-7000-8000-000000000000';
const { signing } = createKeyring(Buffer.alloc(32, 7));

let chains: Chains;

before(() => {
  chains = new Chains();
});
after(() => chains.stop());

function chainOf(length: number, more: Partial<Chain> = {}): Chain {
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
    entries.push(nextProvenanceEntry(entries.at(-1) ?? null, facts, signing));
  }
  const trusted = [[signing.id, signing.publicKey]] as const;
  return { text: JSON.stringify(entries), trusted, expectedHead: undefined, ...more };
}

const short = chainOf(2);
const long = chainOf(120);

function hasCode(code: string) {
  return (error: unknown) => error instanceof EngineError && error.code === code;
}

describe('chains of provenance', () => {
  test('are judged alike in place and in the thread', async () => {
    assert.ok(short.text.length <= IN_PLACE_MAX && long.text.length > IN_PLACE_MAX);
    for (const [chain, length] of [
      [short, 2],
      [long, 120],
    ] as const) {
      const verdict = async (more: Partial<Chain>) =>
        JSON.parse(await chains.verify({ ...chain, ...more })) as ProvenanceVerdict;
      const { valid, entries_checked } = await verdict({});
      assert.deepEqual([valid, entries_checked], [true, length]);
      assert.equal((await verdict({ trusted: [] })).code, 'PROVENANCE_SIGNING_KEY_UNTRUSTED');
      assert.equal((await verdict({ expectedHead: 'x' })).code, 'PROVENANCE_HEAD_MISMATCH');
    }
  });

  test('are refused beyond a bound, and taken again later', async () => {
    const taken = Array.from({ length: CHAINS_MAX }, () => chains.verify(long));
    await assert.rejects(chains.verify(long), hasCode('ENG_OVERLOADED'));
    assert.ok(await chains.verify(short), 'what is short needs no thread');
    await Promise.all(taken);
    assert.ok(await chains.verify(long));
  });

  test('are given up when the engine stops', async () => {
    const stopping = new Chains();
    const given = stopping.verify(long);
    const refused = assert.rejects(given, hasCode('ENG_STOPPING'));
    await stopping.stop();
    await refused;
    await assert.rejects(stopping.verify(long), hasCode('ENG_STOPPING'));
  });
});
