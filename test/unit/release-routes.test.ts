/** Where creations go by the releases that route. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { RouteTable, type RoutingRow } from '../../src/core/releases/routes.js';
import { check } from '../helpers/properties.js';
import { casesIn } from '../helpers/table.js';

const TENANT = 'tenant';

/** A release id for each number. */
function id(number: number): string {
  return `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
}

function promoted(number: number, from: string, to: string, more: Partial<RoutingRow> = {}) {
  const at = new Date(Date.UTC(2026, 0, 1, 0, 0, number)).toISOString();
  return {
    id: id(number),
    tenant_id: TENANT,
    baseline_sequence_id: from,
    candidate_sequence_id: to,
    state: 'promoted',
    canary_percent: 20,
    created_at: at,
    updated_at: at,
    is_deprecated: false as boolean,
    ...more,
  } satisfies RoutingRow;
}

function canary(number: number, from: string, to: string, percent: number): RoutingRow {
  return { ...promoted(number, from, to), state: 'canary', canary_percent: percent };
}

function rowOf(text: string): RoutingRow {
  const [, number, from = '', kind, to = '', rest = ''] =
    /^(\d) (\w+)([>~])(\w+) ?(.*)$/.exec(text) ?? [];
  const [percent, deprecated] = rest.split(' ');
  if (kind === '~') {
    const is_deprecated = deprecated === 'deprecated';
    return { ...canary(Number(number), from, to, Number(percent)), is_deprecated };
  }
  const later = rest === 'in 2027' ? { updated_at: '2027-01-01T00:00:00.000Z' } : {};
  const more = { ...later, is_deprecated: rest === 'deprecated' };
  return promoted(Number(number), from, to, more);
}

/** As `release>sequence` or `release=sequence`, for the candidate and the baseline. */
function route(rows: readonly RoutingRow[], from: string, key = 'a key', tenant = TENANT): string {
  const taken = new RouteTable(rows).route(from, tenant, () => key);
  if (taken === undefined) return 'none';
  const number = Number(taken.releaseId.slice(-12));
  return `${number}${taken.variant === 'candidate' ? '>' : '='}${taken.sequenceId}`;
}

describe('a table of routes', () => {
  // `1 v1>v2`: release 1 has promoted v2; `1 v1~v2 50`: it is a canary of half.
  for (const [title = '', releases = '', from = '', expected] of casesIn(`
has no route without releases                              |                                    | v1 | none
follows a promoted release                                 | 1 v1>v2                            | v1 | 1>v2
leaves the candidate alone                                 | 1 v1>v2                            | v2 | none
leaves other sequences alone                               | 1 v1>v2                            | x  | none
does not follow to a deprecated version                    | 1 v1>v2 deprecated                 | v1 | none
follows through a deprecated version to what came after it | 1 v1>v2 deprecated, 2 v2>v3        | v1 | 2>v3
stops before a deprecated version                          | 1 v1>v2, 2 v2>v3 deprecated        | v1 | 1>v2
splits nothing to a deprecated version                     | 1 v1~v2 100 deprecated             | v1 | none
gives a canary of all to the candidate                     | 1 v1~v2 100                        | v1 | 1>v2
stamps the baseline of a canary too                        | 1 v1~v2 0                          | v1 | 1=v1
follows promotions one after the other, and names the last | 1 v1>v2, 2 v2>v3                   | v1 | 2>v3
splits behind a promotion                                  | 1 v1>v2, 2 v2~v3 0                 | v1 | 2=v2
gives the candidate of a canary behind a promotion         | 1 v1>v2, 2 v2~v3 100               | v1 | 2>v3
ends at a canary, whatever is behind it                    | 1 v1~v2 100, 2 v2>v3               | v1 | 1>v2
lets the newest of two releases win                        | 2 v1~v3 100, 1 v1~v2 100           | v1 | 2>v3
goes back by a later promotion                             | 1 v1>v2, 2 v2>v1                   | v2 | 2>v1
ends a circle at its oldest promotion                      | 1 v1>v2, 2 v2>v1                   | v1 | none
takes the time of the promotion, not that of the creation  | 1 v1>v2 in 2027, 2 v2>v1           | v1 | 1>v2
leads into what is left of a circle                        | 1 v1>v2, 2 v2>v3, 3 v3>v1, 4 v0>v2 | v0 | 3>v1
may split to where a promotion came from                   | 1 v1>v2, 2 v2~v1 100               | v1 | 2>v1
`)) {
    test(title, () => {
      const rows = releases.split(', ').flatMap((one) => (one === '' ? [] : rowOf(one)));
      assert.equal(route(rows, from), expected);
      assert.equal(route(rows.reverse(), from), expected, 'whatever the order of the rows');
    });
  }

  test('concerns no other tenant', () => {
    assert.equal(route([promoted(1, 'v1', 'v2')], 'v1', 'a key', 'another'), 'none');
  });

  test('asks for the key only where it decides', () => {
    const never = () => assert.fail('the key was asked for');
    const rows = [promoted(1, 'v1', 'v2'), canary(2, 'w1', 'w2', 100), canary(3, 'x1', 'x2', 0)];
    const table = new RouteTable(rows);
    for (const from of ['v1', 'w1', 'x1', 'none']) table.route(from, TENANT, never);
  });
});

describe('any releases', () => {
  const VERSIONS = 6;
  const releases = fc
    .array(
      fc.record({
        from: fc.nat(VERSIONS - 1),
        to: fc.nat(VERSIONS - 1),
        isCanary: fc.boolean(),
        percent: fc.constantFrom(0, 50, 100),
      }),
      { maxLength: 8 },
    )
    .map((list) =>
      list
        .filter(({ from, to }) => from !== to)
        .filter(({ from }, at, all) => all.findIndex((other) => other.from === from) === at)
        .map(({ from, to, isCanary, percent }, at) =>
          isCanary
            ? canary(at + 1, `v${from}`, `v${to}`, percent)
            : promoted(at + 1, `v${from}`, `v${to}`),
        ),
    );

  test('lead somewhere, and to the same place when the first hop is taken by hand', (t) => {
    check(t, 1_000, releases, (rows) => {
      for (const { state, baseline_sequence_id: from, candidate_sequence_id: to } of rows) {
        const taken = route(rows, from);
        if (state === 'canary' || taken === 'none') continue;
        const next = route(rows, to);
        assert.ok(next === 'none' ? taken.endsWith(`>${to}`) : taken === next, `${taken} ${next}`);
      }
    });
  });

  test('leave unrouted of the promoted ones only the oldest of a circle', (t) => {
    check(t, 1_000, releases, (rows) => {
      for (const row of rows) {
        if (route(rows, row.baseline_sequence_id) !== 'none') continue;
        const circle = [row];
        for (;;) {
          const last = circle.at(-1)?.candidate_sequence_id;
          const next = rows.find(({ baseline_sequence_id: from }) => from === last);
          assert.ok(next?.state === 'promoted');
          if (next === row) break;
          circle.push(next);
        }
        assert.ok(circle.every(({ updated_at }) => updated_at >= row.updated_at));
      }
    });
  });
});
