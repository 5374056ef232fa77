/**
 * What somebody new to the server gets wrong in requests, one row each: every mistake is refused, by a
 * message that says where it is and what was probably meant, and changes nothing.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { beforeWith, type Json, newHandler, step, useSharedApi } from '../helpers/api.js';
import type { Client } from '../helpers/client.js';

const api = useSharedApi();
const tenant = api.tenant();

/** What a row may name. */
const known = { waiting: '', failed: '', sequence: '' };
let before: string;

beforeWith(api, async () => {
  known.sequence = await tenant.sequence([step('a', newHandler())], { name: 'orders' });
  known.waiting = await tenant.create(known.sequence);
  known.failed = await tenant.runUntil('failed', [step('a', 'fail')]);
  await tenant.until(known.waiting, 'waiting');
  await tenant.post(`/instances/${known.waiting}/checkpoints`, { checkpoint_data: 1 });
  before = await everything();
});

/** Everything of the tenant that one of these mistakes could have changed. */
async function everything(): Promise<string> {
  const paths = [
    '/instances',
    '/sequences',
    `/instances/${known.waiting}/audit`,
    `/instances/${known.waiting}/checkpoints`,
  ];
  const texts = await Promise.all(paths.map(async (path) => (await tenant.get(path)).text));
  const keys = await api.root.get(`/api-keys?tenant_id=${tenant.name}`);
  return [...texts, keys.text].join('\n');
}

interface Mistake {
  readonly request: string | (() => string);
  readonly body?: Json | (() => Json);
  readonly status?: number;
  readonly by?: () => Client;
  /** Words of the message. */
  readonly says: readonly string[];
}

const root = () => api.root;
const NO_WAY = 'did you mean';

const MISTAKES: Readonly<Record<string, Mistake>> = {
  // Changes of many: a filter that is not understood would reach everything.
  'a misspelt filter of a bulk change': {
    request: 'PATCH /instances/bulk/state',
    body: { filter: { namespce: 'x' }, state: 'paused' },
    says: ['filter.namespce is unknown', `${NO_WAY} namespace?`],
  },
  'the same, though only for a dry run': {
    request: 'PATCH /instances/bulk/state',
    body: { filter: { namespce: 'x' }, state: 'paused', dry_run: true },
    says: ['filter.namespce', `${NO_WAY} namespace?`],
  },
  'a misspelt filter of what lacks other things, too': {
    request: 'POST /instances/batch-action',
    body: { filter: { namespce: 'x' }, dry_run: true },
    says: ['filter.namespce is unknown', `${NO_WAY} namespace?`],
  },
  'a filter whose value the caller lacks': {
    request: 'PATCH /instances/bulk/state',
    body: { filter: { namespace: '' }, state: 'cancelled' },
    says: ['filter.namespace must not be'],
  },
  'a filter by state in the singular': {
    request: 'PATCH /instances/bulk/state',
    body: { filter: { state: 'failed' }, state: 'cancelled' },
    says: ['filter.state is unknown', `${NO_WAY} states?`],
  },
  'a filter in camel case': {
    request: 'POST /instances/batch-action',
    body: { filter: { sequenceId: known.sequence }, action: 'cancel' },
    says: ['filter.sequenceId', `${NO_WAY} sequence_id?`],
  },
  'a filter beside the filter': {
    request: 'PATCH /instances/bulk/state',
    body: { filter: {}, namespace: 'x', state: 'paused' },
    says: ['namespace is unknown', 'there are filter, state, dry_run'],
  },
  'a bulk change without a filter': {
    request: 'PATCH /instances/bulk/state',
    body: { state: 'paused' },
    says: ['filter is required'],
  },
  'filters for a filter': {
    request: 'PATCH /instances/bulk/state',
    body: { filters: { namespace: 'x' }, state: 'paused' },
    says: ['filters is unknown', `${NO_WAY} filter?`],
  },
  'one state where a list is asked for': {
    request: 'PATCH /instances/bulk/state',
    body: { filter: { states: 'waiting' }, state: 'paused' },
    says: ['filter.states must be an array'],
  },
  'a state as Americans spell it': {
    request: 'PATCH /instances/bulk/state',
    body: { filter: {}, state: 'canceled' },
    says: ['state must be one of', `${NO_WAY} cancelled?`],
  },
  'a dry run with a hyphen': {
    request: 'PATCH /instances/bulk/reschedule',
    body: { filter: {}, offset_secs: 60, 'dry-run': true },
    says: ['dry-run is unknown', `${NO_WAY} dry_run?`],
  },
  'seconds by another name': {
    request: 'PATCH /instances/bulk/reschedule',
    body: { filter: {}, offset_seconds: 60 },
    says: ['offset_seconds is unknown', `${NO_WAY} offset_secs?`],
  },
  'a dry run that is a text': {
    request: 'POST /instances/batch-action',
    body: { filter: {}, action: 'cancel', dry_run: 'true' },
    says: ['dry_run must be a boolean'],
  },
  'an action that there is not': {
    request: 'POST /instances/batch-action',
    body: { filter: {}, action: 'restart' },
    says: ['action must be one of retry, pause, resume, cancel, signal'],
  },
  'a misspelt limit of an action': {
    request: 'POST /instances/batch-action',
    body: { filter: {}, action: 'cancel', limt: 1 },
    says: ['limt is unknown', `${NO_WAY} limit?`],
  },
  'the action signal by the type of single signals': {
    request: 'POST /instances/batch-action',
    body: { filter: {}, action: 'signal', signal: 'paid' },
    says: ['signal is unknown', `${NO_WAY} signal_type?`],
  },
  'a time that is a day': {
    request: 'POST /instances/batch-action',
    body: { filter: { created_before: '2026-01-01' }, action: 'cancel' },
    says: ['filter.created_before must be an RFC 3339 timestamp'],
  },
  'a dry run of a whole batch of creations': {
    request: 'POST /instances/batch',
    body: () => ({ instances: [tenant.creation(known.sequence)], dry_run: true }),
    says: ['dry_run is unknown', 'there is instances'],
  },
  'a misspelt number of checkpoints to keep': {
    request: () => `POST /instances/${known.waiting}/checkpoints/prune`,
    body: { kep: 1 },
    says: ['kep is unknown', `${NO_WAY} keep?`],
  },
  'a misspelt dry run of a deletion': {
    request: () => `DELETE /sequences/${known.sequence}?dryrun=true`,
    says: ['the parameter dryrun is unknown', `${NO_WAY} dry_run?`],
  },
  'a deletion of what is in use': {
    request: () => `DELETE /sequences/${known.sequence}`,
    status: 409,
    says: ['has 1 live and 0 failed instances'],
  },

  // Keys: nothing is granted by mistake.
  'a capability in the singular': {
    request: 'POST /api-keys',
    body: () => ({ tenant_id: tenant.name, capability: ['worker'] }),
    by: root,
    says: ['capability is unknown', `${NO_WAY} capabilities?`],
  },
  'a key without capabilities': {
    request: 'POST /api-keys',
    body: () => ({ tenant_id: tenant.name }),
    by: root,
    says: ['capabilities is required', 'operator', 'worker', 'starter'],
  },
  'an empty list of capabilities': {
    request: 'POST /api-keys',
    body: () => ({ tenant_id: tenant.name, capabilities: [] }),
    by: root,
    says: ['capabilities must not be empty'],
  },
  'a capability that there is not': {
    request: 'POST /api-keys',
    body: () => ({ tenant_id: tenant.name, capabilities: ['workers'] }),
    by: root,
    says: ['capabilities[0] must be one of', `${NO_WAY} worker?`],
  },
  'an expiry by another name': {
    request: 'POST /api-keys',
    body: () => ({ tenant_id: tenant.name, capabilities: ['worker'], expire_at: null }),
    by: root,
    says: ['expire_at is unknown', `${NO_WAY} expires_at?`],
  },

  // Lists: a filter that is not understood lists everything.
  'states where a list asks for state': {
    request: 'GET /instances?states=failed',
    says: ['the parameter states is unknown', `${NO_WAY} state?`],
  },
  'status for state': {
    request: 'GET /instances?status=failed',
    says: ['the parameter status is unknown', `${NO_WAY} state?`],
  },
  'a state that there is not': {
    request: 'GET /instances?state=complete',
    says: ['state[0] must be one of', `${NO_WAY} completed?`],
  },
  'metadata without a key': {
    request: 'GET /instances?metadata=red',
    says: ['the parameter metadata is unknown', 'metadata.<key>'],
  },
  'a misspelt limit of a list': {
    request: 'GET /instances/dlq?limits=5',
    says: ['the parameter limits is unknown', `${NO_WAY} limit?`],
  },
  'pages by number': {
    request: 'GET /sequences?page=2',
    says: ['the parameter page is unknown', 'offset', 'limit', 'cursor'],
  },
  'a cursor that somebody made up': {
    request: 'GET /instances?cursor=2',
    says: ['cursor is not one that an earlier page of this list gave'],
  },
  'an offset beside a cursor': {
    request: 'GET /instances?cursor=2&offset=10',
    says: ['offset', 'cursor'],
  },
  'a time that is no time': {
    request: 'GET /instances?created_after=yesterday',
    says: ['created_after must be an RFC 3339 timestamp'],
  },
  'a handler by half its name': {
    request: 'GET /workers/tasks?handler=charge',
    says: ['the parameter handler is unknown', `${NO_WAY} handler_name?`],
  },
  'a misspelt namespace of a list': {
    request: 'GET /sequences?namspace=default',
    says: ['the parameter namspace is unknown', `${NO_WAY} namespace?`],
  },
  'a filter that schedules do not have': {
    request: 'GET /cron?tenant=me',
    says: ['the parameter tenant is unknown', `${NO_WAY} tenant_id?`],
  },
  'the offset of outputs, misspelt': {
    request: () => `GET /instances/${known.waiting}/outputs?ofset=10`,
    says: ['the parameter ofset is unknown', `${NO_WAY} offset?`],
  },
};

for (const [what, { request, body, status = 400, by, says }] of Object.entries(MISTAKES)) {
  test(`${what} is ${status} with words that help, and changes nothing`, async () => {
    const [method = '', path = ''] = (typeof request === 'string' ? request : request()).split(' ');
    const sent = typeof body === 'function' ? body() : body;
    const reply = await (by?.() ?? tenant).request<{ error: string }>(method, path, {
      ...(sent === undefined ? {} : { body: sent }),
    });
    assert.equal(reply.status, status, reply.text);
    for (const words of says) {
      assert.ok(reply.body.error.includes(words), `${reply.body.error}\nlacks: ${words}`);
    }
    assert.equal(await everything(), before);
  });
}

test('there are mistakes enough, and most of them end in a suggestion', () => {
  const rows = Object.values(MISTAKES);
  assert.ok(rows.length >= 25);
  assert.ok(rows.filter(({ says }) => says.some((words) => words.startsWith(NO_WAY))).length >= 20);
});
