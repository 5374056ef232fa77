/** Requests as a typical client sends them (key, tenant, JSON, keep-alive), and their replies as promises. */

import { DEFAULT_API_KEY } from '../../test/helpers/engine.js';
import { TENANT } from '../base/fixtures.js';
import type { HttpConnection } from './http-connection.js';

const PREFIX = '/api/v1';

const HEADERS = [
  'host: 127.0.0.1',
  'user-agent: bench',
  'accept: application/json',
  `x-api-key: ${DEFAULT_API_KEY}`,
  `x-tenant-id: ${TENANT}`,
].join('\r\n');

/** @param path after the prefix. @param more headers, each with its line end */
export function postRequest(path: string, body: string, more = ''): string {
  return (
    `POST ${PREFIX}${path} HTTP/1.1\r\n${HEADERS}\r\ncontent-type: application/json\r\n${more}` +
    `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  );
}

export function getRequest(path: string): string {
  return `GET ${PREFIX}${path} HTTP/1.1\r\n${HEADERS}\r\n\r\n`;
}

/** `POST /instances/batch`es of at most `each` instances, `count` in all. */
export function batchRequests(
  count: number,
  each: number,
  instance: (n: number) => object,
): readonly string[] {
  const requests: string[] = [];
  for (let from = 0; from < count; from += each) {
    const length = Math.min(each, count - from);
    const instances = Array.from({ length }, (_, at) => instance(from + at));
    requests.push(postRequest('/instances/batch', JSON.stringify({ instances })));
  }
  return requests;
}

/** @throws Error when the reply has another status */
export function ask<T>(
  connection: HttpConnection,
  request: string,
  ...expected: readonly number[]
): Promise<T> {
  return new Promise((resolve, reject) => {
    connection.send(request, (status, body) => {
      if (!expected.includes(status)) reject(unexpected(expected.join(' or '), status, body));
      else resolve((body.length === 0 ? undefined : JSON.parse(body.toString())) as T);
    });
  });
}

export function unexpected(expected: number | string, status: number, body: Buffer): Error {
  return new Error(`expected status ${expected}, got ${status}: ${body.toString().slice(0, 300)}`);
}
