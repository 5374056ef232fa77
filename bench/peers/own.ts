/**
 * This server by HTTP. Jobs of `created`, `bulk` and `idle` are instances that complete in the commit that creates
 * them; those of `rounds` and `batches` are for workers, which complete them one by one or by the exchange.
 */

import { EXTERNAL_HANDLER } from '../base/fixtures.js';
import { HttpConnection } from '../client/http-connection.js';
import { ask, batchRequests, getRequest, postRequest } from '../client/requests.js';
import {
  COMPLETED,
  completion,
  exchanged,
  pollRequest,
  type Task,
} from '../client/worker-loads.js';
import { BATCH, type Peer, type Where, type Work } from './peer.js';

const WAIT_MS = 500;

/** @param body of `POST /instances` */
export async function openOwn(where: Where, work: Work, body: string): Promise<Peer> {
  const idle: HttpConnection[] = [];
  const all: HttpConnection[] = [];
  let isClosed = false;
  const open = async () => {
    const connection = await HttpConnection.open(where.port, (error) => {
      throw error;
    });
    all.push(connection);
    return connection;
  };
  /** On a connection that nothing else uses meanwhile. */
  const send = async <T>(request: string, status: number): Promise<T> => {
    const connection = idle.pop() ?? (await open());
    const answer = await ask<T>(connection, request, status);
    idle.push(connection);
    return answer;
  };
  const create = postRequest('/instances', body);
  const instance = JSON.parse(body) as object;
  const batches = new Map<number, string>();
  const running: Promise<void>[] = [];
  let onCreated: (jobs: number) => void = () => undefined;
  return {
    create: async () => {
      await send(create, 201);
      if (work.name === 'created') onCreated(1);
    },
    createMany: (count) => {
      const request = batches.get(count) ?? batchRequests(count, count, () => instance)[0]!;
      batches.set(count, request);
      return send(request, 201);
    },
    createAndWait: async () => {
      const { id } = await send<{ id: string }>(create, 201);
      const read = getRequest(`/instances/${id}`);
      for (let state = ''; state !== 'completed'; ) {
        ({ state } = await send<{ state: string }>(read, 200));
      }
    },
    work: async (onDone) => {
      onCreated = onDone;
      if (work.name === 'created' || work.name === 'idle') return;
      const take = work.name === 'batches' ? exchange : pollOne;
      for (let at = 0; at < work.at; at += 1) {
        running.push(take(await open(), `worker-${at}`, onDone, () => isClosed));
      }
    },
    close: async () => {
      isClosed = true;
      await Promise.all(running);
      for (const connection of all) connection.close();
    },
  };
}

/** A worker until the end, and until nothing is left that the next turn would find. */
type Take = (
  connection: HttpConnection,
  worker: string,
  onDone: (jobs: number) => void,
  isOver: () => boolean,
) => Promise<void>;

const pollOne: Take = async (connection, worker, onDone, isOver) => {
  const poll = pollRequest(EXTERNAL_HANDLER, worker, 1, WAIT_MS);
  for (;;) {
    const tasks = await ask<readonly Task[]>(connection, poll, 200);
    if (tasks.length === 0 && isOver()) return;
    for (const task of tasks) {
      await ask(connection, completion(task, worker), ...COMPLETED);
      onDone(1);
    }
  }
};

const exchange: Take = async (connection, worker, onDone, isOver) => {
  const poll = { handlers: [EXTERNAL_HANDLER], limit: BATCH, wait_ms: WAIT_MS };
  let held: readonly Task[] = [];
  for (;;) {
    const tasks = await exchanged(connection, worker, held, poll);
    if (held.length > 0) onDone(held.length);
    held = tasks;
    if (held.length === 0 && isOver()) return;
  }
};
