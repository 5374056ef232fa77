/** Definitions that are refused: 400 that names what is wrong, and nothing is stored. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Json, step, useSharedApi } from '../helpers/api.js';

const api = useSharedApi();
const tenant = api.tenant();

const noop = (id = 'x'): Json => step(id, 'noop');
const definition = (more: Json): Json => ({
  tenant_id: tenant.name,
  namespace: 'test',
  name: 'refused',
  version: 1,
  blocks: [noop()],
  ...more,
});
const CHOICE = { label: 'A', value: 'a' };
const inStep = (more: Json): Json => ({ blocks: [step('x', 'noop', more)] });
const retry = (more: Json): Json => inStep({ retry: { max_attempts: 2, ...more } });
const loop = (more: Json): Json => ({
  blocks: [{ type: 'loop', id: 'l', condition: 'a', body: [noop()], ...more }],
});
const forEach = (more: Json): Json => ({
  blocks: [{ type: 'for_each', id: 'f', collection: 'a', body: [noop()], ...more }],
});

function nested(depth: number): Json {
  let block = noop();
  for (let level = 1; level < depth; level++) {
    block = { type: 'parallel', id: `p${level}`, branches: [[block]] };
  }
  return { blocks: [block] };
}

const many = (count: number) => Array.from({ length: count }, (_, index) => noop(`s${index}`));
const branches = (count: number) =>
  Array.from({ length: count }, (_, index) => [noop(`b${index}`)]);

/** What is wrong, the definition's difference from a right one, and what the answer must say. */
const REFUSED: readonly [string, Json, RegExp][] = [
  ['no tenant', { tenant_id: undefined }, /tenant_id is required/],
  ['no namespace', { namespace: undefined }, /namespace is required/],
  ['a blank namespace', { namespace: ' ' }, /namespace must not be blank/],
  ['no name', { name: undefined }, /name is required/],
  ['a name that is a number', { name: 1 }, /name must be a string/],
  ['a name of 256 characters', { name: 'x'.repeat(256) }, /name must have at most 255/],
  ['no version', { version: undefined }, /version is required/],
  ['a version that is a fraction', { version: 1.5 }, /version must be an integer/],
  ['a version of 33 bits', { version: 2 ** 32 }, /version must be <= 2147483647/],
  ['a bad id', { id: 'x' }, /id must be a UUID/],
  ['a bad created_at', { created_at: 'yesterday' }, /created_at/],
  ['an unknown status', { status: 'live' }, /status must be one of draft/],
  ['no blocks', { blocks: undefined }, /blocks is required/],
  ['an empty list of blocks', { blocks: [] }, /blocks must not be empty/],
  ['blocks that are no list', { blocks: {} }, /blocks must be an array/],
  ['a block that is null', { blocks: [null] }, /blocks\[0\]/],
  ['a block without type', { blocks: [{ id: 'x' }] }, /blocks\[0\]\.type/],
  ['an unknown block type', { blocks: [{ type: 'magic', id: 'x' }] }, /unknown block type: magic/],
  ['a block without id', { blocks: [{ type: 'step', handler: 'noop' }] }, /id is required/],
  ['an empty block id', { blocks: [noop('')] }, /blocks\[0\]\.id/],
  ['a block id that pollutes', { blocks: [noop('__proto__')] }, /must not be __proto__/],
  ['equal block ids', { blocks: [noop('a'), noop('a')] }, /a/],
  [
    'equal block ids at different depths',
    { blocks: [noop('a'), { type: 'parallel', id: 'p', branches: [[noop('a')]] }] },
    /a/,
  ],
  ['a step without handler', { blocks: [{ type: 'step', id: 'x' }] }, /handler is required/],
  ['an empty handler', { blocks: [step('x', '')] }, /handler must not be blank/],
  ['params that are a list', inStep({ params: [] }), /params must be an object/],
  ['a timeout that is a fraction', inStep({ timeout: 0.5 }), /timeout must be an integer/],
  ['a negative timeout', inStep({ timeout: -1 }), /timeout must be >= 0/],
  ['a delay that is a number', inStep({ delay: 5 }), /delay must be an object/],
  ['a fractional delay', inStep({ delay: { duration: 0.2 } }), /duration must be an integer/],
  ['a negative jitter', inStep({ delay: { duration: 1, jitter: -1 } }), /jitter must be >= 0/],
  ['no max_attempts', inStep({ retry: {} }), /max_attempts is required/],
  ['max_attempts 0', retry({ max_attempts: 0 }), /max_attempts must be > 0/],
  ['a multiplier of 0', retry({ backoff_multiplier: 0 }), /backoff_multiplier must be > 0/],
  ['initial over max', retry({ initial_backoff: 9, max_backoff: 1 }), /initial_backoff/],
  ['a blank retry_if', retry({ retry_if: ' ' }), /retry_if must not be blank/],
  ['a blank code', retry({ non_retryable_codes: [''] }), /non_retryable_codes\[0\]/],
  ['no branches', { blocks: [{ type: 'parallel', id: 'p' }] }, /branches is required/],
  ['0 branches', { blocks: [{ type: 'race', id: 'p', branches: [] }] }, /branches must not be/],
  [
    '257 branches',
    { blocks: [{ type: 'parallel', id: 'p', branches: branches(257) }] },
    /branches must have at most 256/,
  ],
  [
    'unknown race semantics',
    { blocks: [{ type: 'race', id: 'r', branches: [[]], semantics: 'fastest' }] },
    /semantics must be one of first_to_resolve, first_to_succeed/,
  ],
  ['a router with nothing', { blocks: [{ type: 'router', id: 'r' }] }, /at least one route/],
  [
    'a route with a blank condition',
    { blocks: [{ type: 'router', id: 'r', routes: [{ condition: ' ', blocks: [] }] }] },
    /condition must not be blank/,
  ],
  [
    'an empty try_block',
    { blocks: [{ type: 'try_catch', id: 't', try_block: [], catch_block: [] }] },
    /try_block must not be empty/,
  ],
  [
    'no catch_block',
    { blocks: [{ type: 'try_catch', id: 't', try_block: [noop()] }] },
    /catch_block is required/,
  ],
  ['a loop without condition', loop({ condition: undefined }), /condition is required/],
  ['a loop with an empty body', loop({ body: [] }), /body must not be empty/],
  ['max_iterations 0', loop({ max_iterations: 0 }), /max_iterations must be > 0/],
  ['max_iterations 100,001', loop({ max_iterations: 100_001 }), /max_iterations must be <= 100000/],
  ['a for_each without collection', forEach({ collection: undefined }), /collection is required/],
  ['a blank item_var', forEach({ item_var: '' }), /item_var must not be blank/],
  ['an item_var that pollutes', forEach({ item_var: '__proto__' }), /must not be __proto__/],
  ['an index_var that pollutes', forEach({ index_var: '__proto__' }), /must not be __proto__/],
  [
    'an index_var that is the item_var',
    forEach({ item_var: 'x', index_var: 'x' }),
    /blocks\[0\]\.index_var.*index_var x is the name of the item/,
  ],
  ['concurrency 0', forEach({ concurrency: 0 }), /concurrency must be >= 1/],
  ['concurrency 257', forEach({ concurrency: 257 }), /concurrency must be <= 256/],
  ['concurrency 1.5', forEach({ concurrency: 1.5 }), /concurrency must be/],
  [
    'concurrency that multiplies its blocks',
    forEach({ concurrency: 256, body: many(90) }),
    /for_each f: with its concurrency the sequence has more than 20000 blocks/,
  ],
  ['65 levels', nested(65), /64/],
  ['5,001 blocks', { blocks: many(5_001) }, /5,?000/],
  ['an input_schema that is a list', { input_schema: [] }, /input_schema must be an object/],
  ['an input_schema that is none', { input_schema: { type: 'nothing' } }, /input_schema/],
  ['an output_schema with pattern', inStep({ output_schema: { pattern: '^(a+)+$' } }), /pattern/],
  ['a gate without choices', inStep({ wait_for_input: { choices: [] } }), /choices must/],
  [
    'a gate that offers one value twice',
    inStep({ wait_for_input: { choices: [CHOICE, { label: 'Else', value: 'a' }] } }),
    /choices must not have the value a twice/,
  ],
  [
    'a choice without a value',
    inStep({ wait_for_input: { choices: [{ label: 'A' }] } }),
    /value is required/,
  ],
  ['a gate whose value has no name', inStep({ wait_for_input: { store_as: ' ' } }), /store_as/],
  ['a gate that waits for half a ms', inStep({ wait_for_input: { timeout: 0.5 } }), /timeout/],
];

for (const [what, more, says] of REFUSED) {
  test(`a definition with ${what} is 400 and not stored`, async () => {
    const reply = await tenant.post<{ error: string }>('/sequences', definition(more));
    assert.equal(reply.status, 400, reply.text);
    assert.match(reply.body.error, says);
    assert.deepEqual((await tenant.get('/sequences')).body, []);
  });
}

test('what is exactly at its limit is stored', async () => {
  const accepted: Json[] = [
    nested(64),
    { blocks: many(5_000) },
    { blocks: [{ type: 'parallel', id: 'p', branches: branches(256) }] },
    { ...loop({ max_iterations: 100_000 }) },
    { name: 'x'.repeat(255) },
    { blocks: [{ type: 'race', id: 'r', branches: [[]] }] },
    { blocks: [{ type: 'try_catch', id: 't', try_block: [noop()], catch_block: [] }] },
    { blocks: [{ type: 'router', id: 'r', default: [] }] },
    { version: -1 },
  ];
  const other = api.tenant();
  for (const [index, more] of accepted.entries()) {
    const body = { ...definition({ name: `ok-${index}`, ...more }), tenant_id: other.name };
    const reply = await other.post('/sequences', body);
    assert.equal(reply.status, 201, reply.text);
  }
});

test('null means absent in every optional field', async () => {
  const other = api.tenant();
  const nothing = { params: null, delay: null, retry: null, timeout: null, queue_name: null };
  await other.until(
    await other.run([step('x', 'noop', nothing)], { priority: null, context: null }),
    'completed',
  );
});
