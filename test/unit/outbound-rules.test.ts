/** Rules about outbound requests: how they are written, and what they say of hosts and addresses. */

import assert from 'node:assert/strict';
import { networkInterfaces } from 'node:os';
import { test } from 'node:test';
import { ConfigError } from '../../src/base/config-error.js';
import { checkUrl } from '../../src/handlers/address-guard.js';
import {
  type OutboundSettings,
  outboundPolicy,
  ownAddresses,
  parseOutboundRule,
} from '../../src/handlers/outbound-rules.js';
import { readConfig } from '../../src/server/config.js';

const CLOSED: OutboundSettings = { allowInternalUrls: false, allow: [], deny: [] };
const nobody = () => new Set<string>();

test('rules are hosts, patterns, addresses and ranges, each perhaps with a port', () => {
  for (const [kind, texts] of [
    ['any', '* *:8443'],
    ['name', 'api.example.com api.example.com. api.example.com:8443 *.example.com *.example.com:1'],
    ['name', 'under_score.example bücher.example'],
    ['range', '10.0.0.0/8 10.0.0.0/8:443 192.0.2.1 192.0.2.1:80 fd00::/8 ::1 [::1]:80 [fd00::/8]'],
    ['none', 'http://example.com example.com/path a*.example.com *.*.example.com example.com:0'],
    ['none', 'example.com:65536 example.com:http user@example.com 10.0.0.0/33 10.0.0.0/-1'],
    ['none', '10.0.0.0/8/8 10.0.0/8 010.0.0.0/8 127.1 2130706433 fd00::/129 fe80::1%eth0'],
    ['none', '[example.com] [::1'],
  ] as const) {
    for (const text of texts.split(' ')) {
      const rule = parseOutboundRule(text);
      const [, port] = /^(?:\[.*\]|[^:]*):(\d+)$/.exec(text) ?? [];
      assert.equal(rule?.kind ?? 'none', kind, text);
      if (rule !== undefined) assert.equal(rule.port, port && Number(port), text);
    }
  }
  assert.equal(parseOutboundRule(''), undefined);
});

test('a rule that is none stops the start and is named', () => {
  for (const name of ['ENGINE_HTTP_ALLOW', 'ENGINE_HTTP_DENY']) {
    const read = (value: string) => readConfig({ ENGINE_API_KEY: 'k', [name]: value }, []);
    const refused = (error: unknown) =>
      error instanceof ConfigError && /10\.0\.0\.0\/40/.test(error.message);
    assert.throws(() => read('example.com, 10.0.0.0/40'), refused);
    assert.doesNotThrow(() => read('*.Example.com, 10.0.0.0/8'));
  }
});

/** Whether a request to the URL is refused where this is denied. */
const refusedBy = (deny: string[], url: string) =>
  !checkUrl(url, outboundPolicy({ ...CLOSED, deny }, nobody)).ok;

test('a pattern is about what lies below a name and not its likeness, a rule with a port about that port only', () => {
  for (const host of ['a.example.com', 'A.B.EXAMPLE.com', 'a.example.com.']) {
    assert.equal(refusedBy(['*.example.com'], `http://${host}/`), true, host);
  }
  for (const host of ['example.com', 'aexample.com', 'example.com.test', 'a.example.org']) {
    assert.equal(refusedBy(['*.example.com'], `http://${host}/`), false, host);
  }
  const rules = ['example.com:443', '*:25'];
  for (const url of ['https://example.com/', 'http://example.com:443/', 'http://1.1.1.1:25/']) {
    assert.equal(refusedBy(rules, url), true, url);
  }
  for (const url of ['http://example.com/', 'http://1.1.1.1/']) {
    assert.equal(refusedBy(rules, url), false, url);
  }
});

test('a denied IPv4 range cannot be reached in the guise of IPv6', () => {
  const isAllowed = outboundPolicy({ ...CLOSED, allowInternalUrls: true, deny: ['10.0.0.0/8'] });
  const seen = (addresses: string) => addresses.split(' ').map((address) => isAllowed(address));
  const denied = seen('10.1.2.3 ::ffff:10.1.2.3 ::10.1.2.3 64:ff9b::10.1.2.3 2002:0a01:0203::1');
  assert.deepEqual(denied, [false, false, false, false, false]);
  const others = seen('11.1.2.3 ::ffff:11.1.2.3 2002:0b01:0203::1 fe80::1%eth0');
  assert.deepEqual(others, [true, true, true, true]);
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

test('addresses of the machine itself, those of its interfaces, are refused although they are public, unless they are allowed', () => {
  const own = () => new Set(['1.2.3.4', '2606:4700:0:0:0:0:0:1111']);
  const isAllowed = outboundPolicy(CLOSED, own);
  for (const address of ['1.2.3.4', '2606:4700::1111']) {
    assert.equal(isAllowed(address), false, address);
    assert.equal(outboundPolicy({ ...CLOSED, allow: [address] }, own)(address), true);
    assert.equal(outboundPolicy({ ...CLOSED, allowInternalUrls: true }, own)(address), true);
  }
  assert.equal(isAllowed('1.2.3.5'), true);
  const named = ownAddresses()();
  for (const { address, family } of Object.values(networkInterfaces()).flatMap((all = []) => all)) {
    if (family === 'IPv4') assert.equal(named.has(address), true, address);
  }
  assert.equal(named.has('127.0.0.1'), true);
});
