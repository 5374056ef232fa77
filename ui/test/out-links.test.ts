/** Links from the dashboard to other systems. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { outLinksOf, traceIdOf } from '../src/lib/out-links.ts';

const LOGS = { label: 'Logs', url: 'https://logs.example/?q={instance_id}&by={tenant_id}' };
const TRACE = { label: 'Trace', url: 'https://traces.example/{trace_id}' };
const STEP = { label: 'Step', url: 'https://logs.example/{block_id}' };
const LINKS = [
  { ...LOGS, on: 'instance' as const },
  { ...TRACE, on: 'instance' as const },
  { ...STEP, on: 'step' as const },
];

test('values are put into a link so that they cannot change it', () => {
  const values = { instance_id: 'i', tenant_id: 'a&b=/../#', trace_id: 'c0ffee' };
  assert.deepEqual(outLinksOf(LINKS, 'instance', values), [
    { label: 'Logs', href: 'https://logs.example/?q=i&by=a%26b%3D%2F..%2F%23' },
    { label: 'Trace', href: 'https://traces.example/c0ffee' },
  ]);
  assert.deepEqual(outLinksOf(LINKS, 'step', { block_id: 'charge' }), [
    { label: 'Step', href: 'https://logs.example/charge' },
  ]);
});

test('a link with a value that is not known is left out', () => {
  const values = { instance_id: 'i', tenant_id: 't', trace_id: traceIdOf(undefined) };
  assert.deepEqual(
    outLinksOf(LINKS, 'instance', values).map(({ label }) => label),
    ['Logs'],
  );
  assert.equal(traceIdOf('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01')?.length, 32);
});
