/**
 * One hostile table (hostile.json) through the ways in and out: nothing of it is lost, changed, or ends anything, and
 * all refuse alike what cannot be kept. The Python client and the dashboard are tried where they are.
 *
 * Cost: 8 s, since each of its commands is a process.
 */

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { Client, type EngineError, type TaskContext } from '../../client/src/index.js';
import type { TaskInstance } from '../../schema/instance.js';
import type { TaskOutcome } from '../../schema/worker.js';
import { beforeWith, newHandler, step, useSharedApi, WORKER } from '../helpers/api.js';
import { cliWorld } from '../helpers/cli.js';
import { column } from '../helpers/columns.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';
import { HOSTILE, whole } from '../helpers/hostile.js';
import { useReceiver } from '../helpers/receiver.js';
import { runWorker } from '../helpers/workers.js';

const api = useSharedApi();
const tenant = api.tenant();
const receiver = useReceiver();
const cli = cliWorld(() => ({ url: api.url, tenant: tenant.name }));
const KEPT = { ...HOSTILE.kept, long: '🦁'.repeat(9_000) };
const LINES = Object.values(HOSTILE.kept)
  .flat()
  .filter((it) => typeof it === 'string');
const place = { tenant_id: tenant.name, namespace: 'test' };
const [first, work] = [newHandler(), newHandler()];
let client: Client;
let reported: string;

beforeWith(api, async () => {
  client = new Client({ url: api.url, apiKey: DEFAULT_API_KEY, tenant: tenant.name });
  const last = step('last', work, { params: { it: '{{ data.kept }}' } });
  await tenant.sequence([last], { name: 'begun' });
  reported = await tenant.sequence([step('first', first), last]);
  await client.webhooks.subscribe({ url: receiver.url('/ends') });
});

const handlers = {
  [work]: ({ params }: { readonly params: unknown }, { log }: TaskContext) => {
    for (const line of LINES) log.info(line);
    return { echoed: (params as { it: unknown }).it };
  },
};

/** What a way in has made of a text of JSON: the value as it is read back, or the refusal. */
type Came = { readonly back: unknown } | { readonly told: string };
type Answer = { readonly id?: string; readonly error?: string; readonly outcomes?: TaskOutcome[] };

async function post(route: string, raw: string, back: (id?: string) => unknown): Promise<Came> {
  const headers = { 'content-type': 'application/json' };
  const { status, body } = await tenant.request<Answer>('POST', route, { raw, headers });
  // An exchange judges each result for itself.
  const judged = body.outcomes?.[0] ?? { status, ...body };
  if (judged.status < 300) return { back: await back(body.id) };
  assert.equal(judged.status, 400);
  return { told: judged.error ?? '' };
}

async function command(
  args: readonly string[],
  back: (out: string) => unknown,
  input = '',
): Promise<Came> {
  const { code, out, err } = await cli.run(args, { input });
  if (code === 0) return { back: await back(out) };
  assert.equal(code, 2, err);
  return { told: err };
}

const startedWith = (data: string, input?: string) => {
  const start = ['instances', 'start', 'begun', '--namespace', 'test', '--data', data];
  return command(start, (out) => readBack(out.trim()), input);
};

function file(text: string): string {
  const at = path.join(cli.home, 'given.json');
  writeFileSync(at, text);
  return at;
}

async function storedAs(name: string): Promise<unknown> {
  const [{ blocks = [] } = assert.fail()] = (await client.sequences.list({ name })).items;
  return (blocks[0] as { params?: { kept: unknown } }).params?.kept;
}

const definition = (name: string, kept: string) => {
  const text = JSON.stringify({ ...place, name, version: 1, blocks: [step('a', work)] });
  return text.replace(/}]}$/, () => `,"params":{"kept":${kept}}}]}`);
};

const WAYS_IN: Readonly<Record<string, (kept: string) => Promise<Came>>> = {
  'POST /instances': (kept) => {
    const begun = JSON.stringify({ ...place, sequence: 'begun' }).slice(1);
    const given = `{"metadata":{"kept":${kept}},"context":{"data":{"kept":${kept}}},${begun}`;
    return post('/instances', given, readBack);
  },
  'POST /workers/tasks/exchange': async (kept) => {
    const id = await tenant.create(reported);
    const { id: task_id, claim_epoch } = await tenant.task(first);
    const result = JSON.stringify({ kind: 'complete', task_id, claim_epoch }).slice(1);
    const given = `{"worker_id":"${WORKER}","results":[{"output":{"kept":${kept}},${result}]}`;
    return post('/workers/tasks/exchange', given, () => readBack(id));
  },
  'POST /sequences': (kept) =>
    post('/sequences', definition('posted', kept), () => storedAs('posted')),
  'the client for TypeScript': async (kept) => {
    try {
      const context = { data: { kept: JSON.parse(kept) } };
      const { id } = await client.instances.create({ ...place, sequence: 'begun', context });
      return { back: await readBack(id) };
    } catch (error) {
      assert.ok(error instanceof TypeError || (error as EngineError).status === 400, String(error));
      return { told: (error as Error).message };
    }
  },
  'instances start --data': (kept) => startedWith(`{"kept":${kept}}`),
  'instances start --data @file': (kept) => startedWith(`@${file(`{"kept":${kept}}`)}`),
  'instances start --data -': (kept) => startedWith('-', `{"kept":${kept}}`),
  'sequences apply': (kept) => {
    const apply = ['sequences', 'apply', file(definition('applied', kept))];
    return command(apply, () => storedAs('applied'));
  },
  'POST /instances/{id}/signals': async (kept) => {
    const id = await tenant.create(reported);
    const given = `{"signal_type":"update_context","payload":{"kept":${kept}}}`;
    return post(`/instances/${id}/signals`, given, async () => {
      await tenant.complete(await tenant.task(first));
      return readBack(id);
    });
  },
};

/** Of an instance that has ended, by every way out, all of which tell the same. */
async function readBack(id = ''): Promise<unknown> {
  const instance = await tenant.until(id, 'completed');
  const { kept, echoed } = instance.context.data as { kept: unknown; echoed: unknown };
  const listed = (await client.instances.list({ limit: 1_000 })).items;
  for (const told of [
    await client.instances.get(id),
    listed.find((one) => one.id === id),
    await cli.json<TaskInstance>(['instances', 'get', id]),
  ]) {
    assert.deepEqual(told, instance);
  }
  assert.deepEqual([echoed, (await tenant.outputsOf(id)).last], [kept, { echoed: kept }]);
  assert.deepEqual(column((await client.instances.logs(id)).items, 'message'), LINES);
  const [arrival] = await receiver.until(id, 1);
  assert.deepEqual(arrival?.body.metadata, instance.metadata);
  return kept;
}

/** Of what a way in could have stored. */
const COUNTS = `select (select count(*) from sequences where tenant_id = $1) as sequences,
  (select count(*) from instances where tenant_id = $1 and data::text like '%kept%') as instances`;

for (const [way, give] of Object.entries(WAYS_IN)) {
  test(`every storable value comes back unchanged: ${way}`, async (t) => {
    await runWorker(t, { url: api.url, tenant: tenant.name }, { handlers });
    assert.deepEqual(await give(JSON.stringify(KEPT)), { back: KEPT });
  });

  test(`a value that cannot be stored is refused with the same message and its place: ${way}`, async () => {
    const before = await api.sql.query(COUNTS, [tenant.name]);
    for (const { json, told, is_text } of HOSTILE.refused) {
      if (is_text && way === 'the client for TypeScript') continue;
      const came = await give(whole(json));
      const words = new RegExp(`${told}.* is not accepted, at .*kept`);
      assert.match('told' in came ? came.told : JSON.stringify(came), words);
    }
    assert.deepEqual((await api.sql.query(COUNTS, [tenant.name])).rows, before.rows);
  });
}
