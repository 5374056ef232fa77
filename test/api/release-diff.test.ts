/** What changes from one definition to another, as callers ask for it: of a release, or of any two. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { before, describe, test } from 'node:test';
import type { Release, SemanticDiff } from '../../schema/release.js';
import {
  type Json,
  newHandler,
  parallel,
  step,
  transform,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column, columns } from '../helpers/columns.js';

const api = useSharedApi();
const tenant = api.tenant();

interface Pair {
  readonly baseline_sequence_id: string;
  readonly candidate_sequence_id: string;
}

/** Two versions of a sequence that no other test uses. */
async function versions(first: readonly Json[], second: readonly Json[]): Promise<Pair> {
  const name = `s-${randomUUID()}`;
  return {
    baseline_sequence_id: await tenant.sequence(first, { name, version: 1 }),
    candidate_sequence_id: await tenant.sequence(second, { name, version: 2 }),
  };
}

async function release(pair: Pair): Promise<string> {
  const body = { tenant_id: tenant.name, ...pair };
  return expectStatus(await tenant.post<Release>('/releases', body), 201).id;
}

async function compare(pair: object): Promise<SemanticDiff> {
  return expectStatus(await tenant.post<SemanticDiff>('/sequences/releases/diff', pair), 200);
}

const a = step('a', 'noop');

describe('release diff: block_added entry with block_id; max_severity behavioral for a built-in side-effect-free addition; POST diff equals GET diff; unknown → 404; foreign → 404', () => {
  let pair: Pair;
  let id: string;

  before(async () => {
    pair = await versions([a], [a, step('b', 'log')]);
    id = await release(pair);
  });

  test('the diff of a release names the added block', async () => {
    const diff = expectStatus(await tenant.get<SemanticDiff>(`/releases/${id}/diff`), 200);
    assert.deepEqual(diff, {
      entries: [
        {
          category: 'block_added',
          severity: 'behavioral',
          block_id: 'b',
          summary: 'step b with the handler log is added to the root list',
        },
      ],
      max_severity: 'behavioral',
    });
    assert.deepEqual(await compare(pair), diff);
  });

  test('an unknown release is not found, nor is an unknown sequence', async () => {
    expectStatus(await tenant.get(`/releases/${randomUUID()}/diff`), 404);
    for (const side of ['baseline_sequence_id', 'candidate_sequence_id']) {
      const unknown = { ...pair, [side]: randomUUID() };
      expectStatus(await tenant.post('/sequences/releases/diff', unknown), 404);
    }
  });

  test('another tenant finds neither', async () => {
    const stranger = api.tenant();
    expectStatus(await stranger.get(`/releases/${id}/diff`), 404);
    expectStatus(await stranger.post('/sequences/releases/diff', pair), 404);
  });

  test('a sequence that is not stored any more is not found', async () => {
    const gone = await versions([a], [a, step('c', 'log')]);
    const of = await release(gone);
    expectStatus(await tenant.delete(`/sequences/${gone.candidate_sequence_id}`), 204);
    expectStatus(await tenant.get(`/releases/${of}/diff`), 404);
    expectStatus(await tenant.post('/sequences/releases/diff', gone), 404);
  });
});

describe('two definitions', () => {
  test('are compared as they are stored, block by block', async () => {
    const handler = newHandler();
    const pair = await versions(
      [parallel('p', [a], [transform('t', { n: 1 })]), step('w', handler)],
      [
        parallel('p', [a]),
        transform('t', { n: '{{ outputs.w.n }}' }),
        step('v', handler, { params: { n: '{{ outputs.w.n }}' } }),
      ],
    );
    const diff = await compare(pair);
    assert.deepEqual(columns(diff.entries, 'severity', 'category', 'block_id'), [
      ['incompatible', 'missing_output_reference', 't'],
      ['incompatible', 'missing_output_reference', 'v'],
      ['side_effect_risk', 'block_added', 'v'],
      ['behavioral', 'block_removed', 'w'],
      ['behavioral', 'params_changed', 't'],
      ['behavioral', 'structure_changed', 'p'],
      ['behavioral', 'structure_changed', 't'],
    ]);
    assert.equal(diff.max_severity, 'incompatible');
  });

  test('need not share a name, and may be one', async () => {
    const one = await tenant.sequence([a]);
    const other = await tenant.sequence([step('a', 'log')]);
    const diff = await compare({ baseline_sequence_id: one, candidate_sequence_id: other });
    assert.deepEqual(column(diff.entries, 'category'), ['handler_changed']);
    const same = await compare({ baseline_sequence_id: one, candidate_sequence_id: one });
    assert.deepEqual(same, { entries: [] });
  });

  test('are told with what the author of the candidate was warned of', async () => {
    const pair = await versions([a], [a, step('b', 'nooop')]);
    const { candidate_lint } = await compare(pair);
    assert.equal(candidate_lint?.length, 1);
    assert.match(
      candidate_lint[0] ?? '',
      /^blocks\[1\]\.handler: the handler nooop .* did you mean noop/,
    );
  });

  test('may be large', async () => {
    const text = 'x'.repeat(200_000);
    const pair = await versions([transform('t', { text })], [transform('t', { text: `${text}y` })]);
    assert.deepEqual(await compare(pair), {
      entries: [
        {
          category: 'params_changed',
          severity: 'behavioral',
          block_id: 't',
          summary: 'step t: params change: text',
        },
      ],
      max_severity: 'behavioral',
    });
  });

  test('differ by what they demand of their input', async () => {
    const name = `s-${randomUUID()}`;
    const input_schema = { type: 'object', required: ['amount'] };
    const diff = await compare({
      baseline_sequence_id: await tenant.sequence([a], { name, version: 1 }),
      candidate_sequence_id: await tenant.sequence([a], { name, version: 2, input_schema }),
    });
    assert.deepEqual(columns(diff.entries, 'category', 'block_id'), [
      ['input_schema_narrowed', undefined],
    ]);
  });

  test('of another tenant than that of the body are refused', async () => {
    const pair = await versions([a], [a]);
    const foreign = { ...pair, tenant_id: `other-${tenant.name}` };
    expectStatus(await tenant.post('/sequences/releases/diff', foreign), 403);
    for (const tenant_id of ['', null, tenant.name]) {
      assert.deepEqual(await compare({ ...pair, tenant_id }), { entries: [] });
    }
  });

  test('must be named by ids', async () => {
    const { baseline_sequence_id } = await versions([a], [a]);
    for (const candidate_sequence_id of [undefined, null, 'latest', 7]) {
      const body = { baseline_sequence_id, candidate_sequence_id };
      expectStatus(await tenant.post('/sequences/releases/diff', body), 400);
    }
    expectStatus(await tenant.get('/releases/latest/diff'), 400);
  });
});
