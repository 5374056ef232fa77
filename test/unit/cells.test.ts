/**
 * Cells: who is served where, the configuration of proxies, and what proxies are told when.
 *
 * Cost: 3 s, since it writes maps of thousands of tenants and looks for names by their hash.
 */

import assert from 'node:assert/strict';
import { afterEach, beforeEach, mock, test } from 'node:test';
import fc from 'fast-check';
import { haproxyFiles, percentEncoded } from '../../cli/proxy/haproxy.js';
import { changesBetween } from '../../cli/proxy/haproxy-runtime.js';
import type { ProxyFile, ProxySettings, Topology } from '../../cli/proxy/topology.js';
import { bucketCells, checkedTopology, TopologyError } from '../../cli/proxy/topology.js';
import { TopologyReader } from '../../cli/proxy/topology-reader.js';
import type { EngineError } from '../../src/base/errors.js';
import type { CellRow, PlacementRow } from '../../src/cluster/directory.js';
import { CellPlacement, placeOf, type TenantPlace } from '../../src/cluster/placement.js';
import { allBuckets, BUCKETS, bucketOf, cellOfBucket } from '../../src/cluster/routing.js';
import { tenantLedTo } from '../helpers/cluster.js';
import { column } from '../helpers/columns.js';
import { check } from '../helpers/properties.js';

const SETTINGS: ProxySettings = { listen: ':8090', folder: '/etc/engine' };

const cell = (name: string, more: Partial<Topology['cells'][number]> = {}) => {
  return { name, engines: [`10.0.0.1:8080`, `10.0.0.2:8080`], state: 'open' as const, ...more };
};

const topology = (more: Partial<Topology> = {}): Topology => ({
  cells: [cell('west'), cell('east')],
  placements: new Map(Object.entries({ globex: 'west', acme: 'east' })),
  ...more,
});

const checked = (given: Topology, more: Partial<ProxySettings> = {}) =>
  checkedTopology(given, { ...SETTINGS, ...more });

const textOf = (files: readonly ProxyFile[], name: string) =>
  files.find((file) => file.name === name)?.text ?? assert.fail(`no ${name}`);

const withTenants = (...tenants: readonly string[]) =>
  checked(topology({ placements: new Map(tenants.map((tenant) => [tenant, 'east'])) }));

test('a name or an address of the directory that would be more than a word is left out, and the rest is served', () => {
  const rest = cell('rest');
  for (const name of ['East', 'a b', 'a\nserver x', 'a{', 'a;', '', 'pg_x', 'a'.repeat(64)]) {
    const placements = new Map(Object.entries({ acme: name, globex: 'rest' }));
    const given = checked({ cells: [cell(name), rest], placements });
    assert.deepEqual([given.cells, [...given.placements]], [[rest], [['globex', 'rest']]]);
    assert.deepEqual(given.leftOut, [
      `Left out, as no name of a cell: ${JSON.stringify(name)}.`,
      `Left out: tenants of the cell ${JSON.stringify(name)}, which is not there.`,
    ]);
  }
  const addresses = [
    ...'host host: :80 host:0 host:65536 a;b:80 unix@/run/x:80 -a:80 a-:80 [::1:80 $x:80'.split(
      ' ',
    ),
    ...['host:80 check', 'host:80\n  server b b:1', 'a b:80', `${'a'.repeat(254)}:80`],
  ];
  for (const engine of addresses) {
    const cells = [cell('east', { engines: [engine, 'good:1'] }), rest];
    const given = checked({ cells, placements: new Map([['acme', 'east']]) });
    assert.deepEqual(given.cells, [cell('east', { engines: ['good:1'] }), rest]);
    assert.equal(given.placements.get('acme'), 'east');
    assert.deepEqual(given.leftOut, [
      `Left out: an engine of the cell east is no host:port: ${JSON.stringify(engine)}.`,
    ]);
  }
});

test('a tenant whose name no engine takes stands in no map', () => {
  const longest = '😀'.repeat(255);
  const given = withTenants('', 'x'.repeat(256), longest, 'acme');
  assert.deepEqual([...given.placements.keys()].sort(), ['acme', longest]);
  assert.equal(given.leftOut.length, 2);
  assert.match(given.leftOut.join(), /a tenant without a name.*whose name is over 255 characters/);
});

test('a setting that would be more than a word of a configuration is refused', () => {
  const refused = (given: Topology, words: RegExp, more: Partial<ProxySettings> = {}) => {
    const isTold = (error: unknown) => error instanceof TopologyError && words.test(error.message);
    assert.throws(() => checked(given, more), isTold, String(words));
  };
  for (const listen of ['8090', 'any', ':0', '*:x', ':80 ssl crt /x']) {
    refused(topology(), /the address to listen at is no host:port/, { listen });
  }
  for (const path of ['run/x', '/run/a b', '/run/x\n', '/run/"', '/run/$x']) {
    refused(topology(), /a path has letters/, { socket: path });
    refused(topology(), /a path has letters/, { folder: path });
  }
  refused(topology({ cells: [] }), /there is no cell/);
  refused(topology({ cells: [cell('east'), cell('east')] }), /two cells are named east/);
  refused(topology({ cells: [cell('East')] }), /there is no cell/);
  refused(topology(), /there is no cell "north"/, { defaultCell: 'north' });
});

test('addresses may be names and of either version of IP, and the proxy may listen anywhere', () => {
  const engines = ['engine-a.east.svc:8080', '10.0.0.1:80', '[fd00::1]:65535', 'x:1'];
  const given = checked(topology({ cells: [cell('east', { engines }), cell('west')] }));
  for (const listen of [':80', '*:80', '0.0.0.0:80', '[::1]:80', 'localhost:80'])
    checked(given, { listen });
  const text = textOf(haproxyFiles(given, SETTINGS), 'haproxy.cfg');
  assert.match(text, /server east_3 \[fd00::1\]:65535\n/);
  assert.match(text, /resolvers dns\n/);
  const numbers = textOf(haproxyFiles(checked(topology()), SETTINGS), 'haproxy.cfg');
  assert.doesNotMatch(numbers, /resolvers/);
});

test('a map of HAProxy has one line for each tenant, whatever the tenant is called', (t) => {
  const anything = fc.string({ unit: 'binary', minLength: 1, maxLength: 20 });
  check(t, 100, fc.uniqueArray(anything, { minLength: 1 }), (tenants) => {
    const text = textOf(haproxyFiles(withTenants(...tenants), SETTINGS), 'tenants.map');
    const lines = text.split('\n');
    assert.equal(lines.pop(), '');
    for (const line of lines) assert.match(line, /^[\w.~%-]+ east$/);
    const keys = new Set(lines.map((line) => line.split(' ')[0]));
    assert.equal(keys.size, new Set(tenants.map((it) => Buffer.from(it).toString('hex'))).size);
  });
  assert.equal(percentEncoded('Ab-._~ é/%'), 'Ab-._~%20%C3%A9%2F%25');
});

test('every bucket leads to a cell that takes new tenants, and nowhere when none does', () => {
  const west = cell('west', { state: 'closed' });
  const cells = [cell('east'), west, cell('south', { state: 'draining' })];
  const buckets = bucketCells(checked(topology({ cells })));
  assert.equal(buckets.length, BUCKETS);
  assert.ok(buckets.every(([, name]) => name === 'east'));
  const none = checked({ cells: [cell('east', { state: 'closed' })], placements: new Map() });
  assert.equal(textOf(haproxyFiles(none, SETTINGS), 'buckets.map'), '');
});

test('HAProxy tries again what was never sent, and opens a socket only when it is named', () => {
  const text = textOf(haproxyFiles(checked(topology()), SETTINGS), 'haproxy.cfg');
  assert.match(text, /\n {2}retry-on conn-failure\n/);
  assert.doesNotMatch(text, /stats socket/);
  const socket = '/run/haproxy/cells.sock';
  const open = textOf(haproxyFiles(checked(topology()), { ...SETTINGS, socket }), 'haproxy.cfg');
  assert.match(open, /stats socket \/run\/haproxy\/cells\.sock mode 600 level admin\n/);
  // What is up is read by the next process of the one that the command can ask.
  assert.match(open, /server-state-file \/etc\/engine\/servers\.state\n/);
  assert.match(open, /load-server-state-from-file global\n/);
  assert.doesNotMatch(text, /server-state/);
});

test('who names nothing is refused, unless there is a cell for that', () => {
  const text = (more: Partial<ProxySettings> = {}) =>
    textOf(haproxyFiles(checked(topology(), more), { ...SETTINGS, ...more }), 'haproxy.cfg');
  assert.match(text(), /name the tenant with x-tenant-id/);
  assert.match(text({ defaultCell: 'west' }), /set-var\(txn\.cell\) str\(west\) if !has_cell\n/);
});

test('each entry of a map that is new, other or gone is a change', () => {
  const mapOf = (entries: object) => new Map<string, string>(Object.entries(entries));
  const before = mapOf({ a: '1', b: '1', c: '1' });
  const changes = changesBetween(before, mapOf({ a: '1', b: '2', d: '1' }));
  assert.deepEqual(Object.fromEntries(changes), { b: '2', d: '1', c: undefined });
});

const buckets = allBuckets();
const cellsOf = (cells: readonly string[]) => buckets.map((bucket) => cellOfBucket(bucket, cells));

test('the bucket of a tenant is what anybody can take from its SHA-256', () => {
  // printf acme | sha256sum | cut -c1-3
  assert.equal(bucketOf('acme'), '822');
  assert.equal(new Set(buckets).size, BUCKETS);
  assert.ok(buckets.includes('000') && buckets.includes('fff'));
});

test('the order of cells does not matter', () => {
  assert.deepEqual(cellsOf(['east', 'west', 'north']), cellsOf(['north', 'east', 'west']));
});

test('cells get about the same share', () => {
  const cells = ['east', 'west', 'north', 'south'];
  const chosen = cellsOf(cells);
  for (const cell of cells) {
    const share = chosen.filter((one) => one === cell).length / BUCKETS;
    assert.ok(share > 0.2 && share < 0.3, `${cell} has ${share}`);
  }
});

test('a cell that comes takes buckets, and changes no others', () => {
  const before = cellsOf(['east', 'west', 'north']);
  const after = cellsOf(['east', 'west', 'north', 'south']);
  for (const [at, cell] of after.entries()) {
    if (cell !== 'south') assert.equal(cell, before[at]);
  }
});

const TWO = ['east', 'west'];
const cellRow = (name: string, state: CellRow['state'] = 'open'): CellRow => {
  const joined = { created_at: '', joined_at: '', found_at: '' };
  return { name, state, engines: ['10.0.0.1:80'], database_url: '', ...joined };
};

let cells: CellRow[];
let placed: PlacementRow[];
let revision: number;
/** After which revision the reader asked, one for each time. */
let asked: number[];
let isAway: boolean;
let nowMs: number;

beforeEach(() => {
  cells = TWO.map((name) => cellRow(name));
  placed = [];
  revision = 0;
  asked = [];
  isAway = false;
  nowMs = 0;
  mock.method(performance, 'now', () => nowMs);
});

afterEach(() => mock.restoreAll());

const directory = {
  cells: async () => {
    if (isAway) throw new Error('away');
    return cells;
  },
  placedSince: async (after: Pick<PlacementRow, 'revision' | 'tenant_id'>) => {
    asked.push(after.revision);
    return placed.filter((row) => row.revision > after.revision);
  },
};

function place(tenant_id: string, cell: string, placed_by: PlacementRow['placed_by'] = 'hash') {
  revision += 1;
  placed = placed.filter((row) => row.tenant_id !== tenant_id);
  placed.push({ tenant_id, cell, placed_by, placed_at: '', revision });
}

const told = async (reader: TopologyReader) => Object.fromEntries((await reader.read()).placements);

test('a proxy is told of the tenants that do not live in the cell of their bucket', async () => {
  const reader = new TopologyReader(directory);
  const [follower, stray] = [tenantLedTo('east', TWO, 'f'), tenantLedTo('east', TWO, 's')];
  place(follower, 'east');
  place(stray, 'west', 'hand');
  assert.deepEqual(await told(reader), { [stray]: 'west' });
  place(stray, 'east', 'move');
  place(follower, 'west', 'move');
  assert.deepEqual(await told(reader), { [follower]: 'west' });
});

test('who lives where a bucket led before it got another cell is told of from then on', async () => {
  const reader = new TopologyReader(directory);
  // All others stay with their bucket.
  const taken = tenantLedTo('north', [...TWO, 'north'], 'taken');
  const home = cellOfBucket(bucketOf(taken), TWO) as string;
  place(taken, home);
  place(tenantLedTo('east', [...TWO, 'north'], 'kept'), 'east');
  assert.deepEqual(await told(reader), {});
  cells = [...cells, cellRow('north')];
  assert.deepEqual(await told(reader), { [taken]: home });
  cells = cells.map(({ name }) => cellRow(name, name === 'north' ? 'closed' : 'open'));
  assert.deepEqual(await told(reader), {});
});

test('placements are read once, and then those that have come since; what was missed comes later', async () => {
  const reader = new TopologyReader(directory);
  const [a, b] = [tenantLedTo('west', TWO, 'a'), tenantLedTo('west', TWO, 'b')];
  place(a, 'east', 'hand');
  isAway = true;
  await assert.rejects(reader.read());
  isAway = false;
  assert.deepEqual(await told(reader), { [a]: 'east' });
  place(b, 'east', 'hand');
  assert.deepEqual(await told(reader), { [a]: 'east', [b]: 'east' });
  assert.deepEqual(asked.slice(-1), [1]);
});

const OPEN = ['east', 'west'];

/** The first tenant of this name and a number whose bucket leads to the cell. */
function leadingTo(cell: string, name: string): string {
  for (let at = 0; ; at++) {
    if (cellOfBucket(bucketOf(`${name}-${at}`), OPEN) === cell) return `${name}-${at}`;
  }
}

const EASTERN = leadingTo('east', 'e');
const WESTERN = leadingTo('west', 'w');

const ELSEWHERE: TenantPlace = { is: 'elsewhere', cell: 'west' };
const CASES: readonly (readonly [
  what: string,
  tenant: string,
  settled: string | undefined,
  open: readonly string[],
  expected: TenantPlace,
])[] = [
  ['settled here', WESTERN, 'east', OPEN, { is: 'here' }],
  ['settled here, which takes nobody new', WESTERN, 'east', ['west'], { is: 'here' }],
  ['settled elsewhere', EASTERN, 'west', OPEN, ELSEWHERE],
  ['settled where nobody new is taken', EASTERN, 'west', ['east'], ELSEWHERE],
  ['settled nowhere, led here', EASTERN, undefined, OPEN, { is: 'new' }],
  ['settled nowhere, led elsewhere', WESTERN, undefined, OPEN, ELSEWHERE],
  ['settled nowhere, all others closed', WESTERN, undefined, ['east'], { is: 'new' }],
  ['settled nowhere, this one closed', EASTERN, undefined, ['west'], ELSEWHERE],
  ['settled nowhere, all closed', EASTERN, undefined, [], { is: 'unplaced' }],
];

for (const [what, tenant, settled, open, expected] of CASES) {
  test(`in the cell east a tenant that is ${what} is ${expected.is}`, () => {
    assert.deepEqual(placeOf('east', tenant, settled, open), expected);
  });
}

interface World {
  readonly placement: CellPlacement;
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
    placement: new CellPlacement({
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
      onUnavailable: () => undefined,
      clock: { monotonic: () => world.nowMs },
    }),
    placed,
    nowMs: 0,
    asked: [],
    settled: [],
    gate: undefined,
    failure: undefined,
  };
  world.placement.setCells(OPEN.map((name) => ({ name, state: 'open' as const })));
  return world;
}

async function refusalOf(admit: () => Promise<void> | undefined) {
  try {
    await admit();
    return undefined;
  } catch (error) {
    return error as EngineError;
  }
}

/** Lets questions wait. @returns what lets them go on */
function closeGate(world: World): () => void {
  let open: () => void = () => undefined;
  world.gate = new Promise((resolve) => {
    open = resolve;
  });
  return open;
}

const placedIn = (cell: string, ...tenants: string[]) =>
  tenants.map((tenant_id) => ({ tenant_id, cell }));

test('requests of an unknown tenant share one question, later ones ask nothing, and others ask together', async () => {
  const { placement, asked, placed } = newWorld();
  placed.set('acme', 'east');
  const first = [1, 2, 3].map(() => placement.admit('acme', true));
  await Promise.resolve();
  const others = ['a', 'b', 'c'].map((name) => placement.admit(leadingTo('east', name), false));
  await Promise.all([...first, ...others]);
  assert.deepEqual(column(asked, 'length'), [1, 3]);
  assert.equal(placement.admit('acme', true), undefined);
});

const never = () => false;

test('of a caller whom nobody knows only names that are settled somewhere are kept', async () => {
  const { placement, asked, settled, placed } = newWorld();
  placed.set('theirs', 'west');
  await placement.admitNamed(EASTERN, never);
  assert.equal(placement.of(EASTERN), undefined);
  for (const tenant of [WESTERN, 'theirs', 'theirs']) {
    const refused = await refusalOf(() => placement.admitNamed(tenant, never));
    assert.equal(refused?.members?.cell, 'west');
  }
  assert.deepEqual(asked, [[EASTERN], [WESTERN], ['theirs']]);
  assert.deepEqual(settled, []);
  await placement.admitNamed(EASTERN, () => true);
  assert.equal(placement.of(EASTERN)?.is, 'new');
});

test('many names of callers whom nobody knows leave room for those of others', async () => {
  const world = newWorld();
  const { placement, asked } = world;
  const open = closeGate(world);
  const flood = Array.from({ length: 2_000 }, (_, at) =>
    refusalOf(() => placement.admitNamed(leadingTo('east', `flood-${at}`), never)),
  );
  const known = refusalOf(() => placement.admitNamed(EASTERN, () => true));
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
  const { placement, settled, placed } = newWorld();
  await placement.admit(EASTERN, false);
  assert.equal(placement.of(EASTERN)?.is, 'new');
  assert.equal(placement.admit(EASTERN, false), undefined);
  await Promise.all([placement.admit(EASTERN, true), placement.admit(EASTERN, true)]);
  assert.deepEqual(settled, [[EASTERN]]);
  assert.equal(placed.get(EASTERN), 'east');
  assert.equal(placement.admit(EASTERN, true), undefined);
});

test('who was settled elsewhere a moment before is refused with the name of that cell', async () => {
  const { placement, placed } = newWorld();
  await placement.admit(EASTERN, false);
  placed.set(EASTERN, 'west');
  const refused = await refusalOf(() => placement.admit(EASTERN, true));
  assert.deepEqual([refused?.code, refused?.status], ['ENG_WRONG_CELL', 421]);
  assert.deepEqual([refused?.members?.cell, placement.refused], ['west', 1]);
});

test('while the directory is away those that are known go on, and others wait', async () => {
  const world = newWorld();
  const { placement } = world;
  placement.setPlacements([...placedIn('east', 'ours'), ...placedIn('west', 'theirs')]);
  world.failure = new Error('away');
  assert.equal(placement.admit('ours', true), undefined);
  assert.equal((await refusalOf(() => placement.admit('theirs', true)))?.status, 421);
  const unknown = await refusalOf(() => placement.admit('unknown', false));
  assert.deepEqual([unknown?.code, unknown?.retryAfterMs], ['ENG_DIRECTORY_DOWN', 1_000]);
  world.failure = undefined;
  world.placed.set('unknown', 'east');
  await placement.admit('unknown', true);
});

test('a tenant that is held is refused until it is released, or lives elsewhere', async () => {
  const { placement } = newWorld();
  placement.setPlacements(placedIn('east', 'acme'));
  placement.suspend('acme', false);
  const held = await refusalOf(() => placement.admit('acme', false));
  assert.equal(held?.code, 'ENG_TENANT_MOVING');
  // Told of by others while it is held: the move has not said so.
  placement.setPlacements(placedIn('east', 'acme'));
  assert.equal(placement.of('acme')?.is, 'suspended');
  placement.resume('acme');
  assert.equal(placement.admit('acme', true), undefined);
  placement.suspend('acme', false);
  placement.redirect('acme', 'west');
  assert.equal((await refusalOf(() => placement.admit('acme', true)))?.members?.cell, 'west');
  placement.resume('acme');
  assert.equal(placement.of('acme')?.is, 'elsewhere');
});

test('tenants that are held are counted, and the time of the first of them', () => {
  const world = newWorld();
  const { placement } = world;
  const held = () => [placement.suspendedCount, placement.suspendedMs];
  assert.deepEqual(held(), [0, 0]);
  placement.suspend('acme', false);
  world.nowMs = 40;
  placement.suspend('other', false);
  placement.suspend('acme', false);
  world.nowMs = 100;
  assert.deepEqual(held(), [2, 100]);
  placement.redirect('acme', 'west');
  assert.deepEqual(held(), [1, 60]);
  placement.resume('other');
  assert.deepEqual(held(), [0, 0]);
});

test('an answer that comes after a tenant was held or has left changes nothing', async () => {
  const world = newWorld();
  const { placement } = world;
  world.placed.set('acme', 'east');
  const open = closeGate(world);
  const asking = refusalOf(() => placement.admit('acme', true));
  await new Promise((resolve) => setImmediate(resolve));
  placement.redirect('acme', 'west');
  open();
  assert.equal((await asking)?.members?.cell, 'west');
  assert.equal(placement.of('acme')?.is, 'elsewhere');
});

test('one that arrives stays held whatever the directory tells, until the move lets it in', () => {
  const { placement } = newWorld();
  placement.suspend('acme', true);
  // Told late of where it was placed, then of the switch.
  for (const cell of ['west', 'east']) placement.setPlacements(placedIn(cell, 'acme'));
  assert.equal(placement.of('acme')?.is, 'suspended');
  placement.resume('acme');
  assert.equal(placement.of('acme')?.is, 'here');
  placement.suspend('acme', true);
  placement.suspend('acme', false);
  placement.setPlacements(placedIn('west', 'acme'));
  assert.equal(placement.of('acme')?.is, 'elsewhere', 'one that leaves has left by then');
});

test('polls of a held tenant can be ended, streams end when it has left', () => {
  const { placement } = newWorld();
  placement.setPlacements(placedIn('east', 'acme'));
  const ended: string[] = [];
  placement.whenGone('acme', true, ({ code }) => ended.push(`poll ${code}`));
  placement.whenGone('acme', false, ({ code }) => ended.push(`stream ${code}`));
  placement.whenGone('acme', false, () => ended.push('forgotten'))();
  placement.suspend('acme', false);
  assert.equal(ended.length, 0, 'shards answer polls with what these have');
  placement.endPolls('acme');
  assert.deepEqual(ended, ['poll ENG_TENANT_MOVING']);
  placement.redirect('acme', 'west');
  assert.deepEqual(ended, ['poll ENG_TENANT_MOVING', 'stream ENG_WRONG_CELL']);
  placement.whenGone('acme', false, ({ code }) => ended.push(`late ${code}`));
  assert.equal(ended.at(-1), 'late ENG_WRONG_CELL');
});

test('a cell that is named without a tenant is refused unless it is this one', () => {
  const { placement } = newWorld();
  placement.admitCell('east');
  assert.throws(() => placement.admitCell('west'), { code: 'ENG_WRONG_CELL' });
  for (const odd of ['wést', 'west\u0001', '', 'a'.repeat(64), 'West', 'west\n']) {
    assert.throws(() => placement.admitCell(odd), { code: 'ENG_VALIDATION' }, odd);
  }
});

test('cells that open and close lead new tenants elsewhere, and settled ones nowhere', async () => {
  const { placement } = newWorld();
  await placement.admit(EASTERN, false);
  placement.setPlacements(placedIn('east', 'ours'));
  placement.setCells([
    { name: 'east', state: 'closed' },
    { name: 'west', state: 'open' },
  ]);
  assert.deepEqual(placement.of(EASTERN), ELSEWHERE);
  assert.equal(placement.admit('ours', true), undefined);
  placement.setCells([{ name: 'east', state: 'draining' }]);
  assert.equal((await refusalOf(() => placement.admit(EASTERN, true)))?.code, 'ENG_NO_CELL');
});
