/**
 * The check that every answer of the suite goes through (in test/helpers/client.ts) finds
 * what the OpenAPI document does not describe. It is held against answers made by hand, each with
 * one thing wrong.
 */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Answer, describeAnswer, OPERATIONS, operationFor } from '../helpers/contract.js';

const ID = '0192f0c1-6b1a-7c3e-9d41-2f6a8b0c1d2e';
const JSON_HEADERS = { 'content-type': 'application/json; charset=utf-8', 'x-request-id': 'r-1' };
const ERROR_HEADERS = { ...JSON_HEADERS, 'x-error-code': 'ENG_NOT_FOUND' };

function answer(status: number, body: unknown, headers: Answer['headers'] = JSON_HEADERS): Answer {
  return { status, headers, text: typeof body === 'string' ? body : JSON.stringify(body) };
}

const HTML = { 'content-type': 'text/html' };
const ODD = { 'x-request-id': 'a b' };
const ONE = `/instances/${ID}`;
const list = (headers: Answer['headers']) => answer(200, [], headers);
const refusal = (code?: string) =>
  answer(404, { error: 'x' }, { ...JSON_HEADERS, ...(code && { 'x-error-code': code }) });

const notFound = answer(404, { error: 'not found' }, ERROR_HEADERS);

describe('an answer as described passes', () => {
  test('a success', () => {
    assert.equal(describeAnswer('GET', '/health/live', answer(200, { status: 'ok' })), undefined);
    assert.equal(describeAnswer('GET', '/instances?limit=1', answer(200, [])), undefined);
    assert.equal(describeAnswer('DELETE', `/sequences/${ID}`, answer(204, '')), undefined);
  });

  test('a refusal', () => {
    assert.equal(describeAnswer('GET', `/instances/${ID}`, notFound), undefined);
    assert.equal(describeAnswer('GET', '/nowhere', notFound), undefined);
    const headers = { ...JSON_HEADERS, 'x-error-code': 'ENG_METHOD_NOT_ALLOWED', allow: 'GET' };
    const refused = answer(405, { error: 'method PUT is not allowed here' }, headers);
    assert.equal(describeAnswer('PUT', '/handlers', refused), undefined);
  });

  test('HEAD has the head of GET', () => {
    assert.equal(describeAnswer('HEAD', '/instances', answer(200, '')), undefined);
    assert.match(describeAnswer('HEAD', '/instances', answer(201, '')) ?? '', /201/);
  });
});

describe('an answer with one thing wrong does not pass:', () => {
  const wrong: readonly [string, string, string, Answer, RegExp][] = [
    ['its status', 'GET', '/instances', answer(206, []), /status 206 is not described/],
    ['a status of another operation', 'GET', '/handlers', answer(201, {}), /status 201/],
    ['its content type', 'GET', '/instances', list({ ...JSON_HEADERS, ...HTML }), /text\/html/],
    ['no content type', 'GET', '/instances', list({ 'x-request-id': 'r-1' }), /content type/],
    ['a header that must be there', 'GET', '/instances', list(HTML), /x-request-id is missing/],
    ['a header of a wrong form', 'GET', '/instances', list({ ...JSON_HEADERS, ...ODD }), /header/],
    ['an error code that nobody knows', 'GET', ONE, refusal('ENG_SURPRISE'), /x-error-code/],
    ['a refusal without its code', 'GET', ONE, refusal(), /x-error-code is missing/],
    ['its body', 'GET', '/health/live', answer(200, { status: 'fine' }), /the body\/status/],
    ['a part of its body', 'GET', '/instances', answer(200, [{ id: ID }]), /the body\/0/],
    ['a body that is no JSON', 'GET', '/instances', answer(200, '[}'), /the body/],
    ['no body', 'GET', '/instances', answer(200, ''), /the body/],
    ['a body that is too much', 'DELETE', `/sequences/${ID}`, answer(204, '{}'), /a body/],
    [
      'an error body of another shape',
      'GET',
      `/instances/${ID}`,
      answer(404, { message: 'x' }, ERROR_HEADERS),
      /the body must have required property 'error'/,
    ],
    ['405 without allow', 'PUT', '/handlers', answer(405, { error: 'x' }, ERROR_HEADERS), /header/],
    ['a success where nothing is', 'GET', '/nowhere', answer(200, {}), /does not know/],
    ['a success of no method', 'PUT', '/handlers', answer(200, {}), /does not know/],
  ];
  for (const [what, method, path, given, expected] of wrong) {
    test(what, () => assert.match(describeAnswer(method, path, given) ?? 'nothing', expected));
  }
});

test('a fixed path is found before one with a parameter', () => {
  assert.equal(operationFor('GET', '/instances/dlq?limit=5')?.path, '/instances/dlq');
  assert.equal(operationFor('GET', `/instances/${ID}`)?.path, '/instances/{id}');
  assert.equal(operationFor('PATCH', '/instances/bulk/state')?.path, '/instances/bulk/state');
  assert.equal(operationFor('GET', '/instances/a/b/c/d'), undefined);
});

test('every status that the document names is found, and its schema compiles', () => {
  for (const { id, method, path, responses } of OPERATIONS) {
    for (const name of Object.keys(responses)) {
      // The default stands for what only the transport says.
      const status = name === 'default' ? 431 : Number(name);
      const made = path.replace(/\{\w+\}/g, ID);
      const problem = describeAnswer(method, made, answer(status, 'no JSON')) ?? '';
      assert.doesNotMatch(problem, /^status/, `${id} ${status}`);
    }
  }
});
