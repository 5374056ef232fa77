/** What the editor of definitions offers at the cursor, which is written as `|`. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { completionsAt, type Schemas } from '../src/pages/sequences/completions.ts';

const { components } = JSON.parse(readFileSync('docs/openapi.json', 'utf8'));
const SCHEMAS = components.schemas as Schemas;
const KNOWN = { handlers: ['log', 'charge_card'], sequences: ['refund'] };

function offered(marked: string) {
  const at = marked.indexOf('|');
  const text = marked.replace('|', '');
  const found = completionsAt(text, at, SCHEMAS, KNOWN);
  const first = found?.options[0];
  const after = found && first && text.slice(0, found.from) + first.text + text.slice(found.to);
  return { labels: found?.options.map(({ label }) => label) ?? [], after };
}

test('members of a definition are offered, without those that it has', () => {
  const { labels } = offered('{"name": "a", |');
  assert.ok(labels.includes('blocks') && labels.includes('input_schema'));
  assert.ok(!labels.includes('name') && !labels.includes('tenant_id'));
});

test('members of a block follow from its type, at any depth', () => {
  const { labels, after } = offered('{"blocks": [{"type": "loop", "body": [{"type": "step", "re|');
  assert.ok(labels.includes('retry') && labels.includes('reply'));
  assert.ok(!labels.includes('branches'));
  assert.match(after ?? '', /"type": "step", "[a-z_]+": $/);
  assert.deepEqual(offered('{"blocks": [{"type": "loop", "max|').labels, ['max_iterations']);
  assert.deepEqual(offered('{"blocks": [{|').labels, ['type']);
  const nested =
    '{"blocks": [{"type": "saga", "steps": [{"id": "a", "action": {"type": "step", "hand|';
  assert.deepEqual(offered(nested).labels, ['handler']);
});

test('values of enums, types, flags, handlers and sequences are offered', () => {
  assert.ok(offered('{"blocks": [{"type": |').labels.includes('for_each'));
  assert.deepEqual(offered('{"blocks": [{"type": "try|').labels, ['try_catch']);
  assert.deepEqual(offered('{"status": "st|').labels, ['staging']);
  assert.deepEqual(offered('{"hold": |').labels, ['true', 'false']);
  assert.deepEqual(offered('{"blocks": [{"type": "step", "handler": "|').labels, KNOWN.handlers);
  const used =
    '{"blocks": [{"type": "step", "handler": "ship"}, {"type": "step", "handler": "sh|"}]}';
  assert.deepEqual(offered(used).labels, ['ship']);
  const child = offered('{"blocks": [{"type": "sub_sequence", "sequence_name": "|"}]}');
  assert.equal(child.after, '{"blocks": [{"type": "sub_sequence", "sequence_name": "refund"}]}');
  const { labels } = offered('{"blocks": [{"type": "race", "semantics": "|');
  assert.deepEqual(labels, ['first_to_resolve', 'first_to_succeed']);
});

test('a name that is changed keeps its colon', () => {
  const { after } = offered('{"blocks": [{"type": "step", "handl|": "log"}]}');
  assert.equal(after, '{"blocks": [{"type": "step", "handler": "log"}]}');
});

test('expressions know the input and the blocks', () => {
  const head =
    '{"input_schema": {"type": "object", "properties": {"order": {"type": "object", "properties": {"inner": {}}}, "customer": {}}},' +
    '"blocks": [{"id": "charge"}, {"type": "step", "params": {"a": "{{ ';
  assert.deepEqual(offered(`${head}data.|`).labels, ['order', 'customer']);
  assert.deepEqual(offered(`${head}data.cu| }}"`).labels, ['customer']);
  assert.deepEqual(offered(`${head}outputs.|`).labels, ['charge']);
});

test('nothing is offered in a text of its own, in an unknown member, or outside', () => {
  for (const marked of ['|', '{"name": "or|', '{"input_schema": {"type": "|', '{"x": {"|', '{}|']) {
    assert.deepEqual(offered(marked).labels, [], marked);
  }
});
