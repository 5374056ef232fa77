/** Replies as promises, and what is no reply that was expected. */

import type { HttpConnection } from './http-connection.js';

export function ask<T>(connection: HttpConnection, request: string, expected: number): Promise<T> {
  return new Promise((resolve, reject) => {
    connection.send(request, (status, body) => {
      if (status !== expected) reject(unexpected(expected, status, body));
      else resolve((body.length === 0 ? undefined : JSON.parse(body.toString())) as T);
    });
  });
}

export function unexpected(expected: number, status: number, body: Buffer): Error {
  return new Error(`expected status ${expected}, got ${status}: ${body.toString().slice(0, 300)}`);
}
