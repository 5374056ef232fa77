/**
 * Readers of the change feed while threads die: the front's own part with real threads and a real
 * database, a reader in tiny pages, and a stream whose exchange the test holds.
 */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import type { Worker } from 'node:worker_threads';
import type { ShardOperation } from '../../actors/shard/operations.js';
import type { AuditEntry } from '../../schema/instance.js';
import { realClock } from '../../src/clock.js';
import { EngineError } from '../../src/errors.js';
import { Changes } from '../../src/http/operations/changes.js';
import type { FrontDeps } from '../../src/http/operations/operation.js';
import type { HttpBodyStream, HttpExchange } from '../../src/http/server.js';
import { createLogger } from '../../src/log.js';
import { eventually, type Json } from '../helpers/api.js';
import { assertSame } from '../helpers/changes.js';
import { frontCall } from '../helpers/front-call.js';
import { startThreadEngine, type ThreadEngine } from '../helpers/thread-engine.js';

const TENANT = 'changes';
const SHARDS = 3;

let engine: ThreadEngine;
let client: ThreadEngine['client'];
let supervisor: ThreadEngine['supervisor'];
let sql: ThreadEngine['sql'];
let front: FrontDeps;
let changes: Changes;
let sequence: string;

before(async () => {
  engine = await startThreadEngine({
    shards: SHARDS,
    lanes: 3,
    tenant: TENANT,
    hooks: { stampsFrom: () => changes?.watermark.highest ?? 0 },
  });
  ({ client, supervisor, sql } = engine);
  const log = createLogger('silent', 'test');
  changes = new Changes({ client, shards: SHARDS, clock: realClock, now: Date.now, log });
  front = engine.front();
  sequence = await engine.store('s', [{ type: 'step', id: 'a', handler: 'changes.nobody' }]);
});

after(async () => {
  changes?.close();
  await engine?.stop();
});

const ask = (operation: ShardOperation, target: string, body: Json): Promise<Json> =>
  engine.ask(operation, target, body);

/** What a thread that dies leaves unanswered is no failure. */
async function attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    assert.ok(error instanceof EngineError && error.status === 503, String(error));
    // Whoever gets a 503 waits before asking again.
    await new Promise((resolve) => setTimeout(resolve, 5));
    return undefined;
  }
}

/** Reads on where it was, in pages of five. */
class Pages {
  readonly seen: AuditEntry[] = [];
  #cursor = '';

  /** @returns whether it came to the end */
  async next(): Promise<boolean> {
    const { body } = await changes.operations['changes.list'](
      front,
      frontCall('changes.list', { tenant: TENANT, search: `limit=5&cursor=${this.#cursor}` }),
    );
    const page = JSON.parse(String(body));
    this.seen.push(...page.changes);
    this.#cursor = page.next_cursor ?? this.#cursor;
    return !page.has_more;
  }
}

/** A client of the stream that reads everything at once. */
function held(): HttpExchange & { events(): AuditEntry[]; isOpen(): boolean } {
  let text = '';
  const stream: HttpBodyStream = {
    write: (chunk) => {
      text += String(chunk);
      return true;
    },
    onDrain: () => undefined,
    end: () => undefined,
  };
  return {
    aborted: false,
    onAbort: () => undefined,
    reply: () => assert.fail('the stream had begun'),
    stream: () => stream,
    isOpen: () => text.startsWith(':'),
    events: () =>
      [...text.matchAll(/^event: change\ndata: (.*)$/gm)].map(
        ([, data]) => JSON.parse(String(data)) as AuditEntry,
      ),
  };
}

/** As the rows have it, without the product's own reads. */
async function auditOfAll(): Promise<string[]> {
  const { rows } = await sql.query(
    `select created_at, entry ->> 'id' as id from (
       select created_at, json_array_elements(entries) as entry from audit_log
       union all select created_at, json_array_elements(creation_audit) from instances) entries
     order by created_at, (entry ->> 'id')::uuid`,
  );
  return rows.map(({ id }) => String(id));
}

const idsOf = (entries: readonly AuditEntry[]) => entries.map(({ id }) => id);

test('nothing is skipped or given twice while shards and the writer are killed', async () => {
  const pages = new Pages();
  const stream = held();
  const call = frontCall('changes.stream', { tenant: TENANT });
  (await changes.operations['changes.stream'](front, call))(stream);
  await eventually(() => assert.ok(stream.isOpen()));
  let isOver = false;
  const callers = Array.from({ length: 8 }, async () => {
    const body = engine.creation(sequence);
    while (!isOver) {
      await attempt(async () => {
        const { id } = await ask('instances.create', '', body);
        for (const signal_type of ['pause', 'resume', 'cancel']) {
          await ask('instances.signal', String(id), { signal_type });
        }
      });
    }
  });
  const reader = (async () => {
    while (!isOver) await attempt(() => pages.next());
  })();
  const kill = async (pick: 'writer' | number) => {
    const seen = pages.seen.length;
    await eventually(() => assert.ok(pages.seen.length > seen + 60));
    const thread = await eventually(async () => {
      const { writer, shards } = await supervisor.threads();
      return pick === 'writer' ? writer : (shards[pick] as Worker);
    });
    const ended = once(thread, 'exit');
    await thread.terminate();
    await ended;
  };
  for (const pick of [1, 0, 'writer', 2] as const) await kill(pick);
  const seen = pages.seen.length;
  await eventually(() => assert.ok(pages.seen.length > seen + 60));
  isOver = true;
  await Promise.all([...callers, reader]);
  let expected: string[] = [];
  // Instances whose callers got no answer go on by themselves for a moment.
  await eventually(async () => {
    expected = await auditOfAll();
    while ((await attempt(() => pages.next())) !== true);
    assert.equal(pages.seen.length, expected.length);
    assert.equal(stream.events().length, expected.length);
  });
  assert.deepEqual(idsOf(pages.seen), expected);
  assertSame(stream.events(), pages.seen);
});
