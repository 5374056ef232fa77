/** The address guard: what counts as public, what a URL may say, and what a socket's lookup returns. */

import assert from 'node:assert/strict';
import type { LookupAddress } from 'node:dns';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  BlockedAddressError,
  checkUrl,
  guardedLookup,
  isPublicAddress,
  type Resolver,
  systemResolver,
  UnresolvableHostError,
} from '../../src/handlers/address-guard.js';
import { outboundPolicy } from '../../src/handlers/outbound-rules.js';
import { check } from '../helpers/properties.js';
import { FORBIDDEN_IPV4, FORBIDDEN_IPV6, spellings } from '../helpers/ssrf-vectors.js';

const PUBLIC = [
  '1.1.1.1',
  '8.8.8.8',
  '93.184.216.34',
  '172.32.0.1',
  '100.128.0.1',
  '223.255.255.1',
];
const PUBLIC_IPV6 = ['2606:4700::1111', '2a00:1450:4001:80b::200e', '2001:4860:4860::8888'];

test('addresses of the public internet are public', () => {
  for (const address of [...PUBLIC, ...PUBLIC_IPV6]) assert.equal(isPublicAddress(address), true);
});

test('addresses of every special range are not public', () => {
  for (const address of [...FORBIDDEN_IPV4, ...FORBIDDEN_IPV6]) {
    assert.equal(isPublicAddress(address), false, address);
  }
});

test('an IPv6 address that wraps an IPv4 address is not public, whatever it wraps', () => {
  for (const address of [
    '::ffff:8.8.8.8',
    '::8.8.8.8',
    '64:ff9b::808:808',
    '2002:808:808::1',
    '2001:0:4136:e378:8000:63bf:f7f7:f7f7',
  ]) {
    assert.equal(isPublicAddress(address), false, address);
  }
});

test('an address with a zone, and what is not an address, is not public', () => {
  for (const text of ['fe80::1%eth0', 'example.com', '', '1.1.1', '0x01010101', '[2606:4700::1]']) {
    assert.equal(isPublicAddress(text), false, text);
  }
});

test('no address inside a private block is public', (t) => {
  const byte = fc.integer({ min: 0, max: 255 });
  const prefix = fc.constantFrom([10], [127], [192, 168], [169, 254], [0], [198, 18], [100, 100]);
  check(t, 100, fc.tuple(prefix, byte, byte, byte), ([head, b, c, d]) => {
    assert.equal(isPublicAddress([...head, b, c, d].slice(0, 4).join('.')), false);
  });
});

test('every spelling of a forbidden address is refused in a url', () => {
  for (const address of FORBIDDEN_IPV4) {
    for (const host of spellings(address)) {
      assert.equal(checkUrl(`http://${host}/`, isPublicAddress).ok, false, host);
    }
  }
  for (const address of FORBIDDEN_IPV6) {
    assert.equal(checkUrl(`https://[${address}]/`, isPublicAddress).ok, false, address);
  }
});

test('a public address and an ordinary name are accepted in a url', () => {
  for (const url of [
    'http://1.1.1.1/',
    'https://[2606:4700::1111]:8443/',
    'http://example.com./a?b#c',
  ]) {
    assert.equal(checkUrl(url, isPublicAddress).ok, true, url);
  }
});

test('names that mean this machine are refused without a lookup', () => {
  for (const host of ['localhost', 'LOCALHOST', 'localhost.', 'a.localhost', 'a.b.localhost.']) {
    assert.equal(checkUrl(`http://${host}:1234/`, isPublicAddress).ok, false, host);
  }
  assert.equal(checkUrl('http://notlocalhost/', isPublicAddress).ok, true);
});

test('schemes other than http and https, credentials and malformed urls are always refused', () => {
  const anyAddress = policyOf(true);
  for (const url of [
    'file:///etc/passwd',
    'ftp://example.com/',
    'gopher://example.com/',
    'data:text/plain,x',
    'javascript:0',
    'ws://example.com/',
    'http://user@example.com/',
    'http://user:secret@example.com/',
    'http://example.com@127.0.0.1/',
    'http://:secret@example.com/',
    'http://[fe80::1%25eth0]/',
    'http://4294967296/',
    'http://',
    '//example.com/',
    'not a url',
    '',
  ]) {
    assert.equal(checkUrl(url, anyAddress).ok, false, url);
  }
});

test('the switch for internal urls accepts every address', () => {
  assert.equal(checkUrl('http://127.0.0.1/', policyOf(true)).ok, true);
  assert.equal(checkUrl('http://localhost/', policyOf(true)).ok, true);
  assert.equal(checkUrl('http://127.0.0.1/', policyOf(false)).ok, false);
});

test('a relative url is judged as what it leads to', () => {
  const base = new URL('http://example.com/a/b');
  const relative = checkUrl('../c', isPublicAddress, base);
  assert.equal(relative.ok && relative.url.href, 'http://example.com/c');
  assert.equal(checkUrl('//127.0.0.1/c', isPublicAddress, base).ok, false);
});

test('a lookup returns exactly the addresses that were judged, in both forms', async () => {
  const addresses = [
    { address: '1.1.1.1', family: 4 },
    { address: '2606:4700::1111', family: 6 },
  ];
  const resolve: Resolver = async () => addresses;
  assert.deepEqual(await lookupAll('example.com', resolve), addresses);
  assert.deepEqual(await lookupOne('example.com', resolve), addresses[0]);
});

test('one forbidden address among public ones refuses the name', async () => {
  const resolve: Resolver = async () => [
    { address: '1.1.1.1', family: 4 },
    { address: '10.0.0.1', family: 4 },
  ];
  await assert.rejects(lookupAll('example.com', resolve), BlockedAddressError);
});

test('a name that changes its answer is judged by each answer', async () => {
  const answers = ['1.1.1.1', '127.0.0.1'];
  const resolve: Resolver = async () => [{ address: answers.shift() ?? '', family: 4 }];
  assert.equal((await lookupOne('rebind.example', resolve)).address, '1.1.1.1');
  await assert.rejects(lookupOne('rebind.example', resolve), BlockedAddressError);
});

test('a refusal does not tell what the name resolves to', async () => {
  const resolve: Resolver = async () => [{ address: '10.20.30.40', family: 4 }];
  const error = await lookupAll('db.example', resolve).catch((cause: Error) => cause);
  assert.ok(error instanceof BlockedAddressError);
  assert.doesNotMatch(error.message, /10\.20/);
});

test('a name that does not exist is told from a name server that does not answer', async () => {
  const failing =
    (code: string): Resolver =>
    async () => {
      throw Object.assign(new Error(code), { code });
    };
  await assert.rejects(lookupAll('a.example', failing('ENOTFOUND')), UnresolvableHostError);
  await assert.rejects(lookupAll('a.example', failing('EAI_AGAIN')), { code: 'EAI_AGAIN' });
  await assert.rejects(
    lookupAll('a.example', async () => []),
    UnresolvableHostError,
  );
});

test('names under invalid do not exist, and no name server is asked', async () => {
  const resolve: Resolver = () => assert.fail('asked');
  await assert.rejects(lookupAll('nowhere.invalid', resolve), UnresolvableHostError);
});

test('the system resolver answers every address of a name', async () => {
  const addresses = await systemResolver('localhost');
  assert.ok(addresses.some(({ address }) => address === '127.0.0.1' || address === '::1'));
});

const policyOf = (allowInternalUrls: boolean) =>
  outboundPolicy({ allowInternalUrls, allow: [], deny: [] });

function lookupAll(hostname: string, resolve: Resolver): Promise<LookupAddress[]> {
  return new Promise((fulfil, reject) => {
    guardedLookup(resolve, isPublicAddress)(hostname, { all: true }, (error, addresses) => {
      if (error !== null) reject(error);
      else fulfil(addresses as LookupAddress[]);
    });
  });
}

function lookupOne(hostname: string, resolve: Resolver): Promise<LookupAddress> {
  return new Promise((fulfil, reject) => {
    guardedLookup(resolve, isPublicAddress)(hostname, {}, (error, address, family) => {
      if (error !== null) reject(error);
      else fulfil({ address: address as string, family: family ?? 0 });
    });
  });
}
