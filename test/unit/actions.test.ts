/** How the units of requests get their actions, and what the memory of a shard has of them. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Actions } from '../../actors/action/actions.js';
import { RATE_LIMIT } from '../../actors/limits/tables.js';
import { CommitLog } from '../../actors/runtime/commit-log.js';
import type { Request } from '../../actors/runtime/protocol.js';
import { Turn } from '../../actors/runtime/turn.js';
import '../../actors/shard/store.js';

const OWNER = { key: 'any', incarnation: 1, settled: () => undefined };

function start() {
  const commits = new CommitLog();
  let ids = 0;
  const actions = new Actions({ commits, now: () => 0, newId: () => `id-${++ids}` });
  const begin = (id: number, more: Partial<Request>, body: unknown = {}) => {
    const request = { id, tenant: 'a', target: 'x', body: '', operation: 'rateLimits.put' };
    actions.begin({ ...request, by: 'night shift', key: 'ak_1', ...more }, body);
  };
  /** The rows of actions in the unit. */
  const append = (turn: Turn) => {
    turn.put(RATE_LIMIT.clear, 'first', { id: 'first' });
    commits.append(OWNER, turn);
    const [unit] = commits.take();
    return (unit?.mutations ?? [])
      .filter((part) => typeof part === 'string' && part.includes('"operation"'))
      .map((row) => JSON.parse(row as string) as Record<string, unknown>);
  };
  return { actions, begin, append };
}

test('a unit with the reply to a request has its action, and so has one that is made for it', () => {
  const { begin, append } = start();
  begin(1, {}, { max_count: 5, window_seconds: 1 });
  const turn = new Turn('a');
  turn.reply(1, 200, '{}');
  const row = {
    ...{ id: 'id-1', tenant_id: 'a', at: '1970-01-01T00:00:00.000Z', by: 'night shift' },
    ...{ key_id: 'ak_1', operation: 'rateLimits.put', kind: 'rate_limit', target: 'x' },
    details: { max_count: 5, window_seconds: 1 },
  };
  assert.deepEqual(append(turn), [row]);
  // The same id: the database keeps one of them.
  assert.deepEqual(append(new Turn('a', 1)), [row]);
  assert.deepEqual(append(new Turn('a')), []);
});

test('a unit of several requests has the action of each', () => {
  const { begin, append } = start();
  begin(1, { target: 'one' });
  begin(2, { target: 'two' });
  const turn = new Turn('a');
  turn.reply(1, 200, '{}');
  turn.reply(2, 200, '{}');
  turn.reply(3, 200, '{}');
  assert.deepEqual(
    append(turn).map(({ target }) => target),
    ['one', 'two'],
  );
});

test('a new object is named by the first row of its unit, and its tenant by the unit', () => {
  const { begin, append } = start();
  begin(1, { operation: 'cron.create', target: '', tenant: '' });
  const [action] = append(new Turn('of the unit', 1));
  assert.deepEqual([action?.target, action?.tenant_id], ['first', 'of the unit']);
});

test('a refused, an answered and an unmarked request have none, and take no memory', () => {
  const { actions, begin, append } = start();
  begin(1, {});
  const refused = new Turn('a');
  refused.fail(1, new Error('no') as never);
  assert.deepEqual(append(refused), []);
  assert.equal(actions.open, 1);
  actions.end(1);
  assert.equal(actions.open, 0);
  assert.deepEqual(append(new Turn('a', 1)), []);
  begin(2, { operation: 'instances.signal' }, { signal_type: 'custom:go' });
  begin(3, { operation: 'instances.batchAction' }, { action: 'retry', dry_run: true });
  begin(4, { operation: 'instances.create' });
  begin(5, { by: undefined });
  assert.equal(actions.open, 0);
});
