/** Links to approvals: what is signed is taken as it is, and nothing else is. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ApprovalGrant, approvalToken, grantIn } from '../../src/core/approval-link.js';
import { createKeyring } from '../../src/core/continuity/keys.js';

const [KEY, FORMER, OTHER] = [1, 2, 3].map((byte) => Buffer.alloc(32, byte));
const { links } = createKeyring(KEY!, FORMER);
const GRANT: ApprovalGrant = {
  approval: '01890000-0000-7000-8000-000000000001',
  expiresAt: 1_700_000_000_000,
  value: 'yes "ü"',
  recipient: null,
};

test('a link says what it was made with, also after the key was changed', () => {
  assert.deepEqual(grantIn(approvalToken(GRANT, links), links), GRANT);
  const before = approvalToken({ ...GRANT, value: null }, createKeyring(FORMER!).links);
  assert.deepEqual(grantIn(before, links), { ...GRANT, value: null });
});

test('a link is nothing when any character of it is another, or another server has signed it', () => {
  const token = approvalToken(GRANT, links);
  for (let at = 0; at < token.length; at += 1) {
    const other = token[at] === 'A' ? 'B' : 'A';
    const forged = token.slice(0, at) + other + token.slice(at + 1);
    assert.equal(grantIn(forged, links), undefined, `character ${at}`);
  }
  const others = createKeyring(OTHER!).links;
  const wrong = [
    '',
    '.',
    'x.y',
    token.slice(0, -1),
    `${token}=`,
    `${token}.x`,
    token.split('.')[0]!,
  ];
  for (const text of [...wrong, approvalToken(GRANT, others)]) {
    assert.equal(grantIn(text, links), undefined, text);
  }
});
