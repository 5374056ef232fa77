/** How the answer of a list says where it goes on. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from '../../src/db/reads/reader.js';
import { pageReply } from '../../src/http/operations/operation.js';
import { frontCall } from '../helpers/front-call.js';

const PATH = '/api/v1/instances';

/** Its headers by name, for a page of this kind. */
function headersOf(search: string, page: Partial<Page>): Record<string, string> {
  const call = frontCall('instances.list', { path: PATH, search });
  const whole = { text: '[]', count: 0, isCut: false, isWalked: false, ...page };
  const reply = pageReply(call, call.query, whole);
  assert.equal(reply.status, 200);
  return Object.fromEntries(reply.headers ?? []);
}

const linkTo = (query: string) => `<${PATH}?${query}>; rel="next"`;

test('a page that ends because it may look no further links on, however short it is', () => {
  for (const count of [0, 3]) {
    const headers = headersOf('limit=50&namespace=rare', {
      count,
      isCut: true,
      isWalked: true,
      cursor: 'place',
    });
    assert.deepEqual(headers, {
      link: linkTo('limit=50&namespace=rare&cursor=place'),
      'x-next-cursor': 'place',
    });
  }
});

test('such a page goes on by its cursor also for who counts by offsets', () => {
  const page = { isCut: true, isWalked: true, cursor: 'place' };
  assert.equal(headersOf('offset=10&limit=5', page).link, linkTo('limit=5&cursor=place'));
});

test('a short page that has reached the end has no link', () => {
  assert.deepEqual(headersOf('limit=50', { count: 3, cursor: 'place' }), {});
});
