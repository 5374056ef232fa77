/** Rules about outbound requests: how they are written, and what they say of hosts and addresses. */

import assert from 'node:assert/strict';
import { networkInterfaces } from 'node:os';
import { test } from 'node:test';
import { readConfig } from '../../src/config.js';
import { ConfigError } from '../../src/config-values.js';
import { checkUrl } from '../../src/handlers/address-guard.js';
import {
  type OutboundSettings,
  outboundPolicy,
  ownAddresses,
  parseOutboundRule,
} from '../../src/handlers/outbound-rules.js';

const CLOSED: OutboundSettings = { allowInternalUrls: false, allow: [], deny: [] };
const nobody = () => new Set<string>();

test('rules are hosts, patterns, addresses and ranges, each perhaps with a port', () => {
  const rules: [text: string, kind: string | undefined, port?: number][] = [
    ['*', 'any'],
    ['*:8443', 'any', 8443],
    ['api.example.com', 'name'],
    ['api.example.com.', 'name'],
    ['api.example.com:8443', 'name', 8443],
    ['*.example.com', 'name'],
    ['*.example.com:1', 'name', 1],
    ['under_score.example', 'name'],
    ['bücher.example', 'name'],
    ['10.0.0.0/8', 'range'],
    ['10.0.0.0/8:443', 'range', 443],
    ['192.0.2.1', 'range'],
    ['192.0.2.1:80', 'range', 80],
    ['fd00::/8', 'range'],
    ['::1', 'range'],
    ['[::1]:80', 'range', 80],
    ['[fd00::/8]', 'range'],
    ['', undefined],
    ['http://example.com', undefined],
    ['example.com/path', undefined],
    ['a*.example.com', undefined],
    ['*.*.example.com', undefined],
    ['example.com:0', undefined],
    ['example.com:65536', undefined],
    ['example.com:http', undefined],
    ['user@example.com', undefined],
    ['10.0.0.0/33', undefined],
    ['10.0.0.0/-1', undefined],
    ['10.0.0.0/8/8', undefined],
    ['10.0.0/8', undefined],
    ['010.0.0.0/8', undefined],
    ['127.1', undefined],
    ['2130706433', undefined],
    ['fd00::/129', undefined],
    ['fe80::1%eth0', undefined],
    ['[example.com]', undefined],
    ['[::1', undefined],
  ];
  for (const [text, kind, port] of rules) {
    const rule = parseOutboundRule(text);
    assert.deepEqual([rule?.kind, rule?.port], [kind, port], text);
  }
});

test('a rule that is none stops the start and is named', () => {
  for (const name of ['ENGINE_HTTP_ALLOW', 'ENGINE_HTTP_DENY']) {
    const read = (value: string) => readConfig({ ENGINE_API_KEY: 'k', [name]: value }, []);
    assert.throws(
      () => read('example.com, 10.0.0.0/40'),
      (error) => error instanceof ConfigError && /10\.0\.0\.0\/40/.test(error.message),
    );
    assert.doesNotThrow(() => read('*.Example.com, 10.0.0.0/8'));
  }
});

test('a pattern is about what lies below a name, and not about the name or its likeness', () => {
  const isAllowed = outboundPolicy({ ...CLOSED, deny: ['*.example.com'] }, nobody);
  const refused = (url: string) => !checkUrl(url, isAllowed).ok;
  for (const host of ['a.example.com', 'A.B.EXAMPLE.com', 'a.example.com.']) {
    assert.equal(refused(`http://${host}/`), true, host);
  }
  for (const host of ['example.com', 'aexample.com', 'example.com.test', 'a.example.org']) {
    assert.equal(refused(`http://${host}/`), false, host);
  }
});

test('a rule with a port is about that port only, which may be the one of the scheme', () => {
  const isAllowed = outboundPolicy({ ...CLOSED, deny: ['example.com:443', '*:25'] }, nobody);
  const refused = (url: string) => !checkUrl(url, isAllowed).ok;
  assert.equal(refused('https://example.com/'), true);
  assert.equal(refused('http://example.com:443/'), true);
  assert.equal(refused('http://example.com/'), false);
  assert.equal(refused('http://1.1.1.1:25/'), true);
  assert.equal(refused('http://1.1.1.1/'), false);
});

test('a denied IPv4 range cannot be reached in the guise of IPv6', () => {
  const isAllowed = outboundPolicy({ ...CLOSED, allowInternalUrls: true, deny: ['10.0.0.0/8'] });
  for (const address of [
    '10.1.2.3',
    '::ffff:10.1.2.3',
    '::10.1.2.3',
    '64:ff9b::10.1.2.3',
    '2002:0a01:0203::1',
  ]) {
    assert.equal(isAllowed(address), false, address);
  }
  for (const address of ['11.1.2.3', '::ffff:11.1.2.3', '2002:0b01:0203::1', 'fe80::1%eth0']) {
    assert.equal(isAllowed(address), true, address);
  }
});

test('an allowed name may lead to private addresses, but not to those that hand out credentials', () => {
  const isAllowed = outboundPolicy({ ...CLOSED, allow: ['vault.example:8200'] }, nobody);
  const of = { hostname: 'vault.example', port: 8200 };
  for (const address of ['10.0.0.1', '127.0.0.1', '192.168.1.1', 'fd00::1', '::1', '1.1.1.1']) {
    assert.equal(isAllowed(address, of), true, address);
  }
  for (const address of ['169.254.169.254', 'fe80::1', '0.0.0.0', '224.0.0.1', '::ffff:10.0.0.1']) {
    assert.equal(isAllowed(address, of), false, address);
  }
  assert.equal(isAllowed('10.0.0.1', { ...of, port: 8201 }), false);
  assert.equal(isAllowed('10.0.0.1', { ...of, hostname: 'other.example' }), false);
  assert.equal(isAllowed('10.0.0.1'), false);
});

test('addresses of the machine itself are refused although they are public, unless they are allowed', () => {
  const own = () => new Set(['1.2.3.4', '2606:4700:0:0:0:0:0:1111']);
  const isAllowed = outboundPolicy(CLOSED, own);
  for (const address of ['1.2.3.4', '2606:4700::1111']) {
    assert.equal(isAllowed(address), false, address);
    assert.equal(outboundPolicy({ ...CLOSED, allow: [address] }, own)(address), true);
    assert.equal(outboundPolicy({ ...CLOSED, allowInternalUrls: true }, own)(address), true);
  }
  assert.equal(isAllowed('1.2.3.5'), true);
});

test('the addresses of the machine are those of its interfaces', () => {
  const own = ownAddresses()();
  for (const { address, family } of Object.values(networkInterfaces()).flatMap((all = []) => all)) {
    if (family === 'IPv4') assert.equal(own.has(address), true, address);
  }
  assert.equal(own.has('127.0.0.1'), true);
});
