/**
 * What the load generator can do. A reply with another status than the expected one ends a job:
 * numbers that count refusals would mean nothing.
 */

import { performance } from 'node:perf_hooks';
import { HttpConnection } from './http-connection.js';
import type { JobResult, Measured } from './job-result.js';
import { threadCpuMs } from './process-cpu.js';
import { ask, unexpected } from './replies.js';
import { getRequest } from './requests.js';
import { Samples } from './samples.js';
import { STEP_CONNECTIONS, type StepJob, stepThrough } from './step-job.js';
import { WAKE_CONNECTIONS, type WakeJob, wake } from './wake-job.js';
import {
  type DrainJob,
  drain,
  type ExchangeJob,
  exchange,
  type RoundJob,
  round,
} from './worker-jobs.js';

/** Every connection sends its next request when it has its reply. Ends by time or by number. */
export interface LoopJob {
  readonly kind: 'loop';
  readonly port: number;
  readonly connections: number;
  /** Sent in turn. */
  readonly requests: readonly string[];
  readonly status: number;
  readonly limit: { readonly ms: number } | { readonly replies: number };
  /** How many of the first replies' bodies come back. */
  readonly keepBodies?: number;
  /** The length of a slice, if the run is to be told in slices. */
  readonly sliceMs?: number;
}

/** One connection, one after the other: create an instance, read it until it is completed. */
export interface CompleteJob {
  readonly kind: 'complete';
  readonly port: number;
  readonly create: string;
  readonly count: number;
}

export type Job = LoopJob | CompleteJob | DrainJob | RoundJob | ExchangeJob | StepJob | WakeJob;

/** @throws Error when a connection breaks or a reply has another status than it must have */
export async function runJob(job: Job): Promise<JobResult> {
  const before = threadCpuMs();
  const measured = await perform(job);
  return { ...measured, cpuMs: threadCpuMs() - before };
}

function perform(job: Job): Promise<Measured> {
  switch (job.kind) {
    case 'loop':
      return withConnections(job.port, job.connections, (all, fail) => loop(job, all, fail));
    case 'complete':
      return withConnections(job.port, 1, ([one]) => completeEach(job, one!));
    case 'drain':
      return withConnections(job.port, job.workers, (all) => drain(job, all));
    case 'round':
      return withConnections(job.port, job.workers, (all) => round(job, all));
    case 'exchange':
      return withConnections(job.port, job.workers, (all) => exchange(job, all));
    case 'step':
      return withConnections(job.port, STEP_CONNECTIONS, (all) => stepThrough(job, all));
    case 'wake':
      return withConnections(job.port, WAKE_CONNECTIONS, async (all) => {
        const { count: replies } = job;
        return { replies, answered: replies, bodies: [], ...(await wake(job, all)) };
      });
  }
}

type Fail = (error: Error) => void;

/** Connects before the clock starts; closes whatever happens. */
async function withConnections(
  port: number,
  count: number,
  use: (connections: readonly HttpConnection[], fail: Fail) => Promise<Measured>,
): Promise<Measured> {
  let fail: Fail = () => undefined;
  const failed = new Promise<never>((_, reject) => {
    fail = reject;
  });
  // It is also called while connecting, when nobody awaits it yet.
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

function loop(job: LoopJob, connections: readonly HttpConnection[], fail: Fail): Promise<Measured> {
  const { limit, keepBodies = 0, sliceMs } = job;
  const requests = job.requests.map((text) => Buffer.from(text));
  const samples = new Samples();
  const slices: Samples[] = [];
  const bodies: string[] = [];
  const startedAt = performance.now();
  const endsAt = 'ms' in limit ? startedAt + limit.ms : Number.POSITIVE_INFINITY;
  let unsent = 'ms' in limit ? Number.POSITIVE_INFINITY : limit.replies;
  let sent = 0;
  let open = connections.length;
  let answered = 0;
  const sliceAt = (at: number) => (slices[at] ??= new Samples());
  return new Promise((resolve) => {
    const finish = () => {
      const ms = Math.min(performance.now(), endsAt) - startedAt;
      const latency = samples.summary();
      resolve({
        replies: latency.count,
        answered,
        ms,
        latency: { request: latency },
        bodies,
        // From the first to the last one, those without a reply too.
        ...(sliceMs && { slices: Array.from(slices, (one = new Samples()) => one.summary()) }),
      });
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
        if (status !== job.status) {
          fail(unexpected(job.status, status, body));
          return;
        }
        const now = performance.now();
        answered += 1;
        if (now <= endsAt) {
          samples.add(now - sentAt);
          if (sliceMs !== undefined)
            sliceAt(Math.floor((now - startedAt) / sliceMs)).add(now - sentAt);
        }
        if (bodies.length < keepBodies) bodies.push(body.toString());
        next(connection, now);
      });
    };
    for (const connection of connections) next(connection, performance.now());
  });
}

async function completeEach(job: CompleteJob, connection: HttpConnection): Promise<Measured> {
  const create = new Samples();
  const read = new Samples();
  const total = new Samples();
  const startedAt = performance.now();
  for (let i = 0; i < job.count; i += 1) {
    const sentAt = performance.now();
    const created = await ask<{ id: string }>(connection, job.create, 201);
    const createdAt = performance.now();
    create.add(createdAt - sentAt);
    const request = getRequest(`/instances/${created.id}`);
    let readAt = createdAt;
    for (let state = ''; state !== 'completed'; ) {
      ({ state } = await ask<{ state: string }>(connection, request, 200));
      const now = performance.now();
      read.add(now - readAt);
      readAt = now;
    }
    total.add(readAt - sentAt);
  }
  const ms = performance.now() - startedAt;
  const latency = { create: create.summary(), read: read.summary(), total: total.summary() };
  return { replies: job.count, answered: job.count, ms, latency, bodies: [] };
}
