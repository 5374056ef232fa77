/** A tenant is moved to another cell and back: what waits goes on there, and nothing happens twice. */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventually, step } from '../../helpers/api.js';
import { TwoCells } from '../../helpers/moving.js';

let cells: TwoCells;
before(async () => {
  cells = await TwoCells.start(2);
});
after(() => cells?.stop());

test('instances that wait for workers, signals and timers go on in the other cell', async () => {
  await cells.place('acme', 'east');
  const east = cells.tenant('east', 'acme');
  const west = cells.tenant('west', 'acme');
  const waits = await east.sequence([step('a', 'acme.work'), step('b', 'noop')]);
  const waiting = await east.create(waits);
  const claimed = await east.create(waits);
  const [held] = await east.poll('acme.work', { limit: 1 });
  assert.ok(held !== undefined);
  const slept = await east.run([step('nap', 'noop', { delay: { duration_ms: 3_000 } })]);
  const { move, steps } = await cells.move('acme', 'west');
  assert.equal(move.state, 'done');
  console.log(steps, Date.now() - Date.parse(move.started_at));
  assert.deepEqual(await cells.rows('east', 'acme'), {});
  // The claim of before the move is still its worker's.
  await west.complete(held, { by: 'the first worker' });
  const other = await west.task('acme.work');
  await west.complete(other, { by: 'the second worker' });
  for (const id of [waiting, claimed, slept]) await west.until(id, 'completed');
  await eventually(async () => assert.equal((await west.outputs(slept)).length, 1));
});
