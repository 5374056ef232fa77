/** What the user chose is sent some seconds later, once, or not at all. */

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { HELD_MS, HeldActions } from '../src/lib/held.ts';

function held({ mock }: TestContext) {
  mock.timers.enable({ apis: ['setTimeout'] });
  const actions = new HeldActions();
  const log: string[] = [];
  const hold = (id: string) =>
    actions.hold(
      id,
      () => log.push(`sent ${id}`),
      () => log.push(`end ${id}`),
    );
  return { actions, log, hold, pass: () => mock.timers.tick(HELD_MS) };
}

test('it is sent after its time and not before, and once however often it was chosen', (context) => {
  const { actions, log, hold, pass } = held(context);
  hold('a');
  hold('a');
  assert.deepEqual([actions.has('a'), log], [true, []]);
  pass();
  pass();
  assert.deepEqual([actions.has('a'), log], [false, ['end a', 'sent a']]);
});

test('what was taken back is never sent, by default the last one', (context) => {
  const { actions, log, hold, pass } = held(context);
  hold('a');
  hold('b');
  hold('c');
  actions.takeBack();
  actions.takeBack('a');
  pass();
  assert.deepEqual(log, ['end c', 'end a', 'end b', 'sent b']);
});

test('all that is held is sent when the page is left', (context) => {
  const { actions, log, hold, pass } = held(context);
  hold('a');
  hold('b');
  actions.sendAll();
  pass();
  assert.deepEqual(log, ['end a', 'sent a', 'end b', 'sent b']);
  assert.equal(actions.size, 0);
});
