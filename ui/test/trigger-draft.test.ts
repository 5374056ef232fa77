/** The form of a trigger: what it reads from one, and the requests that it makes. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Trigger } from 'durable-workflow-engine-client';
import {
  changeOf,
  createOf,
  draftOf,
  needsSecret,
  type TriggerDraft,
  viewOf,
} from '../src/pages/triggers/trigger-draft.ts';

const REDACTED = '[REDACTED]';

const stored = (members: Partial<Trigger>): Trigger => ({
  slug: 'in',
  tenant_id: 'acme',
  namespace: 'default',
  sequence_name: null,
  publish: null,
  version: null,
  trigger_type: 'webhook',
  secret: null,
  verify: null,
  config: {},
  enabled: true,
  created_at: '2026-01-01T00:00:00Z',
  updated_at: '2026-01-01T00:00:00Z',
  ...members,
});

const STRIPE = stored({
  publish: { event: 'stripe.{{ body.type }}', key: 'k', payload: { amount: 1 } },
  verify: { scheme: 'stripe', tolerance_ms: 60_000, secret: REDACTED },
});

const withVerify = (draft: TriggerDraft, verify: Partial<TriggerDraft['verify']>) => ({
  ...draft,
  verify: { ...draft.verify, ...verify },
});

test('a new trigger has only the settings that its scheme takes', () => {
  const draft = withVerify(
    { ...draftOf(), slug: 'shopify', effect: 'publish', event: 'order', payload: ' ' },
    { scheme: 'hmac', header: 'x-sig', encoding: 'base64', tolerance: '5000', secret: 's' },
  );
  assert.deepEqual(createOf(draft), {
    slug: 'shopify',
    trigger_type: 'webhook',
    namespace: 'default',
    publish: { event: 'order' },
    verify: {
      scheme: 'hmac',
      header: 'x-sig',
      algorithm: 'sha256',
      encoding: 'base64',
      secret: 's',
    },
  });
});

test('without a new secret the verification stays as it is, and its change needs one', () => {
  const draft = draftOf(STRIPE);
  const { verify, secret } = changeOf(draft, STRIPE);
  assert.deepEqual([verify, secret], [undefined, undefined]);
  assert.equal(needsSecret(draft, STRIPE), false);
  assert.equal(needsSecret(withVerify(draft, { tolerance: '90000' }), STRIPE), true);
  assert.equal(needsSecret(withVerify(draft, { scheme: 'github' }), STRIPE), true);
});

test('a new secret is stored beside the old one, if that was typed', () => {
  const draft = withVerify(draftOf(STRIPE), { secret: 'new' });
  const settings = { scheme: 'stripe', tolerance_ms: 60_000 };
  assert.deepEqual(changeOf(draft, STRIPE).verify, { ...settings, secret: 'new' });
  const both = changeOf(withVerify(draft, { oldSecret: 'old' }), STRIPE).verify;
  assert.deepEqual(both, { ...settings, secret: ['new', 'old'] });
});

test('our signature stays the member that the trigger has', () => {
  const plain = stored({ sequence_name: 'order', secret: REDACTED });
  const changed = changeOf(withVerify(draftOf(plain), { secret: 'new' }), plain);
  assert.deepEqual([changed.secret, changed.verify], ['new', undefined]);
  const own = stored({ sequence_name: 'order', verify: { scheme: 'engine', secret: REDACTED } });
  const kept = changeOf(withVerify(draftOf(own), { secret: 'new' }), own);
  assert.deepEqual(kept.verify, { scheme: 'engine', secret: 'new' });
});

test('a change of the effect removes the other one, and a pinned version with it', () => {
  const starts = stored({ sequence_name: 'order', version: 2, secret: REDACTED });
  const publishing = { ...draftOf(starts), effect: 'publish' as const, event: 'paid' };
  assert.deepEqual(changeOf(publishing, starts), {
    publish: { event: 'paid' },
    sequence_name: null,
    version: null,
  });
  const starting = { ...draftOf(STRIPE), effect: 'start' as const, sequence: 'order' };
  assert.deepEqual(changeOf(starting, STRIPE), { sequence_name: 'order', publish: null });
});

test('webhooks can be refused, and no secret is part of what versions are compared by', () => {
  const none = withVerify(draftOf(STRIPE), { scheme: '' });
  const { secret, verify } = changeOf(none, STRIPE);
  assert.deepEqual([secret, verify], [null, null]);
  const typed = withVerify(draftOf(STRIPE), { secret: 'new' });
  assert.deepEqual(viewOf(typed), viewOf(draftOf(STRIPE)));
});
