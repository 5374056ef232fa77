/**
 * Streams of instances while threads and the database fail, and a client that does not read: the
 * front's own part with real threads and a real database, and exchanges that the test holds.
 */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import type { Worker } from 'node:worker_threads';
import { openInstanceStreams } from '../../actors/feed/front/instance-stream.js';
import { EngineError } from '../../src/base/errors.js';
import { createLogger } from '../../src/base/log.js';
import type { FrontDeps } from '../../src/http/operation.js';
import type { HttpBodyStream, HttpExchange } from '../../src/http/server.js';
import { eventually, type Json } from '../helpers/api.js';
import { frontCall } from '../helpers/front-call.js';
import { persist, startThreadEngine, type ThreadEngine } from '../helpers/thread-engine.js';

const TENANT = 'streams';
const SHARDS = 3;

let engine: ThreadEngine;
let client: ThreadEngine['client'];
let supervisor: ThreadEngine['supervisor'];
let sql: ThreadEngine['sql'];
let front: FrontDeps;
let opened: ReturnType<typeof openInstanceStreams>;

before(async () => {
  engine = await startThreadEngine({ shards: SHARDS, lanes: 3, tenant: TENANT });
  ({ client, supervisor, sql } = engine);
  front = engine.front();
  opened = openInstanceStreams({ client, log: createLogger('silent', 'test') });
});

after(async () => {
  opened?.streams.close();
  await engine?.stop();
});

// ---------------------------------------------------------------- the engine

const ask = <T = Json>(operation: string, target: string, body?: Json): Promise<T> =>
  engine.ask(operation, target, body);

async function create(blocks: readonly Json[], data: Json = {}): Promise<string> {
  const sequence = await engine.store(`s-${Math.random()}`, blocks);
  const { id } = await ask('instances.create', '', {
    ...engine.creation(sequence),
    context: { data },
  });
  return id as string;
}

const external = (id: string) => ({ type: 'step', id, handler: `streams.${id}` });
const transform = (id: string, params: Json) => {
  return { type: 'step', id, handler: 'transform', params };
};

/** Completes the one task of the handler of `external(id)`. */
async function complete(id: string): Promise<void> {
  const poll = { handler_name: `streams.${id}`, worker_id: 'w', wait_ms: 10_000 };
  const [task] = await persist(() => ask<Json[]>('workers.poll', '', poll));
  const body = { worker_id: 'w', claim_epoch: task?.claim_epoch, output: { of: id } };
  await ask('workers.complete', task?.id as string, body);
}

// ---------------------------------------------------------------- the client

interface Held extends HttpExchange {
  /** Everything that was written. */
  text(): string;
  /** The events as `name data`. */
  events(): string[];
  /** False: each write says that the client is behind. */
  reads: boolean;
  drain(): void;
  leave(): void;
  isEnded: boolean;
}

function exchange(): Held {
  let text = '';
  let onDrain: () => void = () => undefined;
  const leavers: (() => void)[] = [];
  const held: Held = {
    aborted: false,
    reads: true,
    isEnded: false,
    onAbort: (listener) => void leavers.push(listener),
    reply: () => assert.fail('the stream had begun'),
    stream: (): HttpBodyStream => ({
      write: (chunk) => {
        text += String(chunk);
        return held.reads;
      },
      onDrain: (listener) => {
        onDrain = listener;
      },
      end: () => {
        held.isEnded = true;
      },
    }),
    text: () => text,
    events: () =>
      [...text.matchAll(/^event: (\w+)\ndata: (.*)$/gm)].map(([, name, data]) => `${name} ${data}`),
    drain: () => onDrain(),
    leave: () => {
      for (const leaver of leavers) leaver();
    },
  };
  return held;
}

const streamOf = (deps: FrontDeps, id: string, search: string) =>
  opened.operations['instances.stream'](
    deps,
    frontCall('instances.stream', { tenant: TENANT, params: { id }, search }),
  );

async function open(id: string, held = exchange()): Promise<Held> {
  const feed = await streamOf(front, id, 'poll_ms=100');
  feed(held);
  return held;
}

const until = (held: Held, what: RegExp) => eventually(() => assert.match(held.text(), what));

/** The blocks of the outputs that were told, in order. */
const told = (held: Held) =>
  held
    .events()
    .filter((event) => event.startsWith('output '))
    .map((event) => (JSON.parse(event.slice('output '.length)) as Json).block_id);

// ---------------------------------------------------------------- streams of instances

test('a stream outlives the shard of its instance, and the writer', async () => {
  const id = await create([external('a1'), external('a2')]);
  const held = await open(id);
  await until(held, /"state":"waiting"/);
  const { shards } = await supervisor.threads();
  const thread = shards[client.shardOf(id)] as Worker;
  const ended = once(thread, 'exit');
  await thread.terminate();
  await ended;
  await persist(() => ask('instances.get', id));
  await complete('a1');
  await until(held, /a1/);
  await (await eventually(() => supervisor.threads())).writer.terminate();
  await persist(() => complete('a2'));
  await until(held, /event: done\ndata: \{"state":"completed"\}\n\n$/);
  assert.deepEqual(told(held), ['a1', 'a2']);
  assert.ok(held.isEnded);
});

test('a stream whose reads fail tells everything once they work again', async () => {
  const id = await create([transform('c1', { x: 1 }), external('c2')]);
  let isAway = true;
  const batch: FrontDeps['reads']['batch'] = async (request) => {
    if (isAway) throw new EngineError('ENG_DATABASE_DOWN', 'away');
    return front.reads.batch(request);
  };
  const broken = { ...front, reads: { batch } };
  const held = exchange();
  (await streamOf(broken as unknown as FrontDeps, id, ''))(held);
  await complete('c2');
  isAway = false;
  await until(held, /event: done/);
  assert.deepEqual(told(held), ['c1', 'c2']);
});

test('a stream ends with an error when the row of its instance is gone', async () => {
  const id = await create([external('d1')]);
  const held = await open(id);
  await until(held, /"state":"waiting"/);
  await sql.query('delete from instances where id = $1', [id]);
  const { shards } = await supervisor.threads();
  await (shards[client.shardOf(id)] as Worker).terminate();
  await until(held, /event: error\ndata: \{"error":"not found: [^"]+"\}\n\n$/);
  assert.ok(held.isEnded);
});

test('a client that does not read holds one batch, and gets the rest when it reads on', async () => {
  const body = [transform('t', { text: 'z'.repeat(50_000) })];
  const loop = { type: 'loop', id: 'l', condition: 'go', max_iterations: 60, body };
  const id = await create([loop, external('e1')], { go: true });
  const held = exchange();
  held.reads = false;
  await open(id, held);
  await until(held, /event: state/);
  // The stream is behind from its first event on: nothing more is written before it drains.
  let writes = held.events().length;
  assert.equal(writes, 1);
  let drains = 0;
  while (told(held).filter((block) => block === 't').length < 60) {
    held.drain();
    drains += 1;
    await eventually(() => assert.ok(held.events().length > writes));
    writes = held.events().length;
  }
  assert.ok(drains > 10, String(drains));
  held.reads = true;
  held.drain();
  await complete('e1');
  await until(held, /event: done/);
  assert.equal(told(held).length, 121);
  assert.equal(told(held).at(-1), 'e1');
});

test('a client that leaves, and the end of the engine, release everything', async () => {
  const id = await create([external('f1')]);
  const [left, stopped, blocked] = [await open(id), await open(id), exchange()];
  blocked.reads = false;
  await open(id, blocked);
  for (const held of [left, stopped, blocked]) await until(held, /event: state/);
  await eventually(() => assert.ok(client.inFlight >= 2));
  left.leave();
  await eventually(() => assert.ok(left.isEnded));
  opened.streams.close();
  await eventually(() => assert.ok(stopped.isEnded && blocked.isEnded));
  await eventually(() => assert.equal(client.inFlight, 0));
  assert.doesNotMatch(stopped.text(), /done|error/);
});
