/** The tenant in the addresses of pages. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { baseOf, listOf, pageIn, tenantIn } from '../src/lib/tenant-path.ts';

const BASE = '/engine/ui';

test('any tenant is read back from the address that it was put into', () => {
  for (const tenant of ['acme', 'a/b', '100%', 'Über uns', '?x=#y', 't']) {
    for (const page of ['/', '/instances', '/instances/some-id/timeline']) {
      const path = `${baseOf(BASE, tenant)}${page}`;
      assert.equal(tenantIn(path, BASE), tenant);
      assert.equal(pageIn(path, BASE), page);
    }
  }
});

test('an address without a tenant is that of the page', () => {
  for (const page of ['/', '/triggers', '/t', '/t/', '/t//x', '/t/%E0%A4%A']) {
    assert.equal(tenantIn(`${BASE}${page}`, BASE), undefined, page);
    assert.equal(pageIn(`${BASE}${page}`, BASE), page);
  }
  assert.equal(pageIn(BASE, BASE), '/');
  assert.equal(baseOf(BASE, undefined), BASE);
});

test('the page of one thing belongs to a list, others to none', () => {
  const id = '01950000-0000-7000-8000-00000000000a';
  assert.equal(listOf(`/instances/${id}/timeline`), '/instances');
  assert.equal(listOf(`/releases/${id}`), '/releases');
  for (const page of ['/sequences/new', '/workers/tasks', '/']) assert.equal(listOf(page), page);
});
