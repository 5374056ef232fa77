/** The header `traceparent`: what is taken, what is ignored, and what is handed on. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  formatTraceparent,
  keptTraceparent,
  parseTraceparent,
} from '../../src/core/traceparent.js';
import { RequestHead } from '../../src/http/request-head.js';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';

test('a header of version 00 is read and written back as it is', () => {
  const header = `00-${TRACE}-${SPAN}-01`;
  const context = parseTraceparent(header);
  assert.deepEqual(context, { traceId: TRACE, spanId: SPAN, flags: '01' });
  assert.equal(formatTraceparent(context!), header);
  assert.equal(keptTraceparent(header), header);
  assert.equal(keptTraceparent(` ${header}\t`), header);
});

test('of a later version counts what version 00 has', () => {
  assert.equal(keptTraceparent(`01-${TRACE}-${SPAN}-01`), `00-${TRACE}-${SPAN}-01`);
  assert.equal(keptTraceparent(`cc-${TRACE}-${SPAN}-ff-more-yet`), `00-${TRACE}-${SPAN}-01`);
  assert.equal(keptTraceparent(`cc-${TRACE}-${SPAN}-fe-`), `00-${TRACE}-${SPAN}-00`);
});

test('a malformed header is as good as none', () => {
  const malformed = [
    undefined,
    '',
    'garbage',
    `00-${TRACE}-${SPAN}`,
    `00-${TRACE}-${SPAN}-01-more`,
    `00-${TRACE}-${SPAN}-01-`,
    `ff-${TRACE}-${SPAN}-01`,
    `0-${TRACE}-${SPAN}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${TRACE.slice(1)}-${SPAN}-01`,
    `00-${TRACE}0-${SPAN}-01`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE}-${SPAN}-1`,
    `00-${TRACE}-${SPAN}-0g`,
    `00-${TRACE.replace('a', 'g')}-${SPAN}-01`,
    `cc-${TRACE}-${SPAN}-01.more`,
    `00_${TRACE}_${SPAN}_01`,
    `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`,
  ];
  for (const header of malformed) assert.equal(keptTraceparent(header), undefined, header);
});

test('of two headers nobody knows which one counts: both are ignored', () => {
  const head = new RequestHead('POST', '/api/v1/instances', '');
  head.add('traceparent', `00-${TRACE}-${SPAN}-01`);
  assert.equal(keptTraceparent(head.header('traceparent')), `00-${TRACE}-${SPAN}-01`);
  head.add('traceparent', `00-${SPAN}${SPAN}-${SPAN}-01`);
  assert.equal(keptTraceparent(head.header('traceparent')), undefined);
});
