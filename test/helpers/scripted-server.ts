/** A server that answers as it is told, for what a real one does at moments that cannot be chosen. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { after } from 'node:test';
import { serve } from './loopback.js';

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
  const { url, stop } = await serve((request, response) => {
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
  after(stop);
  return { url, asked };
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
