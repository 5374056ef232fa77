/** A server that answers as it is told, for what a real one does at moments that cannot be chosen. */

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after } from 'node:test';

/** One request as it came. */
export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export type Answer = (response: ServerResponse, asked: Asked) => void;

export interface ScriptedServer {
  readonly url: string;
  /** The requests so far. */
  readonly asked: readonly Asked[];
}

/** Answers the first request by the first answer, and so on; every further one by the last. */
export async function scripted(...answers: readonly Answer[]): Promise<ScriptedServer> {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8');
    request.on('data', (text: string) => {
      body += text;
    });
    request.on('end', () => {
      const { method = '', url: path = '', headers } = request;
      const one = { method, path, headers, body };
      asked.push(one);
      answers[Math.min(asked.length, answers.length) - 1]?.(response, one);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

/** As the engine answers. */
export function answer(
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): Answer {
  return (response) => {
    response.writeHead(status, {
      'x-request-id': 'r-1',
      'content-type': 'application/json',
      ...headers,
    });
    response.end(body === undefined ? undefined : JSON.stringify(body));
  };
}

export const refusal = (
  status: number,
  code: string,
  message: string,
  retryAfter?: string,
): Answer =>
  answer(
    status,
    { error: message },
    { 'x-error-code': code, ...(retryAfter === undefined ? {} : { 'retry-after': retryAfter }) },
  );

/** Cuts the connection off when the request is there. */
export const hangUp: Answer = (response) => void response.destroy();

/** Never answers. */
export const silence: Answer = () => undefined;
