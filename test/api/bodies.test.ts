/** What bodies may be, over HTTP: how much is in them, how they are written, and what large ones are told. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Json, step, useTenant } from '../helpers/api.js';

const tenant = useTenant();

const created = (sequence_id: string, data: string) =>
  `{"tenant_id":"${tenant.name}","namespace":"test","sequence_id":"${sequence_id}","context":{"data":${data}}}`;

async function instancesOf(sequence: string): Promise<number> {
  const list = await tenant.get<Json>(`/instances?sequence_id=${sequence}&limit=1`);
  return (list.body as { items?: unknown[] }).items?.length ?? 0;
}

test('more values and names than a body may have are 413 with the number, and nothing is made', async () => {
  const sequence = await tenant.sequence([step('a', 'noop')]);
  const empties = `[${Array(600_000).fill('[]').join()}]`;
  for (const path of ['/instances', '/instances/batch', '/events/batch', '/sequences']) {
    const body = created(sequence, `{"a":${empties}}`);
    const reply = await tenant.request<Json>('POST', path, { raw: body });
    assert.equal(reply.status, 413, path);
    assert.match(String(reply.body.error), /more than 500000 values and names of members/, path);
  }
  assert.equal(await instancesOf(sequence), 0);
});

test('a large body is refused for the same reasons, in the same words, as a small one', async () => {
  const sequence = await tenant.sequence([step('a', 'noop')]);
  const rows: readonly (readonly [string, (filling: string) => string])[] = [
    ['a repeated name', (filling) => `{"n":1,"f":${filling},"n":2}`],
    ['a number beyond doubles', (filling) => `{"f":${filling},"n":1e999}`],
    ['U+0000', (filling) => `{"f":${filling},"n":"\\u0000"}`],
    ['half of a pair', (filling) => `{"f":${filling},"n":"\\ud800"}`],
    ['depth', (filling) => `{"f":${filling},"n":${'['.repeat(300)}${']'.repeat(300)}}`],
    ['a list', (filling) => `[${filling}]`],
    ['no JSON', (filling) => `{"f":${filling},,}`],
  ];
  const large = JSON.stringify(Array.from({ length: 30_000 }, (_, at) => ({ at })));
  for (const [what, data] of rows) {
    const [small, big] = await Promise.all(
      ['[{"at":0}]', large].map(async (filling) => {
        const reply = await tenant.request<Json>('POST', '/instances', {
          raw: created(sequence, data(filling)),
        });
        return [reply.status, String(reply.body.error).replace(/\d+/g, '#')];
      }),
    );
    assert.equal(small?.[0], 400, what);
    // What JSON.parse shows of a text depends on the text.
    assert.deepEqual(what === 'no JSON' ? big?.[0] : big, what === 'no JSON' ? 400 : small, what);
  }
  assert.equal(await instancesOf(sequence), 0);
});

test('a large body is kept as it came', async () => {
  const sequence = await tenant.sequence([step('a', 'noop')]);
  const data = {
    list: Array.from({ length: 6_000 }, (_, at) => ({ at, text: 'é😀"\\' })),
    names: { 1: [[]], 0: {} },
  };
  assert.ok(JSON.stringify(data).length > 100_000);
  const reply = await tenant.request<Json>('POST', '/instances', {
    raw: created(sequence, JSON.stringify(data)),
  });
  assert.equal(reply.status, 201, JSON.stringify(reply.body));
  const read = await tenant.get<Json>(`/instances/${reply.body.id}`);
  assert.deepEqual((read.body.context as Json).data, data);
});

test('a schema that costs more than it may is 400 and names its field and the number', async () => {
  const properties = Object.fromEntries(
    Array.from({ length: 2_300 }, (_, at) => [`p${at}`, { type: 'string' }]),
  );
  const sequence = (more: Json, of: Json = {}) => ({
    tenant_id: tenant.name,
    namespace: 'test',
    name: 'costly',
    version: 1,
    blocks: [{ ...step('a', 'noop'), ...of }],
    ...more,
  });
  const schema = { type: 'object', properties };
  for (const [field, body] of [
    ['input_schema', sequence({ input_schema: schema })],
    ['output_schema', sequence({}, { output_schema: schema })],
  ] as const) {
    const reply = await tenant.post<Json>('/sequences', body);
    assert.equal(reply.status, 400, field);
    const told = new RegExp(`${field} is too complex: more than 1000 schemas, keywords`);
    assert.match(String(reply.body.error), told);
  }
});
