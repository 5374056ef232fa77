/** How the list of instances is shown stands in the address, whatever anybody writes there. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  columnsIn,
  csvLine,
  membersOf,
  nextSort,
  searchOf,
  sortIn,
  titleOf,
  viewsIn,
} from '../src/pages/instances/views.ts';

test('columns come from the address, else from the browser, each once and not too many', () => {
  assert.deepEqual(columnsIn({}, ['state']), ['state']);
  assert.deepEqual(columnsIn({ columns: 'a,b,,a' }, ['state']), ['a', 'b']);
  assert.equal(columnsIn({ columns: 'a,b,c,d,e,f,g,h,i,j,k' }, []).length, 9);
});

test('a head sorts downwards, then upwards, then not at all', () => {
  const orders = [undefined, '-duration', 'duration'];
  for (const [at, sort] of orders.entries()) {
    const next = nextSort(sortIn({ ...(sort && { sort }) }), 'duration');
    assert.equal(next, orders[(at + 1) % orders.length]);
  }
  assert.equal(nextSort(sortIn({ sort: 'duration' }), 'changed'), '-changed');
  assert.equal(sortIn({ sort: 'sequence' }), undefined);
});

test('the title says how many are sorted if others are left out', () => {
  const sort = sortIn({ sort: '-duration' });
  assert.equal(titleOf(undefined, true), 'Instances, newest first');
  assert.equal(titleOf(sort), 'Instances by duration');
  assert.equal(titleOf(sort, true), 'The newest 200 instances by duration');
});

test('members of the metadata are offered without those of the engine', () => {
  const rows = [{ metadata: { b: 1, _shop: true } }, { metadata: { a: 'x', 'c,d': 2 } }];
  assert.deepEqual(membersOf(rows), ['a', 'b']);
});

test('a view is what the address says, without its page; what is stored otherwise is none', () => {
  const search = searchOf({ state: 'failed', cursor: 'x' }, ['state', 'step']);
  assert.equal(search, 'state=failed&columns=state%2Cstep');
  assert.deepEqual(viewsIn([{ name: 'a', search }, { name: 1 }, null]), [{ name: 'a', search }]);
  assert.deepEqual(viewsIn('nothing'), []);
});

test('a line of CSV is read back as it was, and starts no formula', () => {
  assert.equal(csvLine(['a', 1, -2, 'b,c', 'say "x"']), 'a,1,-2,"b,c","say ""x"""\r\n');
  assert.equal(csvLine(['=1+1', '-x', '@y']), "'=1+1,'-x,'@y\r\n");
});
