/** Real servers on loopback, and the http_request handler as a shard would call it. */

import { createServer, type RequestListener, type Server } from 'node:http';
import type { Socket } from 'node:net';
import type { TestContext } from 'node:test';
import type { JsonValue } from '../../src/base/json.js';
import type { StepFailure, StepOutcome } from '../../src/core/builtin.js';
import type { HttpOptions, HttpRequestDeps } from '../../src/handlers/http-transport.js';
import { openHttp } from '../../src/handlers/http-transport.js';
import { createRegistry, type HandlerContext } from '../../src/handlers/registry.js';
import { portOf } from './loopback.js';

export interface TestServer {
  readonly port: number;
  /** `http://127.0.0.1:port`, or the host it was opened on. */
  readonly origin: string;
  readonly server: Server;
  /** How many sockets have been accepted so far. */
  connects(): number;
}

/** Listens until the test ends. */
export async function listen(
  t: TestContext,
  onRequest: RequestListener,
  host = '127.0.0.1',
  port = 0,
): Promise<TestServer> {
  const server = createServer(onRequest);
  let connects = 0;
  server.on('connection', () => {
    connects += 1;
  });
  const bound = await portOf(server, port, host);
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { port: bound, origin: `http://${host}:${bound}`, server, connects: () => connects };
}

export interface Handler {
  readonly deps: HttpRequestDeps;
  run(params: JsonValue, context?: Partial<HandlerContext>): Promise<StepOutcome>;
  /** What the handler logged, as `level message`. */
  readonly lines: string[];
}

/** The handler over a pool of its own, which is closed when the test ends. */
export function openHandler(t: TestContext, options: Partial<HttpOptions> = {}): Handler {
  const deps = openHttp({ isAllowed: () => true, ...options });
  t.after(() => deps.close());
  return handlerOver(deps);
}

export function handlerOver(deps: HttpRequestDeps): Handler {
  const handler = createRegistry({ http: deps }).get('http_request');
  if (handler === undefined) throw new Error('http_request is not registered');
  const lines: string[] = [];
  const note = (level: string) => (_fields: unknown, message: string) => {
    lines.push(`${level} ${message}`);
  };
  const context = (): HandlerContext => ({
    signal: new AbortController().signal,
    idempotencyKey: 'key-1',
    tenant: 'a',
    isLong: false,
    waitFor: (what) => what,
    log: { debug: note('debug'), info: note('info'), warn: note('warn') },
    now: () => 0,
  });
  return { deps, lines, run: (params, over) => handler(params, { ...context(), ...over }) };
}

/** Details of a failure, or an error that shows the outcome that came instead. */
export function failureOf(outcome: StepOutcome): StepFailure {
  if (outcome.kind === 'failure') return outcome;
  throw new Error(`expected a failure: ${JSON.stringify(outcome)}`);
}

/** What the workflow sees of an answer that succeeded, without its headers. */
export function answerOf(outcome: StepOutcome) {
  if (outcome.kind !== 'success') throw new Error(`expected a success: ${JSON.stringify(outcome)}`);
  const { status, body } = outcome.output as { status: number; body: string };
  return { status, body };
}

/** Ends the connection below HTTP, as a crashed server would. */
export function cut(socket: Socket): void {
  socket.resetAndDestroy();
}

/** Timers that run when the test says so. */
export interface ManualTimers {
  readonly setTimer: (callback: () => void, delayMs: number) => () => void;
  /** Delays of the timers that are set and not cleared. */
  pendingMs(): number[];
  fireAll(): void;
}

export function manualTimers(): ManualTimers {
  const timers = new Map<() => void, number>();
  return {
    setTimer: (callback, delayMs) => {
      timers.set(callback, delayMs);
      return () => timers.delete(callback);
    },
    pendingMs: () => [...timers.values()],
    fireAll: () => {
      for (const callback of [...timers.keys()]) {
        timers.delete(callback);
        callback();
      }
    },
  };
}
