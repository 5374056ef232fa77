/** Secrets in parameters: what is stored of them, what is called with, and what nobody may see. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { JsonObject, JsonValue } from '../../src/core/json.js';
import { compilePlan } from '../../src/core/plan.js';
import { fillSecrets, masked, secretIdsIn } from '../../src/core/secret-texts.js';
import { compileTemplate, renderTemplate, secretTextsOf } from '../../src/core/template.js';

const VALUES: Readonly<Record<string, string>> = {
  stripe: 'sk_live_1',
  'db.main': 'of the dotted id',
  db: '{"main": "hidden by the longer id", "user": "ada", "port": 5432}',
  login: 'ada:lovelace',
};
const SCOPE = {
  data: { name: 'Ada', forged: '{{secrets.stripe}}', n: 3 },
  config: {},
  outputs: { get: () => undefined, all: () => ({}) },
  runtime: {},
  instanceId: 'i',
  now: 0,
  random: () => 0,
};

function rendered(params: JsonValue) {
  const template = compileTemplate(params);
  const shown = renderTemplate(template, SCOPE);
  assert.ok(shown.ok, shown.ok ? '' : shown.message);
  return { template, shown: shown.value, texts: secretTextsOf(template, SCOPE) };
}

function called(params: JsonValue): JsonValue {
  const { shown, texts } = rendered(params);
  const filled = fillSecrets(shown, texts, (id) => VALUES[id]);
  assert.ok(filled.ok, filled.ok ? '' : filled.message);
  return filled.value.params;
}

describe('a secret in parameters', () => {
  const cases: readonly (readonly [written: JsonValue, shown: JsonValue, called: JsonValue])[] = [
    ['{{ secrets.stripe }}', '{{secrets.stripe}}', 'sk_live_1'],
    ['Bearer {{secrets.stripe}}!', 'Bearer {{secrets.stripe}}!', 'Bearer sk_live_1!'],
    [
      {
        headers: { a: ['x', '{{ secrets.login | base64 }} for {{ data.name }}'] },
        n: '{{ data.n }}',
      },
      { headers: { a: ['x', '{{secrets.login | base64}} for Ada'] }, n: 3 },
      { headers: { a: ['x', 'YWRhOmxvdmVsYWNl for Ada'] }, n: 3 },
    ],
    ['{{ secrets.db.main }}', '{{secrets.db.main}}', 'of the dotted id'],
    ['{{ secrets.db.user }}', '{{secrets.db.user}}', 'ada'],
    ['{{ secrets.db.port }}', '{{secrets.db.port}}', '5432'],
    ['{{ secrets.db }}', '{{secrets.db}}', VALUES.db!],
    ['{{ data.forged }}', '{{secrets.stripe}}', '{{secrets.stripe}}'],
    [
      '{{ data.forged }} {{ secrets.stripe }}',
      '{{secrets.stripe}} {{secrets.stripe}}',
      '{{secrets.stripe}} sk_live_1',
    ],
  ];
  for (const [written, shown, filled] of cases) {
    test(`${JSON.stringify(written)} is shown by its name, and called with its value`, () => {
      assert.deepEqual(rendered(written).shown, shown);
      assert.deepEqual(called(written), filled);
    });
  }

  test('costs parameters without one nothing', () => {
    assert.equal(compileTemplate({ a: '{{ data.name }}', b: 'secrets.stripe' }).hasSecrets, false);
    assert.deepEqual(rendered({ a: '{{ data.name }}' }).texts, []);
  });

  test('is looked up by every way in which its name can be read', () => {
    const { texts } = rendered('{{ secrets.a.b.c }} {{ secrets.d }}');
    assert.deepEqual(secretIdsIn(texts), ['a.b.c', 'a.b', 'a', 'd']);
  });

  for (const [written, reason] of [
    ['{{ secrets.gone }}', 'secret gone does not exist, is disabled or has expired'],
    ['{{ secrets.db.gone }}', 'secret db.gone does not exist, is disabled or has expired'],
    ['{{ secrets.stripe | base64_decode }}', 'secret stripe: a filter cannot work with it'],
  ] as const) {
    test(`${written} fails without a word of any value`, () => {
      const { shown, texts } = rendered(written);
      const filled = fillSecrets(shown, texts, (id) => VALUES[id]);
      assert.deepEqual(filled, { ok: false, message: reason });
    });
  }

  for (const [written, reason] of [
    ['{{ secrets }}', 'a secret is named as secrets.name'],
    ['{{ secrets.a | data.b }}', 'a secret has no fallback, it can only have filters'],
    ["{{ secrets.a | 'none' }}", 'a secret has no fallback, it can only have filters'],
    ['{{ data.a | secrets.b }}', 'a secret cannot be a fallback'],
    ['{{ json(secrets.a) }}', 'json does not take a secret'],
    ['{{ data.a | len(secrets.b) }}', 'len does not take a secret'],
  ] as const) {
    test(`${written} cannot be rendered`, () => {
      const result = renderTemplate(compileTemplate(written), SCOPE);
      assert.deepEqual(result, { ok: false, message: reason });
    });
  }
});

describe('a definition', () => {
  const compiled = (handler: string, params: JsonObject) =>
    compilePlan({ id: 's', blocks: [{ type: 'step', id: 'a', handler, params }] });
  const params = { url: 'https://a.example/{{ secrets.stripe }}' };

  test('names secrets for who is called', () => {
    for (const handler of ['http_request', 'charge-card']) assert.ok(compiled(handler, params).ok);
  });

  test('names none for what only the engine sees', () => {
    for (const handler of ['transform', 'log', 'noop']) {
      const result = compiled(handler, params);
      assert.ok(!result.ok && /names a secret/.test(result.message), handler);
    }
  });
});

describe('a masked value', () => {
  test('has none of the texts in any string, and is otherwise as it was', () => {
    const value = { kind: 'kind', body: 'a "quoted" sk_live_1 and YWRh', list: ['sk_live_12', 5] };
    const shown = masked(value, ['sk_live_1', 'sk_live_12', 'YWRh', '"quoted"']);
    assert.deepEqual(shown, {
      kind: 'kind',
      body: 'a [REDACTED] [REDACTED] and [REDACTED]',
      list: ['[REDACTED]', 5],
    });
  });

  test('is the value itself when there is nothing to hide, or only what is too short', () => {
    const value = { body: 'abc' };
    assert.equal(masked(value, ['abc', 'sk_live_1']), value);
  });
});
