/** Which pages a key is led to, by what it may do. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { capabilitiesFor, maySee } from '../src/api/access.ts';
import { allowedOf } from '../src/api/allowed.ts';

const withCapability = (capability: 'auditor' | 'publisher' | 'starter' | 'worker') =>
  allowedOf({ is_root: false, capabilities: [capability] });

test('a page is seen with any of the rights that it takes, and so are the addresses below it', () => {
  assert.equal(maySee('/instances/some-id/timeline', withCapability('starter')), true);
  assert.equal(maySee('/instances?sequence=order', withCapability('publisher')), false);
  assert.equal(maySee('/', withCapability('starter')), false);
  assert.equal(maySee('/', withCapability('auditor')), true);
});

test('of two rows for one address the closer one counts', () => {
  assert.equal(maySee('/sequences/new', withCapability('starter')), false);
  assert.equal(maySee('/sequences/new', withCapability('publisher')), true);
  assert.equal(maySee('/sequences/some-id', withCapability('starter')), true);
});

test('what asks for no right is for every key', () => {
  assert.equal(maySee('/server', withCapability('worker')), true);
});

test('the capabilities that a page takes are named', () => {
  assert.deepEqual(capabilitiesFor('/approvals'), ['auditor', 'approver', 'operator']);
  assert.deepEqual(capabilitiesFor('/cells'), ['root']);
});
