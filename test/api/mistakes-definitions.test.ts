/** Mistakes of who writes a first definition, and the examples of docs/reference. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Finding } from '../../schema/finding.js';
import {
  GATE_EXAMPLE,
  HANDLER_EXAMPLES,
  HOOKS_EXAMPLE,
  KIND_EXAMPLES,
  type SequenceExample,
  STEP_EXAMPLES,
} from '../../scripts/reference/sequence-examples.js';
import { type Json, step, useTenant } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { playExample, storeOthers, useShop } from '../helpers/examples.js';

const tenant = useTenant();

interface Answer {
  readonly id?: string;
  readonly error?: string;
  readonly errors?: readonly Finding[];
  readonly warnings?: readonly Finding[];
}

const validate = (body: Json, query = '') =>
  tenant.post<Answer>(`/sequences/validate${query}`, body);
const definition = (blocks: readonly Json[], more: Json = {}) => tenant.definition(blocks, more);

const work = (more: Json = {}): Json => step('s', 'charge_card', more);
const params = (handler: string, given: Json): Json[] => [step('s', handler, { params: given })];
const text = (value: string): Json[] => [
  step('fetch', 'fetch_order'),
  work({ params: { text: value } }),
];
const when = (text: string): Json[] => [step('fetch', 'fetch_order'), work({ when: text })];
const retry = (more: Json): Json[] => [work({ retry: { max_attempts: 3, ...more } })];
const forEach = (more: Json): Json => ({
  type: 'for_each',
  id: 'each',
  collection: 'orders',
  body: [work()],
  ...more,
});

/** The blocks, the path, what the message must say, and what was meant. */
const WARNED: readonly [string, Json[], string, RegExp, string?][] = [
  // Members.
  [
    'more time than a call gets',
    params('http_request', { url: 'http://x', timeout_ms: 300_001 }),
    'blocks[0].params.timeout_ms',
    /is 300001, but the server cuts the call off after 300000 ms/,
  ],
  ['retries', [work({ retries: 3 })], 'blocks[0].retries', /no member of a step/, 'retry'],
  [
    'what a loop would refuse',
    [{ type: 'parallel', id: 'p', branches: [[work()]], break_on: 'data.done' }],
    'blocks[0].break_on',
    /^break_on is no member of a parallel block, and is ignored$/,
  ],
  ['timout', [work({ timout: 500 })], 'blocks[0].timout', /is ignored/, 'timeout'],
  [
    'initialBackoff',
    retry({ initialBackoff: 10 }),
    'blocks[0].retry.initialBackoff',
    /no member of retry/,
    'initial_backoff',
  ],
  [
    'maxIterations, deep inside',
    [{ type: 'parallel', id: 'p', branches: [[], [forEach({ maxIterations: 5 })]] }],
    'blocks[0].branches[1][0].maxIterations',
    /no member of a for_each/,
    'max_iterations',
  ],
  [
    'a member of a step in a saga',
    [{ type: 'saga', id: 'g', steps: [{ id: '1', action: work({ timout: 5 }) }] }],
    'blocks[0].steps[0].action.timout',
    /no member of a step/,
    'timeout',
  ],
  [
    'an action that may fail behind what it has done',
    [
      {
        type: 'saga',
        id: 'g',
        steps: [{ id: '1', action: [step('a', 'pay'), work()], compensation: step('u', 'refund') }],
      },
    ],
    'blocks[0].steps[0].action',
    /^when s fails, what a has done is not compensated, since step 1 has not completed/,
  ],
  // Handlers and their parameters.
  ['htp_request', [step('s', 'htp_request')], 'blocks[0].handler', /workers/, 'http_request'],
  ['a level', params('log', { level: 'warning' }), 'blocks[0].params.level', /as info/, 'warn'],
  // Conditions.
  ['length', when('length(items) > 1'), 'blocks[1].when', /no function length/, 'len'],
  ['startsWith', when('startsWith(a, "b")'), 'blocks[1].when', /startsWith/, 'starts_with'],
  ['a misspelt block', when('outputs.fecth.ok'), 'blocks[1].when', /no block fecth/, 'fetch'],
  ['output', when('output.fetch.ok'), 'blocks[1].when', /in context.data/, 'outputs'],
  ['three signs', when('a === b'), 'blocks[1].when', /does not parse/, 'a == b'],
  ['one sign', when('plan = pro'), 'blocks[1].when', /does not parse/, 'plan == pro'],
  ['and', when('a > 1 and b > 1'), 'blocks[1].when', /does not parse/, 'a > 1 && b > 1'],
  ['arithmetic', when('n == m * 2'), 'blocks[1].when', /in parentheses/, '(m * 2)'],
  ['braces', when('{{ data.n }} > 1'), 'blocks[1].when', /does not parse/, 'data.n  > 1'],
  ['a later block', [work({ when: 'outputs.z' }), step('z', 'noop')], 'blocks[0].when', /later/],
  ['the block itself', when('outputs.s.ok'), 'blocks[1].when', /this very block/],
  [
    'an item without data',
    [forEach({ item_var: 'order', body: [work({ when: 'wanted == order.id' })] })],
    'blocks[0].body[0].when',
    /the text "order.id"/,
    'data.order.id',
  ],
  [
    'a collection of a block',
    [step('fetch', 'fetch_orders'), forEach({ collection: 'outputs.fetch.orders' })],
    'blocks[1].collection',
    /in context\.data/,
    '{{ outputs.fetch.orders }}',
  ],
  // Templates.
  ['a misspelt root', text('{{ output.fetch.id }}'), 'blocks[1].params.text', /root/, 'outputs'],
  ['a block as a root', text('{{ fetch.id }}'), 'blocks[1].params.text', /root/, 'outputs.fetch'],
  ['a filter', text('{{ data.a | uper }}'), 'blocks[1].params.text', /not a filter/, 'upper'],
  ['default', text('{{ data.a | default }}'), 'blocks[1].params.text', /needs its arguments/],
  ['a function', text('{{ length(data.a) }}'), 'blocks[1].params.text', /function/, 'len'],
  ['an operator', text('{{ data.a + 1 }}'), 'blocks[1].params.text', /no operators/],
  ['an open brace', text('{{ data.a'), 'blocks[1].params.text', /without }}/],
  [
    'an open brace behind a template',
    text('{{ data.a }} {{ data.b'),
    'blocks[1].params.text',
    /without }}/,
  ],
  ['a block', text('{{ steps.fecth.id }}'), 'blocks[1].params.text', /no block fecth/, 'fetch'],
];

describe('a mistake that does not refuse a definition is a warning', () => {
  for (const [what, blocks, path, says, meant] of WARNED) {
    test(`${what}: ${path}`, async () => {
      const { status, body, text: answer } = await validate(definition(blocks));
      assert.equal(status, 200, answer);
      assert.equal(body.warnings?.length, 1, answer);
      const [warning] = body.warnings;
      assert.equal(warning?.path, path);
      assert.match(warning.message, says);
      assert.equal(warning.suggestion, meant);
      if (meant !== undefined) assert.ok(warning.message.includes(`did you mean ${meant}?`));
    });
  }
});

test('a mistake that refuses a definition names its place, and what was meant', async () => {
  const { status, body, text: answer } = await validate(definition([{ type: 'paralel', id: 'p' }]));
  assert.equal(status, 400, answer);
  assert.equal(body.errors?.find(({ path }) => path === 'blocks[0].type')?.suggestion, 'parallel');
  assert.match(body.error ?? '', /blocks\[0\]\.type .*: paralel; did you mean parallel/);
});

/** Odd, and right. */
const FINE: readonly [string, Json[]][] = [
  ['a handler of a worker', [step('s', 'transform_order'), step('m', 'mail')]],
  ['members that are null', [work({ retries: null, timout: null })]],
  ['any parameters of a worker', [work({ params: { url: 5, duration: 'x' } })]],
  [
    'templates for any parameter',
    params('http_request', {
      url: '{{ data.url }}',
      method: '{{ data.method }}',
      headers: '{{ data.headers }}',
      timeout_ms: '{{ data.ms }}',
    }),
  ],
  ['a method in lower case', params('http_request', { url: 'http://x', method: 'post' })],
  ['a text with spaces', when('state == in progress')],
  ['a fallback in words', text('{{ data.a | nobody }}')],
  ['an earlier block', text('{{ outputs.fetch.id }}')],
  [
    'a block of another branch',
    [{ type: 'parallel', id: 'p', branches: [[work({ when: 'outputs.y' })], [step('y', 'noop')]] }],
  ],
  [
    'a block of an earlier pass',
    [
      {
        type: 'loop',
        id: 'l',
        condition: 'outputs.z.more || outputs.l',
        body: [work({ when: 'outputs.z' }), step('z', 'noop')],
      },
    ],
  ],
];

describe('what is no mistake is no warning', () => {
  for (const [what, blocks] of FINE) {
    test(what, async () => {
      const { status, body, text: answer } = await validate(definition(blocks), '?strict=true');
      assert.equal(status, 200, answer);
      assert.deepEqual(body, { valid: true, warnings: [] });
    });
  }
});

const ODD = [work({ retries: 3, timout: 500 }), step('s2', 'htp_request')];
const ODD_PATHS = ['blocks[0].retries', 'blocks[0].timout', 'blocks[1].handler'];

test('storing a definition returns all warnings and stores it', async () => {
  const reply = await tenant.post<Answer>('/sequences', definition(ODD));
  assert.equal(reply.status, 201, reply.text);
  assert.deepEqual(reply.body.warnings?.map(({ path }) => path).sort(), ODD_PATHS);
  assert.equal((await tenant.get(`/sequences/${reply.body.id}`)).status, 200);
});

test('strict makes warnings a 400 that lists all of them, and stores nothing', async () => {
  const body = definition(ODD, { name: 'strict' });
  for (const path of ['/sequences?strict=true', '/sequences/validate?strict=true']) {
    const reply = await tenant.post<Answer>(path, body);
    assert.equal(reply.status, 400, reply.text);
    assert.deepEqual(reply.body.warnings?.map(({ path: at }) => at).sort(), ODD_PATHS);
    assert.equal(reply.body.errors, undefined);
    assert.match(reply.body.error ?? '', /blocks\[0\]\.retries.* did you mean retry\?/);
  }
  assert.equal((await tenant.post('/sequences?strict=maybe', body)).status, 400);
  assert.equal((await tenant.post('/sequences?strict=false', body)).status, 201);
  const clean = definition([work()], { name: 'clean' });
  assert.equal((await tenant.post('/sequences?strict=true', clean)).status, 201);
});

test('validating stores nothing and ignores what is stored already', async () => {
  const body = definition([work()], { name: 'looked-at' });
  const { namespace, name } = body;
  const found = () => tenant.get<Json[]>(`/sequences/versions?namespace=${namespace}&name=${name}`);
  assert.equal((await validate(body)).status, 200);
  assert.deepEqual((await found()).body, []);
  assert.equal((await tenant.post('/sequences', body)).status, 201);
  assert.equal((await validate(body)).status, 200);
  assert.equal((await validate({ ...body, tenant_id: 'somebody-else' })).status, 403);
});

test('a definition that is rejected gets all its errors at once, of shape and of meaning', async () => {
  const body = definition(
    [
      step('a', 'http_request', { params: { timeout_ms: 'x' }, when: 'length(x)' }),
      step('a', '', { retry: { maxAttempts: 3 } }),
      { type: 'loop', id: 'l', body: [step('b', 'noop', { cache_key: 'k' })] },
      work({ params: { text: '{{ outputs.nothing }}' } }),
    ],
    { version: '1' },
  );
  const { status, body: answer, text: whole } = await validate(body);
  assert.equal(status, 400);
  const paths = (found: readonly Finding[] = []) => found.map(({ path }) => path).sort();
  assert.deepEqual(
    paths(answer.errors),
    [
      'blocks[0].params.timeout_ms',
      'blocks[0].params.url',
      'blocks[1].handler',
      'blocks[1].id',
      'blocks[1].retry.max_attempts',
      'blocks[2].body[0].cache_key',
      'blocks[2].condition',
      'version',
    ],
    whole,
  );
  assert.deepEqual(paths(answer.warnings), [
    'blocks[0].when',
    'blocks[1].retry.maxAttempts',
    'blocks[3].params.text',
  ]);
  const stored = await tenant.post<Answer>('/sequences', body);
  assert.equal(stored.status, 400);
  assert.deepEqual(Object.keys(stored.body), ['error']);
  for (const { path } of answer.errors ?? []) assert.ok(stored.body.error?.includes(path), path);
});

test('of very many mistakes a hundred are told, and how many more there are', async () => {
  const blocks = Array.from({ length: 150 }, (_, i) => step(`s${i}`, 'charge', { timout: 1 }));
  const { body } = await validate(definition(blocks));
  assert.equal(body.warnings?.length, 101);
  assert.deepEqual(body.warnings.at(-1), { path: '', message: 'and 50 more' });
  const wrong = Array.from({ length: 150 }, (_, i) => step(`s${i}`, 'charge', { timeout: -1 }));
  const refused = await validate(definition(wrong));
  assert.equal(refused.body.errors?.length, 101);
  assert.match(refused.body.error ?? '', /timeout must be >= 0; and \d+ more$/);
});

test('hooks and variants are looked at like other blocks', async () => {
  const variants = [
    { name: 'x', weight: 1, blocks: [], wieght: 2 },
    { name: 'y', weight: 1, blocks: [] },
  ];
  const hooks = {
    on_failure: [step('x', 'log', { params: { mesage: '{{ outputs.y }}' } })],
    on_cancel: [step('z', 'noop', { when: 'outputs.x', timout: 1 })],
  };
  const { body } = await validate(definition([{ type: 'ab_split', id: 's', variants }], hooks));
  assert.deepEqual(body.warnings?.map(({ path }) => path).sort(), [
    'blocks[0].variants[0].wieght',
    'on_cancel[0].timout',
    'on_cancel[0].when',
    'on_failure[0].params.mesage',
    'on_failure[0].params.mesage',
  ]);
});

test('blocks that are injected are looked at like a definition', async () => {
  const id = await tenant.run([step('wait', 'charge_card'), step('later', 'noop')]);
  const path = `/instances/${id}/inject-blocks`;
  const known = step('x', 'noop', { when: 'outputs.wait && outputs.latr', timout: 5 });
  const reply = await tenant.post<Answer>(path, { blocks: [known] });
  assert.equal(reply.status, 200, reply.text);
  assert.deepEqual(
    reply.body.warnings?.map(({ path: at, message }) => [at, /latr|timeout/.test(message)]),
    [
      ['blocks[0].timout', true],
      ['blocks[0].when', true],
    ],
  );
  const wrong = [step('y', 'http_request'), step('z', 'noop', { timeout: -1 })];
  const refused = await tenant.post<Answer>(path, { blocks: wrong });
  assert.equal(refused.status, 400);
  assert.match(refused.body.error ?? '', /blocks\[0\]\.params\.url/);
  assert.match(refused.body.error ?? '', /blocks\[1\]\.timeout/);
});

// ---------------------------------------------------------------- the examples of docs/reference

const shopUrl = useShop();
/** Has no tasks but those of the examples. */
const reader = useTenant();

async function run(example: SequenceExample): Promise<void> {
  await storeOthers(reader, example);
  const body = reader.definition(example.blocks as readonly Json[], { ...example.hooks });
  const reply = await reader.post<{ id: string }>('/sequences?strict=true', body);
  await playExample(reader, expectStatus(reply, 201).id, example, shopUrl);
}

test('the example of an approval is stored without a warning and ends as the page says', () =>
  run(GATE_EXAMPLE));
test('the example of hooks is stored without a warning and ends as the page says', () =>
  run(HOOKS_EXAMPLE));

for (const [what, examples] of [
  ['block', KIND_EXAMPLES],
  ['handler', HANDLER_EXAMPLES],
  ['part of a step', STEP_EXAMPLES],
] as const) {
  describe(`the example of each ${what} is stored without a warning and ends as the page says`, () => {
    for (const [name, example] of Object.entries(examples)) test(name, () => run(example));
  });
}
