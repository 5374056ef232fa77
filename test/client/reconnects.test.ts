/** Connections that break while something is followed: it goes on, and nothing is told twice. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client, EngineError } from '../../client/src/index.js';
import { taken } from '../helpers/event-stream.js';
import { type Answer, refusal, scripted } from '../helpers/scripted-server.js';

const frames =
  (...texts: readonly string[]): Answer =>
  (response) => {
    response.writeHead(200, { 'x-request-id': 'r', 'content-type': 'text/event-stream' });
    response.write(texts.join(''));
    setTimeout(() => response.destroy(), 20);
  };
const event = (name: string, data: object, id?: string) =>
  `${id === undefined ? '' : `id: ${id}\n`}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;

test('an instance whose stream breaks is followed on, and nothing is told twice', async () => {
  const running = event('state', { state: 'running' });
  const one = event('output', { id: 'o-1', block_id: 'one', output: 1 });
  const two = event('output', { id: 'o-2', block_id: 'two', output: 2 });
  const done = event('done', { state: 'completed' });
  const stopping = refusal(503, 'ENG_STOPPING', 'the engine is stopping', '0');
  const server = await scripted(
    frames(running, one),
    stopping,
    frames(running, one.slice(0, 20)),
    frames(running, one, two, event('state', { state: 'completed' }), done),
  );
  const client = new Client({ url: server.url, retries: 0 });
  const events = await taken(client.instances.follow('i-1'));
  assert.deepEqual(
    events.map((told) => (told.type === 'output' ? told.output.id : `${told.type} ${told.state}`)),
    ['state running', 'o-1', 'o-2', 'state completed', 'done completed'],
  );
  assert.equal(server.asked.length, 4);
});

test('changes go on behind the last id, also where it came without a change', async () => {
  const server = await scripted(
    frames(': from here\nid: c-0\n\n'),
    frames(event('change', { id: 'a' }, 'c-1'), event('change', { id: 'b' }, 'c-2')),
    frames(event('change', { id: 'c' }, 'c-3')),
  );
  const client = new Client({ url: server.url });
  const changes = await taken(client.changes.follow(), 3);
  const found = changes.map(({ id, cursor }) => `${id} ${cursor}`);
  assert.deepEqual(found, ['a c-1', 'b c-2', 'c c-3']);
  const cursors = server.asked.map((it) => new URL(it.path, server.url).searchParams.get('cursor'));
  assert.deepEqual(cursors, [null, 'c-0', 'c-2']);
});

test('who never got through is told, and so is who may not any more', async () => {
  const never = await scripted(refusal(503, 'ENG_STARTING', 'the engine is starting', '0'));
  const client = new Client({ url: never.url, retries: 1 });
  await assert.rejects(taken(client.instances.follow('i-1')), { code: 'ENG_STARTING' });
  assert.equal(never.asked.length, 2);
  const revoked = await scripted(
    frames(': from here\nid: c-0\n\n', event('change', { id: 'a' }, 'c-1')),
    refusal(401, 'ENG_UNAUTHENTICATED', 'unauthenticated'),
  );
  const following = taken(new Client({ url: revoked.url }).changes.follow());
  await assert.rejects(following, (error) => error instanceof EngineError && error.status === 401);
});

test('events are read however they are cut into pieces', async () => {
  const text =
    event('state', { state: 'waiting', note: 'grün' }) + event('done', { state: 'completed' });
  const bytes = Buffer.from(text.replaceAll('\n', '\r\n'));
  const server = await scripted((response) => {
    response.writeHead(200, { 'x-request-id': 'r', 'content-type': 'text/event-stream' });
    let at = 0;
    const next = () => {
      response.write(bytes.subarray(at, at + 1));
      at += 1;
      if (at < bytes.length) setImmediate(next);
      else response.end();
    };
    next();
  });
  const seen = await taken(new Client({ url: server.url }).instances.stream('i-1'));
  assert.deepEqual(
    seen.map(({ event: name, data }) => [name, JSON.parse(data)]),
    [
      ['state', { state: 'waiting', note: 'grün' }],
      ['done', { state: 'completed' }],
    ],
  );
});
