/** In which order a HAProxy that runs is told of changes, by what arrives at its socket. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { HaproxyMaps } from '../../src/cluster/proxy/haproxy-runtime.js';
import type { ProxyCell, Topology } from '../../src/cluster/proxy/topology.js';

const folder = mkdtempSync(path.join(tmpdir(), 'haproxy-'));
const socket = path.join(folder, 'runtime.sock');
/** Their first lines. */
let commands: string[] = [];

const ANSWERS: readonly (readonly [RegExp, string])[] = [
  [/^show info/, 'Pid: 1\n'],
  [/^show backend/, 'cell_east\ncell_west\n'],
  [/^prepare map/, 'New version created: 1\n'],
  [/^set map/, 'entry not found\n'],
];

const server = createServer((connection) => {
  connection.once('data', (data) => {
    const [command = ''] = data.toString().split('\n');
    commands.push(command);
    connection.end(ANSWERS.find(([words]) => words.test(command))?.[1] ?? '\n');
  });
});

before(() => once(server.listen(socket), 'listening'));

after(() => {
  server.close();
  rmSync(folder, { recursive: true });
});

const cellOf = (name: string, state: ProxyCell['state']): ProxyCell => {
  return { name, engines: ['10.0.0.1:80'], state };
};

test('who stays when a bucket goes to another cell is told of before, and who follows it is forgotten after', async () => {
  const maps = new HaproxyMaps(socket);
  const cells = (west: ProxyCell['state']) => [cellOf('east', 'open'), cellOf('west', west)];
  const topology = (west: ProxyCell['state'], tenant: string, cell: string): Topology => {
    return { cells: cells(west), placements: new Map([[tenant, cell]]) };
  };
  await maps.apply(topology('closed', 'follows', 'west'));
  commands = [];
  await maps.apply(topology('open', 'stays', 'east'));
  const changes = commands.filter((command) => /^(add|del|commit) /.test(command));
  assert.deepEqual(
    changes.filter((command) => !command.endsWith('<<')),
    ['add map tenants.map stays east', 'commit map @1 buckets.map', 'del map tenants.map follows'],
  );
});
