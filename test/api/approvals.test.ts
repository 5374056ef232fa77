/** What people are asked and what they answer, over HTTP: gates, the list, answers, links. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import type { ApiKey, KeyMinted, WhoAmI } from '../../schema/api-key.js';
import type { Approval, ApprovalAnswered, ApprovalPage } from '../../schema/approval.js';
import type { AuditEntry } from '../../schema/instance.js';
import {
  eventually,
  forEach,
  type Json,
  newHandler,
  parallel,
  race,
  step,
  type Tenant,
  useSharedApi,
} from '../helpers/api.js';
import { type Client, expectStatus } from '../helpers/client.js';
import { column } from '../helpers/columns.js';
import { migrate, resumeFrom } from '../helpers/edits.js';

const api = useSharedApi();

const gated = (id: string, wait_for_input: Json = {}, handler = 'noop', more: Json = {}): Json =>
  step(id, handler, { wait_for_input, ...more });

const listed = async (client: Client, query = ''): Promise<ApprovalPage> =>
  expectStatus(await client.get<ApprovalPage>(`/approvals${query}`), 200);

/** The only thing that somebody of the tenant is asked. */
async function asked(tenant: Tenant): Promise<Approval> {
  const { items, total } = await listed(tenant);
  assert.deepEqual([items.length, total], [1, 1]);
  return items[0]!;
}

const answer = (client: Client, id: string, body: Json) =>
  client.post<ApprovalAnswered & { error: string }>(`/approvals/${id}`, body);

const auditOf = async (tenant: Tenant, id: string, type: string): Promise<AuditEntry[]> => {
  const reply = await tenant.get<AuditEntry[]>(`/instances/${id}/audit`);
  return expectStatus(reply, 200).filter(({ event_type }) => event_type === type);
};

const answersOf = async (tenant: Tenant, id: string) =>
  (await tenant.outputs(id)).filter(({ output_ref }) => output_ref === 'human_input');

const keyOf = (tenant: Tenant, name: string, ...capabilities: string[]): Promise<Client> =>
  keyIn(tenant, name, capabilities);

async function keyIn(
  tenant: Tenant,
  name: string,
  capabilities: string[],
  groups: string[] = [],
): Promise<Client> {
  const body = { tenant_id: tenant.name, name, capabilities, groups };
  const { secret } = expectStatus(await api.root.post<KeyMinted>('/api-keys', body), 201);
  return api.root.with({ apiKey: secret, tenant: tenant.name });
}

describe('A human gate parks its step until somebody answers', () => {
  test('Human gate: the instance waits, is listed in approvals with prompt, choices and timeout, and leaves the list when a valid value resumes it and lands in context.data', async () => {
    const tenant = api.tenant();
    const choices = [
      { label: 'Pay it', value: 'pay' },
      { label: 'Leave it', value: 'leave' },
    ];
    const gate = { prompt: 'Pay {{ data.amount }} EUR?', choices, store_as: 'decision' };
    const timed = { ...gate, timeout: 600_000, escalation_handler: 'boss', allow_comment: true };
    const sequence = await tenant.sequence([gated('review', timed)], { name: 'payment' });
    const metadata = { order: 7 };
    const context = { data: { amount: 42 } };
    const id = await tenant.create(sequence, { context, metadata });
    await tenant.until(id, 'waiting');
    const { id: approval, waiting_since, deadline, ...rest } = await asked(tenant);
    assert.deepEqual(rest, {
      instance_id: id,
      tenant_id: tenant.name,
      namespace: 'test',
      sequence_id: sequence,
      sequence_name: 'payment',
      block_id: 'review',
      path: 'review',
      prompt: 'Pay 42 EUR?',
      choices,
      store_as: 'decision',
      timeout_seconds: 600,
      escalation_handler: 'boss',
      allow_comment: true,
      approvers: [],
      metadata,
    });
    assert.equal(Date.parse(deadline ?? '') - Date.parse(waiting_since), 600_000);
    assert.deepEqual(await tenant.nodeStates(id), { review: 'waiting' });
    const reply = await answer(tenant, approval, { value: 'pay', comment: 'go' });
    const { answered_at, ...taken } = expectStatus(reply, 200);
    assert.deepEqual(taken, {
      id: approval,
      instance_id: id,
      block_id: 'review',
      value: 'pay',
      comment: 'go',
      answered_by: 'root',
      repeated: false,
    });
    const { context: after } = await tenant.until(id, 'completed');
    assert.deepEqual(after.data, { amount: 42, decision: 'pay' });
    assert.deepEqual(await listed(tenant), { items: [], total: 0 });
    const [row] = await answersOf(tenant, id);
    const output = { value: 'pay', comment: 'go', answered_by: 'root', answered_at };
    assert.deepEqual([row?.block_id, row?.output], ['review', output]);
    assert.ok(Date.parse(answered_at) >= Date.parse(waiting_since));
  });

  test('Human gate: a signal answers it, and a signal whose value is not a choice is consumed', async () => {
    const [tenant, handler] = [api.tenant(), newHandler()];
    const id = await tenant.run([gated('a', {}, handler)]);
    await tenant.signal(id, 'custom:human_input:a', { value: 'maybe' });
    await tenant.signal(id, 'custom:human_input:a', 'yes');
    await asked(tenant);
    const refused = await auditOf(tenant, id, 'gate_refused');
    assert.deepEqual(column(refused, 'details'), [{ value: 'yes' }, { value: 'maybe' }]);
    assert.deepEqual(await tenant.poll(handler), []);
    await tenant.signal(id, 'custom:human_input:a', { value: 'no' });
    await tenant.complete(await tenant.task(handler), { shipped: true });
    const { context } = await tenant.until(id, 'completed');
    assert.deepEqual(context.data, { a: 'no', shipped: true });
    assert.deepEqual((await tenant.outputsOf(id)).a, { shipped: true });
  });

  test('Human gate: an answer that arrives early is kept for it', async () => {
    const [tenant, handler] = [api.tenant(), newHandler()];
    const id = await tenant.run([step('first', handler), gated('a'), gated('b')]);
    await tenant.signal(id, 'custom:human_input:b', { value: 'no' });
    await tenant.complete(await tenant.task(handler));
    assert.equal((await asked(tenant)).block_id, 'a');
    await tenant.signal(id, 'custom:human_input:a', { value: 'yes' });
    const { context } = await tenant.until(id, 'completed');
    assert.deepEqual(context.data, { a: 'yes', b: 'no' });
  });

  const answers = { signal_type: 'custom:human_input:a', payload: { value: 'no' } };
  const SENDERS: Record<string, (desk: Client, id: string) => Promise<unknown>> = {
    signal: async (desk, id) =>
      expectStatus(await desk.post(`/instances/${id}/signals`, answers), 201),
    'signal before its gate': async (desk, id) => {
      expectStatus(await desk.post(`/instances/${id}/signals`, answers), 201);
      const { body } = await desk.get<Json[]>(`/instances/${id}/signals`);
      assert.deepEqual(column(body, 'sent_by'), ['desk']);
    },
    'signal to many': async (desk, id) => {
      const signal = { signal_type: 'human_input:a', payload: answers.payload };
      const filter = { sequence_id: (await desk.get<Json>(`/instances/${id}`)).body.sequence_id };
      const body = { filter, action: 'signal', ...signal };
      expectStatus(await desk.post('/instances/batch-action?async=true', body), 202);
    },
    'resume-from': async (desk, id) => {
      expectStatus(await desk.post(`/instances/${id}/signals`, { signal_type: 'pause' }), 201);
      const body = { signals: [answers] };
      expectStatus(await desk.post(`/instances/${id}/resume-from/a`, body), 200);
    },
  };
  for (const [way, send] of Object.entries(SENDERS)) {
    test(`Human gate: an answer records the name of its key, by every route: ${way}`, async () => {
      const [tenant, handler] = [api.tenant(), newHandler()];
      const desk = await keyOf(tenant, 'desk', 'operator');
      const isAhead = way.endsWith('before its gate');
      const blocks = [...(isAhead ? [step('first', handler)] : []), gated('a')];
      const id = await tenant.runUntil('waiting', blocks);
      await send(desk, id);
      if (isAhead) await tenant.complete(await tenant.task(handler));
      await tenant.until(id, 'completed');
      const [row] = await answersOf(tenant, id);
      assert.equal((row!.output as Json).answered_by, 'desk');
      const [entry] = await auditOf(tenant, id, 'gate_answered');
      assert.equal((entry!.details as Json).answered_by, 'desk');
    });
  }

  test('Human gate: several gates, in sequence or at once, are answered separately', async () => {
    const tenant = api.tenant();
    const body = [gated('item', { prompt: '{{ data.item }}?' })];
    const blocks = [parallel('p', [gated('x')], [gated('y')]), forEach('f', 'list', body)];
    const id = await tenant.runUntil('waiting', blocks, { list: ['one', 'two'] });
    const both = (await listed(tenant)).items;
    assert.deepEqual(both.map(({ block_id }) => block_id).sort(), ['x', 'y']);
    for (const { id: one } of both) expectStatus(await answer(tenant, one, { value: 'yes' }), 200);
    for (const [at, prompt] of ['one?', 'two?'].entries()) {
      const item = await asked(tenant);
      assert.deepEqual([item.prompt, item.path], [prompt, `f[${at}]/item`]);
      expectStatus(await answer(tenant, item.id, { value: 'no' }), 200);
    }
    await tenant.until(id, 'completed');
    assert.equal((await answersOf(tenant, id)).length, 4);
  });

  test('Human gate: a cancel, a race and a rewind withdraw it; asking again creates another approval', async () => {
    const [tenant, handler] = [api.tenant(), newHandler()];
    const late = async (id: string) => (await answer(tenant, id, { value: 'yes' })).body.error;
    const cancelled = await tenant.runUntil('waiting', [gated('a')]);
    const first = await asked(tenant);
    await tenant.signal(cancelled, 'cancel');
    assert.match(await late(first.id), /^conflict: approval .* was withdrawn \(20/);
    const raced = await tenant.run([race('r', [[gated('a')], [step('s', handler)]])]);
    await tenant.until(raced, 'waiting');
    const second = await asked(tenant);
    await tenant.complete(await tenant.task(handler));
    await tenant.until(raced, 'completed');
    assert.match(await late(second.id), /was withdrawn/);
    const rewound = await tenant.runUntil('waiting', [gated('a')]);
    const third = await asked(tenant);
    await tenant.signal(rewound, 'pause');
    await resumeFrom(tenant, rewound, 'a');
    const fourth = await eventually(async () => {
      const again = await asked(tenant);
      assert.notEqual(again.id, third.id);
      return again;
    });
    assert.match(await late(third.id), /was withdrawn/);
    expectStatus(await answer(tenant, fourth.id, { value: 'yes' }), 200);
    await tenant.until(rewound, 'completed');
  });

  test('a dry run that says so takes the first choice', async () => {
    const tenant = api.tenant();
    const sequence = await tenant.sequence([gated('a', {}, newHandler())]);
    const auto = { dry_run: true, dry_run_auto_approve: true };
    const done = await tenant.until(await tenant.create(sequence, auto), 'completed');
    assert.deepEqual(done.context.data, { a: 'yes' });
    assert.equal(done.context.runtime.dry_run_auto_approve, true);
    const creation = tenant.creation(sequence, { dry_run_auto_approve: true });
    const reply = await tenant.post<{ error: string }>('/instances', creation);
    assert.match(reply.body.error, /dry_run_auto_approve must not be true without dry_run/);
  });

  test('a version that the instance goes over to asks in its own words', async () => {
    const tenant = api.tenant();
    const name = { name: `s-${randomUUID()}` };
    const old = await tenant.sequence([gated('a', { prompt: 'Old?' })], name);
    const gate = { prompt: 'New?', choices: [{ label: 'Go', value: 'go' }] };
    const next = await tenant.sequence([gated('a', gate)], { ...name, version: 2 });
    const id = await tenant.create(old);
    await tenant.until(id, 'waiting');
    const before = await asked(tenant);
    await migrate(tenant, id, next);
    const after = await asked(tenant);
    const seen = [after.id, after.sequence_id, after.prompt, after.choices];
    assert.deepEqual(seen, [before.id, next, 'New?', gate.choices]);
    expectStatus(await answer(tenant, after.id, { value: 'go' }), 200);
    await tenant.until(id, 'completed');
  });
});

test('GET /approvals lists the open ones of the tenant, oldest first, by pages, and narrowed', async () => {
  const tenant = api.tenant();
  const other = api.tenant();
  await other.runUntil('waiting', [gated('a')]);
  const ids: string[] = [];
  for (const namespace of ['n1', 'n2', 'n1']) {
    const sequence = await tenant.sequence([gated('a')], { namespace });
    ids.push(await tenant.create(sequence, { namespace }));
  }
  const narrow = await tenant.sequence([gated('a')], { name: 'narrow' });
  ids.push(await tenant.create(narrow));
  for (const id of ids) await tenant.until(id, 'waiting');
  const idsOf = ({ items }: ApprovalPage) => items.map(({ instance_id }) => instance_id);
  const all = await listed(tenant);
  assert.deepEqual([idsOf(all), all.total], [ids, 4]);
  const queries: [string, string[]][] = [
    ['?namespace=n1', [ids[0]!, ids[2]!]],
    [`?sequence_id=${narrow}`, [ids[3]!]],
    ['?sequence_name=narrow', [ids[3]!]],
    ['?sequence=nothing', []],
    [`?tenant_id=${other.name}&namespace=n2`, [ids[1]!]],
  ];
  for (const [query, expected] of queries) {
    const found = await listed(tenant, query);
    assert.deepEqual([idsOf(found), found.total], [expected, expected.length], query);
  }
  const first = await tenant.get<ApprovalPage>('/approvals?limit=3');
  const cursor = String(first.headers['x-next-cursor']);
  const rest = await listed(tenant, `?limit=3&cursor=${cursor}`);
  assert.deepEqual([...idsOf(first.body), ...idsOf(rest), rest.total], [...ids, 4]);
  assert.deepEqual(idsOf(await listed(tenant, '?offset=3')), [ids[3]]);
  const misspelt = await tenant.get<{ error: string }>('/approvals?namespce=n1');
  assert.match(misspelt.body.error, /namespace/);
});

describe('Approvers: a gate that names groups', () => {
  const prompts = ({ items, total }: ApprovalPage) => {
    assert.equal(items.length, total);
    return items.map(({ prompt }) => prompt).sort();
  };

  test('is listed for and answered by keys of its groups and operators only', async () => {
    const tenant = api.tenant();
    const gates = { finance: ['finance'], both: ['legal', 'finance'], legal: ['legal'], any: [] };
    const blocks = Object.entries(gates).map(([prompt, approvers]) => [
      gated(prompt, { prompt, approvers }),
    ]);
    const id = await tenant.runUntil('waiting', [parallel('p', ...blocks)]);
    const own = api.tenant();
    await own.runUntil('waiting', [gated('a', { approvers: ['finance'] })]);
    const finance = await keyIn(tenant, 'Ada', ['approver'], ['finance', 'board']);
    const nobody = await keyOf(tenant, 'Bo', 'approver');
    const operator = await keyOf(tenant, 'Cy', 'operator');
    const auditor = await keyIn(tenant, 'Di', ['approver', 'auditor'], ['legal']);
    const all = ['any', 'both', 'finance', 'legal'];
    assert.deepEqual(prompts(await listed(operator)), all);
    assert.deepEqual(prompts(await listed(auditor)), all);
    assert.deepEqual(prompts(await listed(finance)), ['any', 'both', 'finance']);
    assert.deepEqual(prompts(await listed(nobody)), ['any']);
    assert.deepEqual(prompts(await listed(operator, '?group=legal')), ['both', 'legal']);
    assert.deepEqual(prompts(await listed(finance, '?group=legal')), ['both']);
    assert.deepEqual(prompts(await listed(finance, '?group=finance&namespace=other')), []);
    assert.deepEqual(prompts(await listed(finance, '?group=nobody')), []);
    const { items } = await listed(operator);
    assert.deepEqual(items.find(({ prompt }) => prompt === 'both')?.approvers, [
      'finance',
      'legal',
    ]);
    const pages = await finance.get<ApprovalPage>('/approvals?limit=2');
    const next = await listed(finance, `?limit=2&cursor=${pages.headers['x-next-cursor']}`);
    assert.equal(pages.body.items.length + next.items.length, 3);
    const tried = async (client: Client, prompt: string) => {
      const { id: approval } = items.find((one) => one.prompt === prompt)!;
      return (await answer(client, approval, { value: 'yes' })).status;
    };
    assert.deepEqual(
      [
        await tried(nobody, 'legal'),
        await tried(finance, 'legal'),
        await tried(auditor, 'finance'),
      ],
      [403, 403, 403],
    );
    assert.deepEqual(
      [await tried(finance, 'both'), await tried(auditor, 'legal'), await tried(nobody, 'any')],
      [200, 200, 200],
    );
    assert.equal(await tried(operator, 'finance'), 200);
    await tenant.until(id, 'completed');
    const [late] = items.filter(({ prompt }) => prompt === 'legal');
    const refused = await answer(finance, late!.id, { value: 'yes' });
    assert.equal(refused.status, 403);
    assert.match(refused.body.error, /takes a key of the groups legal, or operator/);
    const tenantless = await api.root.get<{ error: string }>('/approvals?group=legal');
    assert.equal(tenantless.status, 400);
  });

  test('refuses signals of other keys, early ones and those kept from before a migration, too', async () => {
    const [tenant, handler] = [api.tenant(), newHandler()];
    const name = { name: `s-${randomUUID()}` };
    const blocks = (approvers: string[]) => [
      step('first', handler),
      gated('a', { approvers: ['finance'] }),
      gated('b', { approvers }),
    ];
    const old = await tenant.sequence(blocks([]), name);
    const next = await tenant.sequence(blocks(['finance']), { ...name, version: 2 });
    const id = await tenant.create(old);
    const [desk, finance] = [
      await keyOf(tenant, 'desk', 'approver'),
      await keyIn(tenant, 'finance desk', ['approver'], ['finance']),
    ];
    const sent = async (client: Client, block: string, value: string) => {
      const signal = { signal_type: `custom:human_input:${block}`, payload: { value } };
      return (await client.post(`/instances/${id}/signals`, signal)).status;
    };
    assert.deepEqual([await sent(desk, 'a', 'no'), await sent(desk, 'b', 'no')], [403, 201]);
    assert.equal(await sent(finance, 'a', 'yes'), 201);
    await migrate(tenant, id, next);
    await tenant.complete(await tenant.task(handler));
    await tenant.until(id, 'waiting');
    assert.equal((await asked(tenant)).block_id, 'b');
    assert.equal((await auditOf(tenant, id, 'gate_refused')).length, 1);
    assert.equal(await sent(desk, 'b', 'no'), 403);
    assert.equal(await sent(finance, 'b', 'yes'), 201);
    const { context } = await tenant.until(id, 'completed');
    assert.deepEqual(context.data, { a: 'yes', b: 'yes' });
  });

  test('takes plain names of groups, and only keys that answer have groups', async () => {
    const tenant = api.tenant();
    const refusals: [Json, RegExp][] = [
      [{ approvers: ['a b'] }, /approvers\[0\]/],
      [{ approvers: ['a', 'a'] }, /approvers/],
    ];
    for (const [gate, text] of refusals) {
      const body = tenant.definition([gated('a', gate)]);
      const reply = await tenant.post<{ error: string }>('/sequences', body);
      assert.equal(reply.status, 400);
      assert.match(reply.text, text);
    }
    const key = { tenant_id: tenant.name, capabilities: ['starter'], groups: ['finance'] };
    const refused = await api.root.post<{ error: string }>('/api-keys', key);
    assert.equal(refused.status, 400);
    assert.match(refused.body.error, /groups takes the capability approver/);
    const desk = await keyIn(tenant, 'desk', ['approver'], ['finance']);
    const { body } = await desk.get<WhoAmI>('/whoami');
    assert.deepEqual(body.key?.groups, ['finance']);
    const keys = await api.root.get<ApiKey[]>(`/api-keys?tenant_id=${tenant.name}`);
    assert.deepEqual(column(keys.body, 'groups'), [['finance']]);
  });
});

describe('POST /approvals/{id}', () => {
  test('refuses what is no choice and names the choices, and what is not there or not theirs', async () => {
    const tenant = api.tenant();
    await tenant.runUntil('waiting', [gated('a')]);
    const { id } = await asked(tenant);
    const cases: [Client, string, Json, number, RegExp][] = [
      [tenant, id, { value: 'maybe' }, 400, /value must be one of yes, no/],
      [tenant, id, {}, 400, /value is required/],
      [tenant, id, { value: 'yes', comment: 'x' }, 400, /comment must be absent/],
      [tenant, randomUUID(), { value: 'yes' }, 404, /not found: approval/],
      [api.tenant(), id, { value: 'yes' }, 404, /not found: approval/],
    ];
    for (const [client, which, body, status, text] of cases) {
      const reply = await answer(client, which, body);
      assert.equal(reply.status, status, reply.text);
      assert.match(reply.body.error, text);
    }
    await asked(tenant);
  });

  test('Approvals: exactly one of many concurrent answers is accepted, and a repetition of it is recognised', async () => {
    const tenant = api.tenant();
    const id = await tenant.runUntil('waiting', [gated('a')]);
    const approval = (await asked(tenant)).id;
    const bodies = ['yes', 'no', 'yes', 'no', 'yes', 'no'].map((value, at) => {
      return { value, answer_id: `a${at}` };
    });
    const replies = await Promise.all(bodies.map((body) => answer(tenant, approval, body)));
    const won = bodies.filter((_, at) => replies[at]?.status === 200);
    assert.equal(won.length, 1);
    assert.ok(replies.every(({ status }) => status === 200 || status === 409));
    const { value, answer_id } = won[0]!;
    const again = await answer(tenant, approval, { value, answer_id });
    assert.deepEqual([again.status, again.body.repeated, again.body.value], [200, true, value]);
    const changed = { value: value === 'yes' ? 'no' : 'yes', answer_id };
    assert.equal((await answer(tenant, approval, changed)).status, 409);
    assert.match((await answer(tenant, approval, { value })).body.error, /was answered already/);
    await tenant.until(id, 'completed');
    assert.equal((await answersOf(tenant, id)).length, 1);
  });

  test('notes who answered by the name of the key, and never the key', async () => {
    const tenant = api.tenant();
    const id = await tenant.runUntil('waiting', [gated('a')]);
    const key = await keyOf(tenant, 'Ms. Weber', 'approver');
    const { items } = await listed(key);
    expectStatus(await answer(key, items[0]!.id, { value: 'no' }), 200);
    await tenant.until(id, 'completed');
    const details = { approval_id: items[0]!.id, path: 'a', value: 'no', answered_by: 'Ms. Weber' };
    const [entry] = await auditOf(tenant, id, 'gate_answered');
    assert.deepEqual([entry?.block_id, entry?.details], ['a', details]);
  });
});

describe('A link to an approval', () => {
  const nobody = (): Client => api.root.with({ apiKey: null, tenant: null, prefix: '' });
  const HTML = { accept: 'text/html' };

  async function linkTo(tenant: Tenant, body: Json = {}): Promise<{ path: string; id: string }> {
    const { id } = await asked(tenant);
    const reply = await tenant.post<{ url: string }>(`/approvals/${id}/link`, body);
    const { url } = expectStatus(reply, 201);
    assert.ok(url.startsWith(api.url), url);
    return { path: new URL(url).pathname, id };
  }

  test('shows a page that answers nothing and escapes what it shows, and takes one answer by its form', async () => {
    const tenant = api.tenant();
    const choices = [
      { label: 'Pay <now>', value: `"p'ay` },
      { label: 'Leave', value: 'leave' },
    ];
    const prompt = '<script>alert("{{ data.x }}")</script> & more';
    const gate = { prompt, choices, allow_comment: true };
    const id = await tenant.runUntil('waiting', [gated('a', gate)], { x: '<b>' });
    const { path } = await linkTo(tenant, { recipient: 'jane@example.com' });
    const page = await nobody().request('GET', path, { headers: HTML });
    assert.equal(page.status, 200);
    assert.match(String(page.headers['content-type']), /^text\/html/);
    assert.equal(page.headers['cache-control'], 'no-store');
    assert.doesNotMatch(page.text, /<script|<b>|<now>/);
    assert.match(page.text, /&lt;script&gt;alert\(&quot;&lt;b&gt;&quot;\)/);
    assert.match(page.text, /value="&quot;p&#39;ay">Pay &lt;now&gt;<\/button>/);
    await asked(tenant);
    const form = new URLSearchParams({ value: `"p'ay`, comment: 'fine' }).toString();
    const type = { 'content-type': 'application/x-www-form-urlencoded', ...HTML };
    const done = await nobody().request('POST', path, { raw: form, headers: type });
    assert.equal(done.status, 200, done.text);
    await tenant.until(id, 'completed');
    const [row] = await answersOf(tenant, id);
    const { answered_at: _, ...output } = row!.output as Json;
    assert.deepEqual(output, { value: `"p'ay`, comment: 'fine', answered_by: 'jane@example.com' });
    const late = await fetch(api.url + path, { method: 'POST', headers: type, body: form });
    assert.equal(late.status, 409);
    assert.match(await late.text(), /<p[^>]*>.* was answered already/);
  });

  test('Approvals: a link answers only its own approval, only until it expires, and cannot be forged', async () => {
    const tenant = api.tenant();
    await tenant.runUntil('waiting', [gated('a')]);
    const fixed = await linkTo(tenant, { value: 'no' });
    const page = await nobody().get(fixed.path);
    assert.deepEqual([/Yes/.test(page.text), /No/.test(page.text)], [false, true]);
    assert.equal((await nobody().post(fixed.path, { value: 'yes' })).status, 400);
    const short = await linkTo(tenant, { expires_in_seconds: 1 });
    await eventually(async () => assert.equal((await nobody().get(short.path)).status, 410));
    assert.equal((await nobody().post(short.path, { value: 'yes' })).status, 410);
    const forged = `${fixed.path.slice(0, -2)}AA`;
    assert.equal((await nobody().get(forged)).status, 404);
    assert.equal((await nobody().post(forged, { value: 'yes' })).status, 404);
    await asked(tenant);
    assert.equal((await nobody().post(fixed.path)).status, 200);
    assert.deepEqual(await listed(tenant), { items: [], total: 0 });
  });

  test('is made by an operator only, for a choice and a question that are there', async () => {
    const tenant = api.tenant();
    await tenant.runUntil('waiting', [gated('a')]);
    const { id } = await asked(tenant);
    const path = `/approvals/${id}/link`;
    expectStatus(await (await keyOf(tenant, 'x', 'approver')).post(path, {}), 403);
    expectStatus(await tenant.post(path, { value: 'maybe' }), 400);
    expectStatus(await tenant.post(path, { expires_in_seconds: 0 }), 400);
    expectStatus(await api.tenant().post(path, {}), 404);
    expectStatus(await answer(tenant, id, { value: 'yes' }), 200);
    expectStatus(await tenant.post(path, {}), 409);
  });
});

test('Explain: what a person is asked, since when and until when, and the request that answers it', async () => {
  const tenant = api.tenant();
  const id = await tenant.runUntil('waiting', [gated('a', { prompt: 'Pay?', timeout: 600_000 })]);
  const { id: approval, waiting_since, deadline } = await asked(tenant);
  const reply = await tenant.get<{ waiting_for: Json[]; next: Json[]; summary: string }>(
    `/instances/${id}/explain`,
  );
  const { waiting_for, next, summary } = expectStatus(reply, 200);
  const [wait] = waiting_for;
  const { kind, since, until, prompt, choices, approval_id } = wait!;
  const seen = [kind, since, until, prompt, choices, approval_id];
  assert.deepEqual(seen, ['approval', waiting_since, deadline, 'Pay?', ['yes', 'no'], approval]);
  assert.match(
    summary,
    /^Step a has waited for the answer of a person since .* \(Pay\?\): yes, no/,
  );
  const action = next.find((one) => one.action === 'answer')!;
  expectStatus(await tenant.post(String(action.path), action.body), 200);
  await tenant.until(id, 'completed');
});
