/**
 * The ledger of counts against a model: flushes that are committed, rolled back, or whose fate only the
 * lane's row tells, and writers that die at any point between two steps.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { COUNTER_NAMES } from '../../src/metrics/catalog.js';
import { CommitLedger, type UnitCounts } from '../../src/metrics/ledger.js';

const LANES = 3;

/** How far a flush gets before its writer dies; `none`: it does not. */
const DEATHS = ['none', 'before staging', 'before the commit', 'after the commit'] as const;

interface Flush {
  readonly lane: number;
  readonly counts: readonly UnitCounts[];
  /** Attempts that the database rolls back before one is committed. */
  readonly rollbacks: number;
  readonly death: (typeof DEATHS)[number];
}

const unit: fc.Arbitrary<UnitCounts> = fc
  .array(fc.tuple(fc.nat(COUNTER_NAMES.length - 1), fc.integer({ min: 1, max: 9 })), {
    maxLength: 4,
  })
  .map((pairs) => pairs.flat());

const flush: fc.Arbitrary<Flush> = fc.record({
  lane: fc.nat(LANES - 1),
  counts: fc.array(unit, { maxLength: 4 }),
  rollbacks: fc.nat(2),
  death: fc.constantFrom(...DEATHS),
});

test('the totals are those of the committed flushes, whenever the writer dies', () => {
  fc.assert(
    fc.property(
      fc.array(flush, { maxLength: 40 }),
      fc.array(fc.nat(0xffff_ffff), { minLength: LANES, maxLength: LANES }),
      (flushes, starts) => {
        const first = new CommitLedger(LANES);
        let writer = new CommitLedger(LANES, first.memory);
        /** What the lanes' rows say. */
        const rows = [...starts];
        const expected = new Float64Array(COUNTER_NAMES.length);
        const start = () => {
          for (const [lane, batch] of rows.entries()) writer.settle(lane, batch);
        };
        start();
        for (const { lane, counts, rollbacks, death } of flushes) {
          const number = rows[lane]! + 1;
          const isStaged = death !== 'before staging';
          for (let i = 0; isStaged && i <= rollbacks; i++) writer.stage(lane, number, counts);
          assert.deepEqual(first.totals(), expected, 'staged counts are not shown');
          if (death === 'none' || death === 'after the commit') {
            rows[lane] = number;
            for (const one of counts) {
              for (let i = 0; i < one.length; i += 2) expected[one[i]!]! += one[i + 1]!;
            }
          }
          if (death === 'none') writer.settle(lane, number);
          else {
            writer = new CommitLedger(LANES, first.memory);
            start();
          }
          assert.deepEqual(first.totals(), expected);
        }
      },
    ),
  );
});

test('a flush that does not follow the last one is a defect', () => {
  const ledger = new CommitLedger(1);
  ledger.settle(0, 5);
  ledger.stage(0, 6, []);
  assert.throws(() => ledger.stage(0, 7, []), /left out/);
});
