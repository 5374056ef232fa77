/**
 * The maps of a HAProxy that runs, replaced through its runtime socket: each map as one transaction, so that a request
 * meets all of the old one or all of the new one. Nothing is reloaded, and no connection is closed.
 */

import { connect } from 'node:net';
import { BUCKETS_MAP, backendOf, mapText, TENANTS_MAP, tenantEntries } from './haproxy.js';
import { bucketCells, type Topology } from './topology.js';

export class RuntimeError extends Error {}

/** Many times what a process that is busy takes for a command. */
const ANSWER_TIMEOUT_MS = 30_000;
/** A command, its entries with it, must fit a buffer of HAProxy, which has 16 KiB unless told otherwise. */
const COMMAND_BYTES_MAX = 8_192;
const PREPARED = /New version created: (\d+)/;

/**
 * @param socket its path
 * @param topology checked
 * @throws RuntimeError when nobody answers there, or HAProxy has no backend for a cell and must be reloaded first
 */
export async function applyMaps(socket: string, topology: Topology): Promise<void> {
  const known = new Set((await ask(socket, 'show backend')).split('\n'));
  const missing = topology.cells.find(({ name }) => !known.has(backendOf(name)));
  if (missing !== undefined) {
    throw new RuntimeError(
      `HAProxy does not know the cell ${missing.name} yet: reload it, it finds the files written`,
    );
  }
  // Buckets first: a tenant that is new to both maps is then never led by an old bucket from a new map.
  await replaceMap(socket, BUCKETS_MAP, bucketCells(topology));
  await replaceMap(socket, TENANTS_MAP, tenantEntries(topology));
}

async function replaceMap(
  socket: string,
  map: string,
  entries: readonly (readonly [string, string])[],
): Promise<void> {
  const prepared = PREPARED.exec(await ask(socket, `prepare map ${map}`));
  if (prepared === null) throw new RuntimeError(`HAProxy has no map ${map}`);
  const version = prepared[1];
  for (const payload of payloads(entries)) {
    expectSilence(await ask(socket, `add map @${version} ${map} <<\n${payload}`), map);
  }
  expectSilence(await ask(socket, `commit map @${version} ${map}`), map);
}

function expectSilence(answer: string, map: string): void {
  if (answer.trim() !== '')
    throw new RuntimeError(`HAProxy refuses the map ${map}: ${answer.trim()}`);
}

/** Pieces of a map; an empty line ends each. */
function* payloads(entries: readonly (readonly [string, string])[]): Generator<string> {
  let piece = '';
  for (const entry of entries) {
    const line = mapText([entry]);
    if (piece.length + line.length > COMMAND_BYTES_MAX) {
      yield piece;
      piece = '';
    }
    piece += line;
  }
  if (piece !== '') yield piece;
}

/** One command on a connection of its own, which HAProxy closes when it has answered. */
function ask(path: string, command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    let answer = '';
    socket.setEncoding('utf8').setTimeout(ANSWER_TIMEOUT_MS);
    socket.on('data', (text) => {
      answer += text;
    });
    socket.once('end', () => resolve(answer));
    socket.once('timeout', () => socket.destroy(new Error('it does not answer')));
    socket.once('error', ({ message }) =>
      reject(new RuntimeError(`HAProxy is not reached at ${path}: ${message}`)),
    );
    socket.write(`${command}\n`);
  });
}
