/** What a server without keys refuses: foreign hosts, foreign pages, bodies not declared as JSON. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readConfig } from '../../src/config.js';
import { EngineError } from '../../src/errors.js';
import { type InsecureSettings, insecureGuard } from '../../src/http/insecure-guard.js';

const HERE: InsecureSettings = { isAnywhere: false, corsOrigins: [] };
const ANYWHERE: InsecureSettings = { isAnywhere: true, corsOrigins: [] };
const JSON_TYPE = { 'content-type': 'application/json' };

/** The status that it is refused with; 0: it is not. */
function statusOf(
  settings: InsecureSettings,
  headers: Readonly<Record<string, string>>,
  body = '',
): number {
  try {
    insecureGuard(settings)({ header: (name) => headers[name], body: Buffer.from(body) });
    return 0;
  } catch (error) {
    assert.ok(error instanceof EngineError);
    return error.status;
  }
}

describe('without keys', () => {
  for (const host of ['localhost', 'a.localhost:80', '127.0.0.1:8080', '127.9.9.9', '[::1]:8080']) {
    test(`a request to ${host} is served`, () => assert.equal(statusOf(HERE, { host }), 0));
  }

  for (const host of [
    'evil.example',
    'localhost.evil.example',
    '127.0.0.1.nip.io',
    '10.0.0.1:80',
    '',
  ]) {
    test(`a request to "${host}" is refused, unless it may come from anywhere`, () => {
      assert.equal(statusOf(HERE, { host }), 403);
      assert.equal(statusOf(ANYWHERE, { host }), 0);
    });
  }

  for (const [origin, here, anywhere] of [
    ['http://localhost:3000', 0, 0],
    ['http://127.0.0.1:8080', 0, 0],
    ['https://evil.example', 403, 403],
    ['http://localhost.evil.example', 403, 403],
    ['null', 403, 403],
    ['http://engine:8080', 403, 0],
  ] as const) {
    test(`a page of ${origin} is told ${here || 'the answer'}, anywhere ${anywhere || 'the answer'}`, () => {
      assert.equal(statusOf(HERE, { host: 'localhost:8080', origin }), here);
      assert.equal(statusOf(ANYWHERE, { host: 'engine:8080', origin }), anywhere);
    });
  }

  test('origins that are named may call', () => {
    const settings = { isAnywhere: false, corsOrigins: ['https://ui.example'] };
    assert.equal(statusOf(settings, { host: 'localhost', origin: 'https://ui.example' }), 0);
    assert.equal(statusOf(settings, { host: 'localhost', origin: 'https://ui.example.evil' }), 403);
  });

  for (const [type, status] of [
    ['application/json', 0],
    ['Application/JSON; charset=utf-8', 0],
    ['application/jsonp', 400],
    ['text/plain', 400],
    ['text/plain; application/json', 400],
    ['application/x-www-form-urlencoded', 400],
    ['multipart/form-data; boundary=x', 400],
    ['', 400],
  ] as const) {
    test(`a body declared as "${type}" is ${status === 0 ? 'read' : 'refused'}`, () => {
      for (const settings of [HERE, ANYWHERE]) {
        assert.equal(statusOf(settings, { host: 'localhost', 'content-type': type }, '{}'), status);
      }
    });
  }

  test('a request without a body needs no type', () => {
    assert.equal(statusOf(HERE, { host: 'localhost' }), 0);
    assert.equal(statusOf(HERE, { host: 'localhost', ...JSON_TYPE }, '{}'), 0);
  });

  for (const address of ['0.0.0.0:8080', '[::]:8080', '10.0.0.1:8080']) {
    test(`${address} is listened on only if that is said`, () => {
      const env = { ENGINE_HTTP_ADDR: address };
      assert.throws(() => readConfig(env, ['--insecure-auth']), /--insecure-auth-anywhere/);
      assert.equal(readConfig(env, ['--insecure-auth-anywhere']).insecureAuth, true);
    });
  }
});
