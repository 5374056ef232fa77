/** Whose a request of the root key is that names its tenants elsewhere than in a header. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tenantsIn, tenantsQueried } from '../../src/http/named-tenants.js';

test('each tenant of a body or of its items is named once', () => {
  assert.deepEqual(tenantsIn({ tenant_id: ' a ', name: 'k' }), ['a']);
  const instances = [{ tenant_id: 'a' }, { tenant_id: 'b' }, { tenant_id: 'a' }, {}, 5];
  assert.deepEqual(tenantsIn({ instances }), ['a', 'b']);
  assert.deepEqual(tenantsIn({ events: [{ tenant_id: 'c' }] }), ['c']);
  assert.deepEqual(tenantsIn({ tenant_id: 5, instances: 'none' }), []);
  assert.deepEqual(tenantsIn([]), []);
});

test('what no tenant can be called names none', () => {
  assert.deepEqual(tenantsQueried('limit=5&tenant_id=a%20b&tenant_id=c'), ['a b', 'c']);
  assert.deepEqual(tenantsQueried('tenant_id=%00&tenant_id='), []);
  const longest = 'n'.repeat(255);
  assert.deepEqual(tenantsQueried(`tenant_id=${longest}&tenant_id=${longest}n`), [longest]);
});
