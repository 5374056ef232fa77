/** Who connects and sends, through which proxies, and which addresses may be connected to. */

import assert from 'node:assert/strict';
import type { LookupAddress } from 'node:dns';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { SenderLimit, WEBHOOKS_PER_SECOND_MAX } from '../../actors/trigger/front/sender-limit.js';
import { EngineError, unavailable } from '../../src/base/errors.js';
import { LIMITS } from '../../src/base/limits.js';
import {
  BlockedAddressError,
  checkUrl,
  guardedLookup,
  isPublicAddress,
  type Resolver,
  UnresolvableHostError,
} from '../../src/handlers/address-guard.js';
import { outboundPolicy } from '../../src/handlers/outbound-rules.js';
import { AddressCensus, openByAddress } from '../../src/http/address-census.js';
import {
  Connections,
  connectionBounds,
  SpareConnections,
  TrustedProxies,
} from '../../src/http/connections.js';
import { RequestHead } from '../../src/http/request-head.js';
import { addressRanges } from '../../src/server/config-values.js';
import { column } from '../helpers/columns.js';
import { check } from '../helpers/properties.js';
import {
  FORBIDDEN_IPV4,
  FORBIDDEN_IPV6,
  type NameVector,
  nameVectors,
  PUBLIC_ADDRESS,
  rebindingVectors,
  redirectVectors,
  urlVectors,
} from '../helpers/ssrf-vectors.js';
import { casesIn } from '../helpers/table.js';

const QUIET = { warn: () => {} };

describe('connections', () => {
  for (const [title, wanted, descriptors, expected] of [
    ['as many as wanted', { max: 1_000, perAddressMax: 0 }, 100_000, [1_000, 750]],
    ['with a reserve of descriptors', { max: 10_000, perAddressMax: 0 }, 4_096, [3_584, 2_688]],
    ['half of few descriptors', { max: 10_000, perAddressMax: 0 }, 256, [128, 96]],
    ['where nobody knows the limit', { max: 10_000, perAddressMax: 0 }, undefined, [10_000, 7_500]],
    ['of an address as set', { max: 100, perAddressMax: 7 }, 100_000, [100, 7]],
    ['of an address never more than all', { max: 100, perAddressMax: 500 }, 100_000, [100, 100]],
    ['at least one', { max: 1, perAddressMax: 0 }, 1, [1, 1]],
  ] as const) {
    test(`are bounded: ${title}`, () => {
      const { max, perAddressMax } = connectionBounds(wanted, descriptors);
      assert.deepEqual([max, perAddressMax], expected);
    });
  }

  test('of one address leave room for others, and all together have a bound', () => {
    const warned: object[] = [];
    const log = { warn: (fields: object) => warned.push(fields) };
    const connections = new Connections({ max: 3, perAddressMax: 2 }, log);
    const first = connections.admit('a', 0);
    connections.admit('a', 0);
    const third = connections.admit('a', 0);
    assert.ok(third instanceof EngineError);
    assert.deepEqual([third.status, third.code], [429, 'ENG_TOO_MANY_CONNECTIONS']);
    assert.match(third.message, /\b2 of this address\b.*ENGINE_MAX_CONNECTIONS_PER_ADDRESS/);
    assert.equal(typeof connections.admit('b', 0), 'function');
    const fifth = connections.admit('c', 0);
    assert.ok(fifth instanceof EngineError);
    assert.deepEqual([fifth.status, fifth.code], [503, 'ENG_OVERLOADED']);
    assert.match(fifth.message, /\b3 connections\b.*ENGINE_MAX_CONNECTIONS/);
    assert.deepEqual([connections.open, connections.refused], [3, 2]);
    // A crowd is one line.
    assert.equal(warned.length, 1);
    if (typeof first === 'function') first();
    assert.equal(typeof connections.admit('c', 0), 'function');
  });

  test('beyond the bounds that say nothing are closed soon, or for others, of whose address there are most first', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const spares = new SpareConnections();
    const closed: string[] = [];
    const hold = (address: string, name: string) => {
      const spare = {
        address,
        refusal: unavailable('ENG_OVERLOADED', ''),
        close: () => closed.push(name),
      };
      spares.hold(spare);
      return spare;
    };
    const probe = hold('probe', 'probe');
    for (let n = 0; n <= LIMITS.spareConnections; n += 1) hold('crowd', `crowd-${n}`);
    assert.deepEqual(closed, ['crowd-0', 'crowd-1']);
    assert.equal(spares.count, LIMITS.spareConnections);
    assert.deepEqual([spares.letGo(probe), spares.letGo(probe)], [true, false]);
    t.mock.timers.tick(LIMITS.spareSilenceMs);
    assert.ok(!closed.includes('probe'));
    assert.deepEqual([closed.length, spares.count], [LIMITS.spareConnections + 1, 0]);
  });

  test('whose end nobody is told of keep their places until the system is asked', () => {
    const connections = new Connections({ max: 2, perAddressMax: 1 }, QUIET);
    assert.equal(connections.admitAnonymous('7f000001', false, 1, 0), undefined);
    assert.equal(connections.open, 1);
    assert.ok(connections.admitAnonymous('7f000001', false, 1, 0) instanceof EngineError);
    connections.left();
    assert.equal(connections.open, 0);
    // Nobody listens on port 1, so nothing is open there.
    assert.equal(connections.admitAnonymous('7f000001', false, 1, 0), undefined);
    assert.equal(connections.open, 1);
  });
});

const HEAD = '  sl  local_address rem_address   st tx_queue rx_queue';
const line = (local: string, remote: string, state: string) =>
  `   0: ${local} ${remote} ${state} 00000000:00000000 00:00000000 00000000`;
const LOOPBACK_6 = '00000000000000000000000001000000';
const MAPPED = '0000000000000000FFFF00000100007F';

describe('a census of connections', () => {
  test('counts those to the port that are open, by address', () => {
    const tcp = [
      HEAD,
      line('0100007F:1F90', '00000000:0000', '0A'),
      line('0100007F:1F90', '0100007F:C001', '01'),
      line('0100007F:1F90', '0100007F:C002', '08'),
      line('0100007F:1F90', '0100007F:C003', '06'),
      line('0100007F:1F90', '0200007F:C004', '01'),
      line('0100007F:1F91', '0100007F:C005', '01'),
      line('0100007F:C001', '0100007F:1F90', '01'),
    ].join('\n');
    const tcp6 = [
      HEAD,
      line(`${LOOPBACK_6}:1F90`, `${LOOPBACK_6}:C001`, '01'),
      line(`${MAPPED}:1F90`, `${MAPPED}:C002`, '01'),
    ].join('\n');
    const counts = openByAddress([tcp, tcp6], 8080);
    const v6 = '00000000000000000000000000000001';
    assert.deepEqual(Object.fromEntries(counts), { '7f000001': 3, '7f000002': 1, [v6]: 1 });
  });

  test('gives back the places of addresses whose connections are gone, and as many as have left', () => {
    const tcp = [HEAD, line('0100007F:1F90', '0100007F:C001', '01')].join('\n');
    const census = new AddressCensus(() => [tcp]);
    const given: string[] = [];
    for (const address of ['7f000001', '7f000002', '7f000002', '7f000002']) {
      census.came(address, () => given.push(address));
    }
    assert.equal(
      census.settle(8080, 0, () => 0),
      false,
    );
    census.left();
    census.left();
    assert.deepEqual([census.stale, census.settle(8080, 0, () => 0)], [2, true]);
    assert.deepEqual(given, ['7f000002', '7f000002']);
    assert.equal(census.stale, 0);
    census.left();
    // Not again at once.
    assert.deepEqual(
      [census.settle(8080, 100, () => 0), census.settle(8080, 300, () => 0)],
      [false, true],
    );
    assert.equal(given.length, 3);
  });
});

const proxies = new TrustedProxies(addressRanges('10.0.0.0/8, 192.0.2.7, fd00::/8', 'X'));

describe('the sender of a request', () => {
  // Title, who connected, the header, and who is told.
  for (const [title = '', peer = '', forwarded = '', expected] of casesIn(`
is who connected, whatever a stranger says          | 203.0.113.5       | 198.51.100.1                      | 203.0.113.5
is whom a trusted proxy names                       | 10.1.2.3          | 198.51.100.1                      | 198.51.100.1
is whom the last proxy names, not who stands before | 10.1.2.3          | 1.1.1.1, 198.51.100.1             | 198.51.100.1
is found behind two trusted proxies                 | 10.1.2.3          | 9.9.9.9, 198.51.100.1, 192.0.2.7  | 198.51.100.1
is the first proxy when that is all there is        | 10.1.2.3          | 10.9.9.9                          | 10.9.9.9
is the proxy itself when it names nobody            | 10.1.2.3          |                                   | 10.1.2.3
is the proxy itself when it names no address        | 10.1.2.3          | unknown                           | 10.1.2.3
may have a port                                     | 10.1.2.3          | 198.51.100.1:4711                 | 198.51.100.1
may be of the other family                          | fd00::1           | 2001:db8::5                       | 2001:db8::5
may stand in brackets with a port                   | fd00::1           | [2001:db8::5]:4711                | 2001:db8::5
is found behind a proxy in the form of both families | ::ffff:10.1.2.3  | 198.51.100.1                      | 198.51.100.1
`)) {
    test(title, () => assert.equal(proxies.clientOf(peer, forwarded), expected));
  }

  test('is the last one of all lines of the header', () => {
    const head = new RequestHead('GET', '/', '');
    head.add('x-forwarded-for', '203.0.113.9, 1.1.1.1');
    head.add('x-forwarded-for', '198.51.100.1');
    assert.equal(proxies.clientOf('10.1.2.3', head.header('x-forwarded-for')), '198.51.100.1');
  });

  test('is who connected when no proxy is trusted, or without the header', () => {
    const none = new TrustedProxies(addressRanges(undefined, 'X'));
    assert.equal(none.clientOf('127.0.0.1', '198.51.100.1'), '127.0.0.1');
    assert.equal(proxies.clientOf('203.0.113.5', undefined), '203.0.113.5');
  });

  test('cannot be told by what is no address or range, and the start says so', () => {
    for (const text of ['proxy.example.com', '10.0.0.0/33', '10.0.0.1:80', '*', '010.0.0.1']) {
      const read = () => addressRanges(text, 'ENGINE_TRUSTED_PROXIES');
      assert.throws(read, /ENGINE_TRUSTED_PROXIES: "/, text);
    }
  });
});

test('a sender is refused beyond the limit, and again let in with the next second', () => {
  const limit = new SenderLimit();
  for (let i = 0; i < WEBHOOKS_PER_SECOND_MAX; i += 1) limit.take('a', 5_000 + i);
  assert.throws(() => limit.take('a', 5_999), { status: 429, retryAfterMs: 1_000 });
  limit.take('b', 5_999);
  limit.take('a', 6_000);
});

const PUBLIC = `1.1.1.1 8.8.8.8 93.184.216.34 172.32.0.1 100.128.0.1 223.255.255.1
  2606:4700::1111 2a00:1450:4001:80b::200e 2001:4860:4860::8888`;
const WRAPPED = `::ffff:8.8.8.8 ::8.8.8.8 64:ff9b::808:808 2002:808:808::1
  2001:0:4136:e378:8000:63bf:f7f7:f7f7`;
const NO_ADDRESS = ['fe80::1%eth0', 'example.com', '', '1.1.1', '0x01010101', '[2606:4700::1]'];

for (const [which, addresses, expected] of [
  ['of the public internet is public', PUBLIC.split(/\s+/), true],
  ['of a special range is not public', [...FORBIDDEN_IPV4, ...FORBIDDEN_IPV6], false],
  ['that wraps an IPv4 address is not public, whatever it wraps', WRAPPED.split(/\s+/), false],
  ['with a zone, and what is no address, is not public', NO_ADDRESS, false],
] as const) {
  test(`an address ${which}`, () => {
    for (const address of addresses) assert.equal(isPublicAddress(address), expected, address);
  });
}

test('no address inside a private block is public', (t) => {
  const byte = fc.integer({ min: 0, max: 255 });
  const prefix = fc.constantFrom([10], [127], [192, 168], [169, 254], [0], [198, 18], [100, 100]);
  check(t, 100, fc.tuple(prefix, byte, byte, byte), ([head, b, c, d]) => {
    assert.equal(isPublicAddress([...head, b, c, d].slice(0, 4).join('.')), false);
  });
});

test('names of this machine are refused without a lookup, other names are not', () => {
  for (const host of ['localhost', 'LOCALHOST', 'localhost.', 'a.localhost', 'a.b.localhost.']) {
    assert.equal(checkUrl(`http://${host}:1234/`, isPublicAddress).ok, false, host);
  }
  const accepted = ['1.1.1.1', '[2606:4700::1111]:8443', 'example.com./a?b#c', 'notlocalhost'];
  for (const rest of accepted) {
    assert.equal(checkUrl(`https://${rest}`, isPublicAddress).ok, true, rest);
  }
});

test('schemes other than http and https, credentials and malformed urls are always refused', () => {
  const anyAddress = policyOf(true);
  const urls = `file:///etc/passwd ftp://example.com/ gopher://example.com/ data:text/plain,x
    javascript:0 ws://example.com/ http://user@example.com/ http://user:secret@example.com/
    http://example.com@127.0.0.1/ http://:secret@example.com/ http://[fe80::1%25eth0]/
    http://4294967296/ http:// //example.com/ not-a-url`;
  for (const url of [...urls.split(/\s+/), '', 'not a url']) {
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
  assert.equal(relative.ok && relative.value.href, 'http://example.com/c');
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

test('one forbidden address among public ones refuses the name, and is not told', async () => {
  const resolve: Resolver = async () =>
    ['1.1.1.1', '10.20.30.40'].map((address) => ({ address, family: 4 }));
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
  const none: Resolver = async () => [];
  await assert.rejects(lookupAll('a.example', none), UnresolvableHostError);
});

test('names under invalid do not exist, and no name server is asked', async () => {
  const resolve: Resolver = () => assert.fail('asked');
  await assert.rejects(lookupAll('nowhere.invalid', resolve), UnresolvableHostError);
});

const policyOf = (allowInternalUrls: boolean) =>
  outboundPolicy({ allowInternalUrls, allow: [], deny: [] });

const lookupAll = (hostname: string, resolve: Resolver) =>
  lookup(hostname, resolve, { all: true }) as Promise<LookupAddress[]>;
const lookupOne = (hostname: string, resolve: Resolver) =>
  lookup(hostname, resolve, {}) as Promise<LookupAddress>;

function lookup(hostname: string, resolve: Resolver, options: { readonly all?: true }) {
  return new Promise<unknown>((fulfil, reject) => {
    guardedLookup(resolve, isPublicAddress)(hostname, options, (error, address, family) => {
      if (error !== null) reject(error);
      else fulfil(options.all ? address : { address, family });
    });
  });
}

const VECTORS_MIN = 200;

test('no URL that says where it leads passes, of at least 200', () => {
  const vectors = urlVectors(9);
  const distinct = new Set(vectors.map(({ url }) => url)).size;
  assert.ok(distinct >= VECTORS_MIN, `${distinct} vectors`);
  const passed = vectors.filter(({ url }) => checkUrl(url, isPublicAddress).ok);
  // A name that is none has to be looked up before it is found to lead nowhere.
  assert.deepEqual(passed.map(({ url }) => new URL(url).hostname).filter(canBeAddress), []);
});

test('no redirect to such a URL passes', () => {
  const base = new URL(`http://outside.test/`);
  const passed = redirectVectors(9).filter(({ url }) => checkUrl(url, isPublicAddress, base).ok);
  assert.deepEqual(column(passed, 'url'), ['http://alone-7.test:9/']);
});

test('no name that answers such an address is connected to', async () => {
  for (const { name, answers } of nameVectors()) {
    await assert.rejects(lookUp(name, resolverOf(answers)), BlockedAddressError, name);
  }
});

test('a name that changes its answers passes as long as they are public', async () => {
  for (const { name, answers } of rebindingVectors()) {
    const resolve = resolverOf(answers);
    assert.deepEqual(await lookUp(name, resolve), [PUBLIC_ADDRESS]);
    await assert.rejects(lookUp(name, resolve), BlockedAddressError, name);
  }
});
/** Whether a host could be read as an address by anybody: it has no letters but hexadecimal ones. */
const canBeAddress = (hostname: string): boolean =>
  /^[\d.a-fx:[\]]+$/i.test(hostname) && !hostname.endsWith('..');

function resolverOf(answers: NameVector['answers']): Resolver {
  let turn = 0;
  return async () => {
    const addresses = answers[Math.min(turn, answers.length - 1)] ?? [];
    turn += 1;
    return addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  };
}

const lookUp = async (hostname: string, resolve: Resolver) =>
  column(await lookupAll(hostname, resolve), 'address');
