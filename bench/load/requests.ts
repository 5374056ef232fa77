/** Request texts as a typical client sends them: key, tenant, JSON, keep-alive. */

import { DEFAULT_API_KEY } from '../../test/helpers/engine.js';
import { TENANT } from '../fixtures.js';

const PREFIX = '/api/v1';

const HEADERS = [
  'host: 127.0.0.1',
  'user-agent: bench',
  'accept: application/json',
  `x-api-key: ${DEFAULT_API_KEY}`,
  `x-tenant-id: ${TENANT}`,
].join('\r\n');

/** @param path after the prefix */
export function postRequest(path: string, body: string): string {
  return (
    `POST ${PREFIX}${path} HTTP/1.1\r\n${HEADERS}\r\ncontent-type: application/json\r\n` +
    `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  );
}

export function getRequest(path: string): string {
  return `GET ${PREFIX}${path} HTTP/1.1\r\n${HEADERS}\r\n\r\n`;
}
