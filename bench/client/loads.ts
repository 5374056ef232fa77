/**
 * What the load generator can do. A reply with another status than the expected one ends a load: numbers that count
 * refusals would mean nothing.
 */

import { performance } from 'node:perf_hooks';
import { Clock, type LoadResult } from './clock.js';
import { HttpConnection } from './http-connection.js';
import { ask, getRequest, unexpected } from './requests.js';
import { Samples } from './samples.js';
import {
  type DrainLoad,
  drain,
  type EventLoad,
  type ExchangeLoad,
  exchange,
  type RoundLoad,
  round,
  STEP_CONNECTIONS,
  type StepLoad,
  sendEvents,
  stepThrough,
} from './worker-loads.js';

/** Every connection sends its next request when it has its reply. Ends by time or by number. */
export interface LoopLoad {
  readonly kind: 'loop';
  readonly port: number;
  readonly connections: number;
  /** Sent in turn. */
  readonly requests: readonly string[];
  readonly status: number;
  readonly limit: { readonly ms: number } | { readonly replies: number };
  /** How many of the first replies' bodies come back. */
  readonly keepBodies?: number;
}

/** One connection, one after the other: create an instance, read it until it is completed. */
export interface CompleteLoad {
  readonly kind: 'complete';
  readonly port: number;
  readonly create: string;
  readonly ms: number;
}

export type Load =
  | LoopLoad
  | CompleteLoad
  | DrainLoad
  | RoundLoad
  | ExchangeLoad
  | EventLoad
  | StepLoad;

/** Every request once, in any order. */
export function once(port: number, requests: readonly string[], connections = 4): LoopLoad {
  const limit = { replies: requests.length };
  return { kind: 'loop', port, connections, requests, status: 201, limit };
}

/** @throws Error when a connection breaks or a reply has another status than it must have */
export function runLoad(load: Load): Promise<LoadResult> {
  switch (load.kind) {
    case 'loop':
      return connected(load.port, load.connections, (all, fail) => loop(load, all, fail));
    case 'complete':
      return connected(load.port, 1, ([one]) => completeEach(load, one!));
    case 'drain':
      return connected(load.port, load.workers, (all) => drain(load, all));
    case 'round':
      return connected(load.port, load.workers, (all) => round(load, all));
    case 'exchange':
      return connected(load.port, load.workers, (all) => exchange(load, all));
    case 'step':
      return connected(load.port, STEP_CONNECTIONS, (all) => stepThrough(load, all));
    case 'event':
      return connected(load.port, load.workers, (all) => sendEvents(load, all));
  }
}

type Fail = (error: Error) => void;

/** Connects before the clock starts; closes whatever happens. */
async function connected(
  port: number,
  count: number,
  use: (connections: readonly HttpConnection[], fail: Fail) => Promise<LoadResult>,
): Promise<LoadResult> {
  let fail!: Fail;
  const failed = new Promise<never>((_, reject) => {
    fail = reject;
  });
  // A connection may also fail while the others are opened, when nothing awaits this promise yet.
  failed.catch(() => undefined);
  const opening = Array.from({ length: count }, () => HttpConnection.open(port, fail));
  try {
    const connections = await Promise.all(opening);
    return await Promise.race([failed, use(connections, fail)]);
  } finally {
    for (const result of await Promise.allSettled(opening)) {
      if (result.status === 'fulfilled') result.value.close();
    }
  }
}

function loop(
  load: LoopLoad,
  connections: readonly HttpConnection[],
  fail: Fail,
): Promise<LoadResult> {
  const { limit, keepBodies = 0 } = load;
  const requests = load.requests.map((text) => Buffer.from(text));
  const samples = new Samples();
  const bodies: string[] = [];
  const startedAt = performance.now();
  const endsAt = 'ms' in limit ? startedAt + limit.ms : Number.POSITIVE_INFINITY;
  let unsent = 'ms' in limit ? Number.POSITIVE_INFINITY : limit.replies;
  let sent = 0;
  let open = connections.length;
  let answered = 0;
  return new Promise((resolve) => {
    const finish = () => {
      const ms = Math.min(performance.now(), endsAt) - startedAt;
      const latency = samples.summary();
      resolve({ replies: latency.count, answered, ms, latency: { request: latency }, bodies });
    };
    const next = (connection: HttpConnection, sentAt: number) => {
      if (sentAt >= endsAt || unsent <= 0) {
        open -= 1;
        if (open === 0) finish();
        return;
      }
      unsent -= 1;
      sent += 1;
      connection.send(requests[sent % requests.length]!, (status, body) => {
        if (status !== load.status) {
          fail(unexpected(load.status, status, body));
          return;
        }
        const now = performance.now();
        answered += 1;
        if (now <= endsAt) samples.add(now - sentAt);
        if (bodies.length < keepBodies) bodies.push(body.toString());
        next(connection, now);
      });
    };
    for (const connection of connections) next(connection, performance.now());
  });
}

async function completeEach(load: CompleteLoad, connection: HttpConnection): Promise<LoadResult> {
  const clock = new Clock(load.ms);
  while (!clock.isOver()) {
    const sentAt = performance.now();
    const { id } = await ask<{ id: string }>(connection, load.create, 201);
    const request = getRequest(`/instances/${id}`);
    for (let state = ''; state !== 'completed'; ) {
      ({ state } = await ask<{ state: string }>(connection, request, 200));
    }
    clock.add('request', sentAt);
  }
  return clock.result();
}
