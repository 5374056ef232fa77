/** Of every table it is said whether its rows go with a tenant, and how they are found. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  FINDING_TABLES,
  FOLLOWING,
  rowsOf,
  STAYING,
  TENANT_TABLES,
} from '../../src/cluster/tenant-rows.js';
import { TABLES, type TableName } from '../../src/db/tables.js';

const names = TENANT_TABLES.map(({ name }) => name);

test('every table goes with a tenant, or has a reason to stay', () => {
  const said = [...names, ...Object.keys(STAYING)].sort();
  assert.deepEqual(said, Object.keys(TABLES).sort());
});

test('rows by which those of other tables are found are deleted after these', () => {
  for (const [at, { where }] of TENANT_TABLES.entries()) {
    for (const [, other] of where.matchAll(/from (\w+)/g)) {
      assert.ok(names.indexOf(other as TableName) > at, `${names[at]} before ${other}`);
    }
  }
});

test('a tenant is named as it is, whatever its name has in it', () => {
  const [table] = TENANT_TABLES.filter(({ name }) => name === 'api_keys');
  assert.equal(rowsOf(table!, "'$& $T'"), "tenant_id = '$& $T'");
});

test('whose rows are found by the tenant finds it, or follows what does', () => {
  const named = TENANT_TABLES.filter(({ where }) => where === 'tenant_id = $T');
  const said = [...FINDING_TABLES, ...Object.keys(FOLLOWING)].sort();
  assert.deepEqual(said, named.map(({ name }) => name).sort());
});
