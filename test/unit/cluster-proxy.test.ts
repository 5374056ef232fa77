/**
 * What is written for proxies: which words stand in it, and which are refused. Whether the proxies understand
 * it, and lead requests by it, is tried with real ones in test/system/cells/routing.test.ts.
 */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import fc from 'fast-check';
import { envoyFiles } from '../../src/cluster/proxy/envoy.js';
import { BUCKET_SCRIPT } from '../../src/cluster/proxy/envoy-script.js';
import { haproxyFiles, percentEncoded } from '../../src/cluster/proxy/haproxy.js';
import { changesBetween } from '../../src/cluster/proxy/haproxy-runtime.js';
import { nginxFiles } from '../../src/cluster/proxy/nginx.js';
import {
  bucketCells,
  checkedTopology,
  type ProxyFile,
  type ProxySettings,
  type Topology,
  TopologyError,
} from '../../src/cluster/proxy/topology.js';
import { BUCKETS, bucketOf } from '../../src/cluster/routing.js';
import { hasProgram } from '../helpers/docs.js';

const SETTINGS: ProxySettings = { listen: ':8090', folder: '/etc/engine' };
const GENERATORS = { haproxy: haproxyFiles, nginx: nginxFiles, envoy: envoyFiles };

const cell = (name: string, more: Partial<Topology['cells'][number]> = {}) => ({
  name,
  engines: [`10.0.0.1:8080`, `10.0.0.2:8080`],
  state: 'open' as const,
  ...more,
});

const topology = (more: Partial<Topology> = {}): Topology => ({
  cells: [cell('west'), cell('east')],
  placements: new Map([
    ['globex', 'west'],
    ['acme', 'east'],
  ]),
  ...more,
});

const checked = (given: Topology, more: Partial<ProxySettings> = {}) =>
  checkedTopology(given, { ...SETTINGS, ...more });

const textOf = (files: readonly ProxyFile[], name: string) =>
  files.find((file) => file.name === name)?.text ?? assert.fail(`no ${name}`);

const withTenants = (...tenants: readonly string[]) =>
  checked(topology({ placements: new Map(tenants.map((tenant) => [tenant, 'east'])) }));

test('equal directories give equal files, whatever the order of their rows', () => {
  const { cells, placements } = topology();
  const other = { cells: [...cells].reverse(), placements: new Map([...placements].reverse()) };
  for (const generate of Object.values(GENERATORS)) {
    assert.deepEqual(generate(checked(other), SETTINGS), generate(checked(topology()), SETTINGS));
  }
});

test('a name or an address of the directory that would be more than a word is left out, and the rest is served', () => {
  const rest = cell('rest');
  for (const name of ['East', 'a b', 'a\nserver x', 'a{', 'a;', '', 'pg_x', 'a'.repeat(64)]) {
    const given = checked({
      cells: [cell(name), rest],
      placements: new Map([
        ['acme', name],
        ['globex', 'rest'],
      ]),
    });
    assert.deepEqual([given.cells, [...given.placements]], [[rest], [['globex', 'rest']]]);
    assert.deepEqual(given.leftOut, [
      `Left out, as no name of a cell: ${JSON.stringify(name)}.`,
      `Left out: tenants of the cell ${JSON.stringify(name)}, which is not there.`,
    ]);
  }
  const addresses = [
    ...['host', 'host:', ':80', 'host:0', 'host:65536', 'host:80 check', 'host:80\n  server b b:1'],
    ...[
      'a b:80',
      'a;b:80',
      'unix@/run/x:80',
      '-a:80',
      'a-:80',
      '[::1:80',
      '$x:80',
      `${'a'.repeat(254)}:80`,
    ],
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
  const { text } = nginxFiles(given, SETTINGS).find(({ name }) => name === 'tenants.map') ?? {};
  assert.doesNotMatch(text ?? '', /^"\\*" /m);
});

test('a setting that would be more than a word of a configuration is refused', () => {
  const refused = (given: Topology, words: RegExp, more: Partial<ProxySettings> = {}) => {
    assert.throws(
      () => checked(given, more),
      (error) => {
        assert.ok(error instanceof TopologyError);
        assert.match(error.message, words);
        return true;
      },
    );
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
  const [, clusters] = envoyFiles(given, SETTINGS);
  assert.match(clusters?.text ?? '', /"address": "fd00::1"/);
});

test('a map of HAProxy has one line for each tenant, whatever the tenant is called', () => {
  const anything = fc.string({ unit: 'binary', minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(fc.uniqueArray(anything, { minLength: 1 }), (tenants) => {
      const text = textOf(haproxyFiles(withTenants(...tenants), SETTINGS), 'tenants.map');
      const lines = text.split('\n');
      assert.equal(lines.pop(), '');
      for (const line of lines) assert.match(line, /^[\w.~%-]+ east$/);
      const keys = new Set(lines.map((line) => line.split(' ')[0]));
      assert.equal(
        keys.size,
        new Set(tenants.map((tenant) => Buffer.from(tenant).toString('hex'))).size,
      );
    }),
  );
  assert.equal(percentEncoded('Ab-._~ é/%'), 'Ab-._~%20%C3%A9%2F%25');
});

test('a map of nginx holds tenants as texts in quotes, and those that differ in their case as expressions', () => {
  const placements = new Map([
    ['Acme', 'east'],
    ['acme', 'west'],
    ['a.b', 'east'],
    ['A.B', 'east'],
    ['default', 'east'],
    ['~x', 'west'],
    ['q"\\$;{', 'west'],
    ['two\nlines', 'east'],
  ]);
  const text = textOf(nginxFiles(checked(topology({ placements })), SETTINGS), 'tenants.map');
  assert.deepEqual(text.trimEnd().split('\n'), [
    String.raw`"\\A.B" east;`,
    '"~^Acme$" east;',
    '"~^acme$" west;',
    String.raw`"\\default" east;`,
    String.raw`"\\q\"\\$;{" west;`,
    String.raw`"\\two\nlines" east;`,
    String.raw`"\\~x" west;`,
  ]);
});

test('nginx finds tenants of a query as programs encode them, and reads nothing else that is encoded', () => {
  const placements = new Map([
    ['acme-1.x_~', 'east'],
    ["a b'+", 'west'],
    ['é', 'east'],
  ]);
  const files = nginxFiles(checked(topology({ placements })), SETTINGS);
  assert.deepEqual(textOf(files, 'queries.map').trimEnd().split('\n'), [
    String.raw`"\\a%20b'%2B" west;`,
    String.raw`"\\a+b%27%2B" west;`,
    String.raw`"\\acme-1.x_%7E" east;`,
    String.raw`"\\%C3%A9" east;`,
  ]);
  // An expression comes behind those of the file: what is encoded in another way is nobody's that is known.
  assert.match(textOf(files, 'nginx.conf'), /include queries\.map;\n {4}"~\[%\+\]" "";\n/);
});

test('a worker of nginx that was replaced ends, and a failure of an engine leads nobody to its standby', () => {
  const text = textOf(nginxFiles(checked(topology()), SETTINGS), 'nginx.conf');
  assert.match(text, /^worker_shutdown_timeout 5m;\n/m);
  assert.match(text, / {4}server 10\.0\.0\.1:8080 max_fails=0;\n/);
  assert.match(text, / {4}server 10\.0\.0\.2:8080 max_fails=0 backup;\n/);
});

test('tables of nginx are large enough for the longest tenant and for all of them', () => {
  const tenants = Array.from({ length: 5_000 }, (_, at) => `tenant-${at}`);
  const text = textOf(nginxFiles(withTenants(...tenants, 'é'.repeat(255)), SETTINGS), 'nginx.conf');
  assert.match(text, /map_hash_max_size 16384;\n {2}map_hash_bucket_size 2048;/);
});

test('every bucket leads to a cell that takes new tenants, and nowhere when none does', () => {
  const cells = [
    cell('east'),
    cell('west', { state: 'closed' }),
    cell('south', { state: 'draining' }),
  ];
  const buckets = bucketCells(checked(topology({ cells })));
  assert.equal(buckets.length, BUCKETS);
  assert.ok(buckets.every(([, name]) => name === 'east'));
  const none = checked({ cells: [cell('east', { state: 'closed' })], placements: new Map() });
  assert.equal(textOf(haproxyFiles(none, SETTINGS), 'buckets.map'), '');
  const [, , routes] = envoyFiles(none, SETTINGS);
  assert.match(routes?.text ?? '', /no cell takes new tenants/);
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
  const expected: Record<keyof typeof GENERATORS, RegExp> = {
    haproxy: /set-var\(txn\.cell\) str\(west\) if !has_cell\n/,
    nginx: /default west;\n {4}"~\^OPTIONS:"/,
    envoy:
      /"on_no_match":\{"action":\{"name":"route","typed_config":\{[^}]*\},"route":\{"cluster":"cell_west"/,
  };
  for (const [name, generate] of Object.entries(GENERATORS)) {
    const all = (files: readonly ProxyFile[]) => files.map(({ text }) => text).join('');
    const words = expected[name as keyof typeof GENERATORS];
    assert.match(all(generate(checked(topology()), SETTINGS)), /name the tenant with x-tenant-id/);
    const settings = { ...SETTINGS, defaultCell: 'west' };
    assert.match(all(generate(checked(topology(), settings), settings)), words, name);
  }
});

test('each entry of a map that is new, other or gone is a change', () => {
  const before = new Map([
    ['a', '1'],
    ['b', '1'],
    ['c', '1'],
  ]);
  const after = new Map([
    ['a', '1'],
    ['b', '2'],
    ['d', '1'],
  ]);
  assert.deepEqual(changesBetween(before, after), [
    ['b', '2'],
    ['d', '1'],
    ['c', undefined],
  ]);
});

test('the routes of Envoy ask for the tenant first, then for its bucket, then for the cell that is named', () => {
  const [, , routes] = envoyFiles(checked(topology()), SETTINGS);
  const config = JSON.parse(routes?.text ?? '') as {
    resources: { virtual_hosts: { matcher: Tree }[] }[];
  };
  const inputs: string[] = [];
  let sizes: number[] = [];
  for (let tree = config.resources[0]?.virtual_hosts[0]?.matcher; tree?.matcher_tree; ) {
    inputs.push(tree.matcher_tree.input.name);
    sizes = [...sizes, Object.keys(tree.matcher_tree.exact_match_map.map).length];
    tree = tree.on_no_match.matcher;
  }
  assert.deepEqual(inputs, ['x-route-tenant', 'x-route-bucket', 'x-cell']);
  assert.deepEqual(sizes, [2, BUCKETS, 2]);
});

test('Envoy answers a page whose address has a query', () => {
  const [, , routes] = envoyFiles(checked(topology()), SETTINGS);
  const [, wholePaths = ''] = /"regex":"(\([^"]*\?)"/.exec(routes?.text ?? '') ?? [];
  const expression = new RegExp(`^(?:${JSON.parse(`"${wholePaths}"`)})$`);
  for (const path of ['/', '/?a=b', '/whoami', '/api/v1/cells/moves?limit=5']) {
    assert.match(path, expression);
  }
  for (const path of ['/whoami/x', '/api/v1/', '/metrics', '/cells-of']) {
    assert.doesNotMatch(path, expression);
  }
});

interface Tree {
  readonly matcher_tree?: {
    readonly input: { readonly name: string };
    readonly exact_match_map: { readonly map: object };
  };
  readonly on_no_match: { readonly matcher?: Tree };
}

test('the script of Envoy takes the bucket of a tenant as everybody else does', (t) => {
  if (!hasProgram('luajit')) return t.skip('luajit is not installed, which Envoy has in it');
  const lengths = [1, 3, 55, 56, 63, 64, 119, 120, 255];
  const tenants = [...lengths.map((length) => 'x'.repeat(length)), 'acme', 'é漢字', '"\\'];
  const asked = [
    ...tenants.map((tenant) => ({ header: tenant, path: '/', tenant })),
    { header: '', path: '/a?b=1&tenant_id=a%20b%2Bc+d&x=2', tenant: 'a b+c d' },
    { header: 'acme', path: '/?tenant_id=other', tenant: 'acme' },
    { header: '', path: '/?tenant_id=a%0Ab', tenant: undefined },
    { header: '', path: '/a?xtenant_id=a', tenant: undefined },
  ];
  const literal = (text: string) =>
    `"${[...Buffer.from(text)].map((byte) => `\\${String(byte).padStart(3, '0')}`).join('')}"`;
  const calls = asked.map(({ header, path }) => `ask(${literal(header)}, ${literal(path)})`);
  const program = `bit = require("bit")\n${BUCKET_SCRIPT}
    function ask(header, path)
      local all = { ["x-tenant-id"] = header, [":path"] = path, ["x-route-tenant"] = "theirs" }
      local headers = {
        get = function(_, name) return all[name] end,
        remove = function(_, name) all[name] = nil end,
        add = function(_, name, value) all[name] = value end,
      }
      envoy_on_request({ headers = function() return headers end })
      print((all["x-route-bucket"] or "-") .. " " .. (all["x-route-tenant"] or "-"))
    end\n${calls.join('\n')}`;
  const { stdout, stderr } = spawnSync('luajit', ['-'], { input: program, encoding: 'utf8' });
  const wanted = asked.map(({ tenant }) =>
    tenant === undefined ? '- -' : `${bucketOf(tenant)} ${tenant}`,
  );
  assert.deepEqual(stdout.trimEnd().split('\n'), wanted, stderr);
});
