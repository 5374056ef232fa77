/** Bounds of connections, how they follow from descriptors, and what one too many is told. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { EngineError } from '../../src/errors.js';
import { Connections, connectionBounds } from '../../src/http/connections.js';

const QUIET = { warn: () => {} };

describe('connections', () => {
  for (const [title, wanted, descriptors, expected] of [
    ['as many as wanted', { max: 1_000, perAddressMax: 0 }, 100_000, [1_000, 750]],
    ['with a reserve of descriptors', { max: 10_000, perAddressMax: 0 }, 4_096, [3_584, 2_688]],
    ['half of few descriptors', { max: 10_000, perAddressMax: 0 }, 256, [128, 96]],
    ['where nobody knows the limit', { max: 10_000, perAddressMax: 0 }, undefined, [10_000, 7_500]],
    ['of an address as set', { max: 100, perAddressMax: 7 }, 100_000, [100, 7]],
    ['of an address never more than all', { max: 100, perAddressMax: 500 }, 100_000, [100, 100]],
    ['at least one', { max: 1, perAddressMax: 0 }, 1, [1, 1]],
  ] as const) {
    test(`are bounded: ${title}`, () => {
      const { max, perAddressMax } = connectionBounds(wanted, descriptors);
      assert.deepEqual([max, perAddressMax], expected);
    });
  }

  test('of one address leave room for others, and all together have a bound', () => {
    const warned: object[] = [];
    const connections = new Connections(
      { max: 3, perAddressMax: 2 },
      { warn: (fields) => warned.push(fields) },
    );
    const first = connections.admit('a', 0);
    connections.admit('a', 0);
    const third = connections.admit('a', 0);
    assert.ok(third instanceof EngineError);
    assert.deepEqual([third.status, third.code], [429, 'ENG_TOO_MANY_CONNECTIONS']);
    assert.match(third.message, /\b2 of this address\b.*ENGINE_MAX_CONNECTIONS_PER_ADDRESS/);
    assert.equal(typeof connections.admit('b', 0), 'function');
    const fifth = connections.admit('c', 0);
    assert.ok(fifth instanceof EngineError);
    assert.deepEqual([fifth.status, fifth.code], [503, 'ENG_OVERLOADED']);
    assert.match(fifth.message, /\b3 connections\b.*ENGINE_MAX_CONNECTIONS/);
    assert.deepEqual([connections.open, connections.refused], [3, 2]);
    // A crowd is one line.
    assert.equal(warned.length, 1);
    if (typeof first === 'function') first();
    assert.equal(typeof connections.admit('c', 0), 'function');
  });

  test('whose end nobody is told of keep their places until the system is asked', () => {
    const connections = new Connections({ max: 2, perAddressMax: 1 }, QUIET);
    assert.equal(connections.admitUntold('7f000001', false, 1, 0), undefined);
    assert.equal(connections.open, 1);
    assert.ok(connections.admitUntold('7f000001', false, 1, 0) instanceof EngineError);
    connections.left();
    assert.equal(connections.open, 0);
    // Nobody listens on port 1, so nothing is open there.
    assert.equal(connections.admitUntold('7f000001', false, 1, 0), undefined);
    assert.equal(connections.open, 1);
  });
});
