/** Whose word about the sender of a request counts, and which address is told then. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { addressRanges } from '../../src/config-values.js';
import { RequestHead } from '../../src/http/request-head.js';
import { TrustedProxies } from '../../src/http/trusted-proxies.js';

const proxies = new TrustedProxies(addressRanges('10.0.0.0/8, 192.0.2.7, fd00::/8', 'X'));

describe('the sender of a request', () => {
  for (const [title, peer, forwarded, expected] of [
    ['is who connected, without the header', '203.0.113.5', undefined, '203.0.113.5'],
    ['is who connected, whatever a stranger says', '203.0.113.5', '198.51.100.1', '203.0.113.5'],
    ['is whom a trusted proxy names', '10.1.2.3', '198.51.100.1', '198.51.100.1'],
    [
      'is whom the last proxy names, not who stands before',
      '10.1.2.3',
      '1.1.1.1, 198.51.100.1',
      '198.51.100.1',
    ],
    [
      'is found behind two trusted proxies',
      '10.1.2.3',
      '9.9.9.9, 198.51.100.1, 192.0.2.7',
      '198.51.100.1',
    ],
    ['is the first proxy when that is all there is', '10.1.2.3', '10.9.9.9', '10.9.9.9'],
    ['is the proxy itself when it names nobody', '10.1.2.3', '', '10.1.2.3'],
    ['is the proxy itself when it names no address', '10.1.2.3', 'unknown', '10.1.2.3'],
    ['may have a port', '10.1.2.3', '198.51.100.1:4711', '198.51.100.1'],
    ['may be of the other family', 'fd00::1', '2001:db8::5', '2001:db8::5'],
    ['may stand in brackets with a port', 'fd00::1', '[2001:db8::5]:4711', '2001:db8::5'],
    [
      'is found behind a proxy in the form of both families',
      '::ffff:10.1.2.3',
      '198.51.100.1',
      '198.51.100.1',
    ],
  ] as const) {
    test(title, () => assert.equal(proxies.clientOf(peer, forwarded), expected));
  }

  test('is the last one of all lines of the header', () => {
    const head = new RequestHead('GET', '/', '');
    head.add('x-forwarded-for', '203.0.113.9, 1.1.1.1');
    head.add('x-forwarded-for', '198.51.100.1');
    assert.equal(proxies.clientOf('10.1.2.3', head.header('x-forwarded-for')), '198.51.100.1');
  });

  test('is who connected when no proxy is trusted', () => {
    const none = new TrustedProxies(addressRanges(undefined, 'X'));
    assert.equal(none.clientOf('127.0.0.1', '198.51.100.1'), '127.0.0.1');
  });

  for (const text of ['proxy.example.com', '10.0.0.0/33', '10.0.0.1:80', '*', '010.0.0.1']) {
    test(`cannot be told by "${text}", and the start says so`, () => {
      assert.throws(
        () => addressRanges(text, 'ENGINE_TRUSTED_PROXIES'),
        /ENGINE_TRUSTED_PROXIES: "/,
      );
    });
  }
});
