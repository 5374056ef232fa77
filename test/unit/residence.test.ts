/** Who is served in a cell: the pure decision as a table, and what requests meet while the directory is asked. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Residence, type Residency, residencyOf } from '../../src/cluster/residence.js';
import { bucketOf, cellOfBucket } from '../../src/cluster/routing.js';
import type { EngineError } from '../../src/errors.js';

const OPEN = ['east', 'west'];

/** The first tenant of this name and a number whose bucket leads to the cell. */
function leadingTo(cell: string, name: string): string {
  for (let at = 0; ; at++) {
    if (cellOfBucket(bucketOf(`${name}-${at}`), OPEN) === cell) return `${name}-${at}`;
  }
}

const EASTERN = leadingTo('east', 'e');
const WESTERN = leadingTo('west', 'w');

const CASES: readonly (readonly [
  what: string,
  tenant: string,
  settled: string | undefined,
  open: readonly string[],
  expected: Residency,
])[] = [
  ['settled here', WESTERN, 'east', OPEN, { is: 'here' }],
  ['settled here, which takes nobody new', WESTERN, 'east', ['west'], { is: 'here' }],
  ['settled elsewhere', EASTERN, 'west', OPEN, { is: 'elsewhere', cell: 'west' }],
  [
    'settled where nobody new is taken',
    EASTERN,
    'west',
    ['east'],
    { is: 'elsewhere', cell: 'west' },
  ],
  ['settled nowhere, led here', EASTERN, undefined, OPEN, { is: 'new' }],
  ['settled nowhere, led elsewhere', WESTERN, undefined, OPEN, { is: 'elsewhere', cell: 'west' }],
  ['settled nowhere, all others closed', WESTERN, undefined, ['east'], { is: 'new' }],
  [
    'settled nowhere, this one closed',
    EASTERN,
    undefined,
    ['west'],
    { is: 'elsewhere', cell: 'west' },
  ],
  ['settled nowhere, all closed', EASTERN, undefined, [], { is: 'homeless' }],
];

for (const [what, tenant, settled, open, expected] of CASES) {
  test(`in the cell east a tenant that is ${what} is ${expected.is}`, () => {
    assert.deepEqual(residencyOf('east', tenant, settled, open), expected);
  });
}

interface World {
  readonly residence: Residence;
  /** What the directory has. */
  readonly placed: Map<string, string>;
  nowMs: number;
  /** The tenants of each question, and of each settlement. */
  readonly asked: string[][];
  readonly settled: string[][];
  /** While set, questions wait for it. */
  gate: Promise<void> | undefined;
  failure: Error | undefined;
}

function newWorld(): World {
  const placed = new Map<string, string>();
  const world: World = {
    residence: new Residence({
      cell: 'east',
      directory: {
        placementsOf: async (tenants) => {
          world.asked.push([...tenants]);
          const found = tenants.flatMap((tenant_id) => {
            const cell = placed.get(tenant_id);
            return cell === undefined ? [] : [{ tenant_id, cell }];
          });
          await world.gate;
          if (world.failure !== undefined) throw world.failure;
          return found;
        },
        settle: async (tenants, cell) => {
          world.settled.push([...tenants]);
          for (const tenant of tenants) {
            if (!placed.has(tenant)) placed.set(tenant, cell);
          }
          await world.gate;
          return new Map(tenants.map((tenant) => [tenant, placed.get(tenant) as string]));
        },
      },
      onAway: () => undefined,
      clock: { monotonic: () => world.nowMs },
    }),
    placed,
    nowMs: 0,
    asked: [],
    settled: [],
    gate: undefined,
    failure: undefined,
  };
  world.residence.tellCells(OPEN.map((name) => ({ name, state: 'open' as const })));
  return world;
}

async function refusal(
  admitted: () => Promise<void> | undefined,
): Promise<EngineError | undefined> {
  try {
    await admitted();
    return undefined;
  } catch (error) {
    return error as EngineError;
  }
}

test('requests of an unknown tenant share one question, and later ones ask nothing', async () => {
  const { residence, asked, placed } = newWorld();
  placed.set('acme', 'east');
  await Promise.all([1, 2, 3].map(() => residence.admit('acme', true)));
  assert.deepEqual(asked, [['acme']]);
  assert.equal(residence.admit('acme', true), undefined);
});

test('tenants that come while one is asked about are asked about together', async () => {
  const { residence, asked } = newWorld();
  const first = residence.admit(EASTERN, false);
  await Promise.resolve();
  const others = ['a', 'b', 'c'].map((name) => residence.admit(leadingTo('east', name), false));
  await Promise.all([first, ...others]);
  assert.deepEqual(
    asked.map((tenants) => tenants.length),
    [1, 3],
  );
});

const never = () => false;

test('of a caller whom nobody knows only names that are settled somewhere are kept', async () => {
  const { residence, asked, settled, placed } = newWorld();
  placed.set('theirs', 'west');
  await residence.admitNamed(EASTERN, never);
  assert.equal(residence.of(EASTERN), undefined);
  assert.equal((await refusal(() => residence.admitNamed(WESTERN, never)))?.lists?.cell, 'west');
  assert.equal((await refusal(() => residence.admitNamed('theirs', never)))?.lists?.cell, 'west');
  assert.equal((await refusal(() => residence.admitNamed('theirs', never)))?.lists?.cell, 'west');
  assert.deepEqual(asked, [[EASTERN], [WESTERN], ['theirs']]);
  assert.deepEqual(settled, []);
  await residence.admitNamed(EASTERN, () => true);
  assert.equal(residence.of(EASTERN)?.is, 'new');
});

test('many names of callers whom nobody knows leave room for those of others', async () => {
  const world = newWorld();
  const { residence, asked } = world;
  let open: () => void = () => undefined;
  world.gate = new Promise((resolve) => {
    open = resolve;
  });
  const flood = Array.from({ length: 2_000 }, (_, at) =>
    refusal(() => residence.admitNamed(leadingTo('east', `flood-${at}`), never)),
  );
  const known = refusal(() => residence.admitNamed(EASTERN, () => true));
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(asked.at(-1), [EASTERN]);
  open();
  assert.equal(await known, undefined);
  const codes = (await Promise.all(flood)).map((refused) => refused?.code);
  assert.equal(codes.filter((code) => code === undefined).length, 1_000);
  assert.equal(codes.filter((code) => code === 'ENG_OVERLOADED').length, 1_000);
  assert.ok(asked.every((tenants) => tenants.length <= 100));
});

test('a new tenant is settled with the first write, and with no read', async () => {
  const { residence, settled, placed } = newWorld();
  await residence.admit(EASTERN, false);
  assert.equal(residence.of(EASTERN)?.is, 'new');
  assert.equal(residence.admit(EASTERN, false), undefined);
  await Promise.all([residence.admit(EASTERN, true), residence.admit(EASTERN, true)]);
  assert.deepEqual(settled, [[EASTERN]]);
  assert.equal(placed.get(EASTERN), 'east');
  assert.equal(residence.admit(EASTERN, true), undefined);
});

test('who was settled elsewhere a moment before is refused with the name of that cell', async () => {
  const { residence, placed } = newWorld();
  await residence.admit(EASTERN, false);
  placed.set(EASTERN, 'west');
  const refused = await refusal(() => residence.admit(EASTERN, true));
  assert.equal(refused?.code, 'ENG_WRONG_CELL');
  assert.equal(refused?.status, 421);
  assert.equal(refused?.lists?.cell, 'west');
  assert.equal(residence.refused, 1);
});

test('while the directory is away those that are known go on, and others wait', async () => {
  const world = newWorld();
  const { residence } = world;
  residence.tellPlacements([
    { tenant_id: 'ours', cell: 'east' },
    { tenant_id: 'theirs', cell: 'west' },
  ]);
  world.failure = new Error('away');
  assert.equal(residence.admit('ours', true), undefined);
  assert.equal((await refusal(() => residence.admit('theirs', true)))?.status, 421);
  const unknown = await refusal(() => residence.admit('unknown', false));
  assert.equal(unknown?.code, 'ENG_DIRECTORY_DOWN');
  assert.equal(unknown?.retryAfterMs, 1_000);
  world.failure = undefined;
  world.placed.set('unknown', 'east');
  await residence.admit('unknown', true);
});

test('a tenant that is held is refused until it is released, or lives elsewhere', async () => {
  const { residence } = newWorld();
  residence.tellPlacements([{ tenant_id: 'acme', cell: 'east' }]);
  residence.hold('acme', false);
  assert.equal((await refusal(() => residence.admit('acme', false)))?.code, 'ENG_TENANT_MOVING');
  // Told of by others while it is held: the move has not said so.
  residence.tellPlacements([{ tenant_id: 'acme', cell: 'east' }]);
  assert.equal(residence.of('acme')?.is, 'held');
  residence.release('acme');
  assert.equal(residence.admit('acme', true), undefined);
  residence.hold('acme', false);
  residence.depart('acme', 'west');
  assert.equal((await refusal(() => residence.admit('acme', true)))?.lists?.cell, 'west');
  residence.release('acme');
  assert.equal(residence.of('acme')?.is, 'elsewhere');
});

test('tenants that are held are counted, and the time of the first of them', () => {
  const world = newWorld();
  const { residence } = world;
  assert.deepEqual([residence.heldCount, residence.heldMs], [0, 0]);
  residence.hold('acme', false);
  world.nowMs = 40;
  residence.hold('other', false);
  residence.hold('acme', false);
  world.nowMs = 100;
  assert.deepEqual([residence.heldCount, residence.heldMs], [2, 100]);
  residence.depart('acme', 'west');
  assert.deepEqual([residence.heldCount, residence.heldMs], [1, 60]);
  residence.release('other');
  assert.deepEqual([residence.heldCount, residence.heldMs], [0, 0]);
});

test('an answer that comes after a tenant was held or has left changes nothing', async () => {
  const world = newWorld();
  const { residence } = world;
  world.placed.set('acme', 'east');
  let open: () => void = () => undefined;
  world.gate = new Promise((resolve) => {
    open = resolve;
  });
  const asking = refusal(() => residence.admit('acme', true));
  await new Promise((resolve) => setImmediate(resolve));
  residence.depart('acme', 'west');
  open();
  assert.equal((await asking)?.lists?.cell, 'west');
  assert.equal(residence.of('acme')?.is, 'elsewhere');
});

test('one that arrives stays held whatever the directory tells, until the move lets it in', () => {
  const { residence } = newWorld();
  residence.hold('acme', true);
  // Told late of where it was placed, then of the switch.
  residence.tellPlacements([{ tenant_id: 'acme', cell: 'west' }]);
  residence.tellPlacements([{ tenant_id: 'acme', cell: 'east' }]);
  assert.equal(residence.of('acme')?.is, 'held');
  residence.release('acme');
  assert.equal(residence.of('acme')?.is, 'here');
  residence.hold('acme', true);
  residence.hold('acme', false);
  residence.tellPlacements([{ tenant_id: 'acme', cell: 'west' }]);
  assert.equal(residence.of('acme')?.is, 'elsewhere', 'one that leaves has left by then');
});

test('polls of a held tenant can be ended, streams end when it has left', () => {
  const { residence } = newWorld();
  residence.tellPlacements([{ tenant_id: 'acme', cell: 'east' }]);
  const ended: string[] = [];
  residence.whenGone('acme', true, ({ code }) => ended.push(`poll ${code}`));
  residence.whenGone('acme', false, ({ code }) => ended.push(`stream ${code}`));
  const forget = residence.whenGone('acme', false, () => ended.push('forgotten'));
  forget();
  residence.hold('acme', false);
  assert.equal(ended.length, 0, 'shards answer polls with what these have');
  residence.endPolls('acme');
  assert.deepEqual(ended, ['poll ENG_TENANT_MOVING']);
  residence.depart('acme', 'west');
  assert.deepEqual(ended, ['poll ENG_TENANT_MOVING', 'stream ENG_WRONG_CELL']);
  residence.whenGone('acme', false, ({ code }) => ended.push(`late ${code}`));
  assert.equal(ended.at(-1), 'late ENG_WRONG_CELL');
});

test('a cell that is named without a tenant is refused unless it is this one', () => {
  const { residence } = newWorld();
  residence.admitCell('east');
  assert.throws(() => residence.admitCell('west'), { code: 'ENG_WRONG_CELL' });
  for (const odd of ['wést', 'west\u0001', '', 'a'.repeat(64), 'West', 'west\n']) {
    assert.throws(() => residence.admitCell(odd), { code: 'ENG_VALIDATION' }, odd);
  }
});

test('cells that open and close lead new tenants elsewhere, and settled ones nowhere', async () => {
  const { residence } = newWorld();
  await residence.admit(EASTERN, false);
  residence.tellPlacements([{ tenant_id: 'ours', cell: 'east' }]);
  residence.tellCells([
    { name: 'east', state: 'closed' },
    { name: 'west', state: 'open' },
  ]);
  assert.deepEqual(residence.of(EASTERN), { is: 'elsewhere', cell: 'west' });
  assert.equal(residence.admit('ours', true), undefined);
  residence.tellCells([{ name: 'east', state: 'draining' }]);
  assert.equal((await refusal(() => residence.admit(EASTERN, true)))?.code, 'ENG_NO_CELL');
});
