/**
 * Our own server by HTTP. Jobs of `created`, `bulk` and `idle` are instances that complete in the commit
 * that creates them; those of `rounds` are for workers that poll one and complete it, those of
 * `batches` for workers that exchange results for tasks.
 */

import { EXTERNAL_HANDLER } from '../fixtures.js';
import { HttpConnection } from '../load/http-connection.js';
import { ask } from '../load/replies.js';
import { getRequest, postRequest } from '../load/requests.js';
import { BATCH, type Peer, type Where, type Work } from './peer.js';

export const EXCHANGE = '/workers/tasks/exchange';
const WAIT_MS = 500;
const OUTPUT = { parcel: 'P-4711', packed: true };

interface Task {
  readonly id: string;
  readonly claim_epoch: number;
}

interface Exchanged {
  readonly outcomes: readonly { readonly status: number }[];
  readonly tasks: readonly Task[];
}

/** @param body of `POST /instances` */
export async function openOwn(where: Where, work: Work, body: string): Promise<Peer> {
  const idle: HttpConnection[] = [];
  const all: HttpConnection[] = [];
  let isClosed = false;
  const open = async () => {
    const connection = await HttpConnection.open(where.port, (error) => {
      // Nobody is answered any more: the turn is over.
      throw error;
    });
    all.push(connection);
    return connection;
  };
  /** With a connection that nobody uses meanwhile. */
  const send = async <T>(request: string, status: number): Promise<T> => {
    const connection = idle.pop() ?? (await open());
    const answer = await ask<T>(connection, request, status);
    idle.push(connection);
    return answer;
  };
  const create = postRequest('/instances', body);
  const batches = new Map<number, string>();
  const running: Promise<void>[] = [];
  let onCreated: (jobs: number) => void = () => undefined;
  const isOver = () => isClosed;
  return {
    create: async () => {
      await send(create, 201);
      if (work.name === 'created') onCreated(1);
    },
    createMany: (count) => {
      const known = batches.get(count);
      const request = known ?? batchOf(body, count);
      if (known === undefined) batches.set(count, request);
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
        running.push(take(await open(), `worker-${at}`, onDone, isOver));
      }
    },
    close: async () => {
      isClosed = true;
      await Promise.all(running);
      for (const connection of all) connection.close();
    },
  };
}

/**
 * A worker until the end, and until nothing is left, which the next turn would find: its connection, its
 * name, whom to tell of tasks that are done.
 */
type Take = (
  connection: HttpConnection,
  worker: string,
  onDone: (jobs: number) => void,
  isOver: () => boolean,
) => Promise<void>;

const pollOne: Take = async (connection, worker, onDone, isOver) => {
  const body = { handler_name: EXTERNAL_HANDLER, worker_id: worker, limit: 1, wait_ms: WAIT_MS };
  const poll = postRequest('/workers/tasks/poll', JSON.stringify(body));
  for (;;) {
    const tasks = await ask<readonly Task[]>(connection, poll, 200);
    if (tasks.length === 0 && isOver()) return;
    for (const { id, claim_epoch } of tasks) {
      const done = JSON.stringify({ worker_id: worker, claim_epoch, output: OUTPUT });
      await ask(connection, postRequest(`/workers/tasks/${id}/complete`, done), 200);
      onDone(1);
    }
  }
};

const exchange: Take = async (connection, worker, onDone, isOver) => {
  const poll = { handlers: [EXTERNAL_HANDLER], limit: BATCH, wait_ms: WAIT_MS };
  let tasks: readonly Task[] = [];
  for (;;) {
    const results = tasks.map(({ id, claim_epoch }) => ({
      kind: 'complete',
      task_id: id,
      claim_epoch,
      output: OUTPUT,
    }));
    const body = JSON.stringify({ worker_id: worker, results, poll });
    const answer = await ask<Exchanged>(connection, postRequest(EXCHANGE, body), 200);
    const refused = answer.outcomes.find(({ status }) => status !== 200);
    if (refused !== undefined) throw new Error(`a result was refused: ${JSON.stringify(refused)}`);
    if (tasks.length > 0) onDone(tasks.length);
    tasks = answer.tasks;
    if (tasks.length === 0 && isOver()) return;
  }
};

function batchOf(body: string, count: number): string {
  const instances = Array.from({ length: count }, () => body).join(',');
  return postRequest('/instances/batch', `{"instances":[${instances}]}`);
}
