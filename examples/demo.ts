/**
 * `npm run demo [-- --kill]`: fulfils a few orders on a server of its own and shows how they get
 * on. The card is refused at first and charged on the second try. With `--kill` the server is
 * killed in the middle of that try and started again; the orders must not notice. The exit code is
 * 0 only if every order was completed with the right outputs.
 */

import { randomBytes } from 'node:crypto';
import { realpathSync, rmSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import type { BlockOutput, InstanceCreated, TaskInstance, TreeNode } from '../schema/instance.js';
import { findPostmaster, stopServer } from '../src/db/embedded-server.js';
import {
  type Client,
  createClient,
  expectStatus,
  NoReplyError,
  UnexpectedStatusError,
} from '../test/helpers/client.js';
import { type Engine, makeDataDir, startEngine } from '../test/helpers/engine.js';
import {
  EXPECTED_CHARGE_ATTEMPT,
  expectedReceipt,
  ORDER_BLOCKS,
  ORDERS,
  type Order,
  orderHandlers,
} from './orders.js';
import { createProgress, type Progress, table } from './progress.js';
import { type Handler, httpSender, startWorker } from './worker.js';

interface Run {
  readonly order: Order;
  readonly id: string;
}

interface Outcome {
  readonly state: string;
  readonly outputs: readonly BlockOutput[];
}

const TENANT = 'demo';
const NAMESPACE = 'shop';
/** The demo takes a few seconds; after this something is wrong. */
const TIME_MAX_MS = 60_000;
const LOOK_EVERY_MS = 100;

const MARKS: Readonly<Record<TreeNode['state'], string>> = {
  pending: '·',
  running: '▸',
  waiting: '▸',
  completed: '✔',
  failed: '✘',
  cancelled: '✘',
  skipped: '-',
};

const { values: flags } = parseArgs({ options: { kill: { type: 'boolean', default: false } } });
process.exitCode = await demo(flags.kill);

async function demo(isKilled: boolean): Promise<number> {
  const interrupted = new AbortController();
  process.on('SIGINT', () => interrupted.abort(new Error('interrupted')));
  const deadline = AbortSignal.any([interrupted.signal, AbortSignal.timeout(TIME_MAX_MS)]);
  const progress = createProgress(process.stdout);
  const dataDir = makeDataDir();
  const apiKey = randomBytes(16).toString('hex');
  const headers = { 'x-api-key': apiKey, 'x-tenant-id': TENANT };
  let engine: Engine | undefined;
  try {
    progress.event('starting a server with a database of its own');
    engine = await startEngine({ apiKey, env: { ENGINE_DATA_DIR: dataDir } });
    progress.event(`the server listens on ${engine.url}`);
    const client = createClient({ url: engine.url, apiKey, tenant: TENANT });
    const handlers = orderHandlers(progress.event);
    const inHand = onFirstRetry(handlers.charge_card);
    const worker = startWorker({
      send: httpSender(`${engine.url}/api/v1`, headers),
      handlers: { ...handlers, charge_card: inHand.handler },
      retryMs: 200,
    });
    try {
      const runs = await placeOrders(client);
      const watching = watch(client, runs, progress, deadline);
      if (isKilled) {
        await Promise.race([inHand.started, watching]);
        engine = await killAndRestart(engine, progress);
      }
      return report(runs, await watching);
    } finally {
      await worker.stop();
      await client.close();
    }
  } catch (error) {
    progress.event(`the demo failed: ${(error as Error).message}`);
    return 1;
  } finally {
    await engine?.stop();
    await removeDatabase(dataDir);
  }
}

/** Tells when a card is being charged again: then a worker holds a claim and has not reported. */
function onFirstRetry(charge: Handler): { handler: Handler; started: Promise<void> } {
  let tell: () => void = () => undefined;
  const started = new Promise<void>((resolve) => {
    tell = resolve;
  });
  return {
    started,
    handler: (task, tools) => {
      if (task.attempt > 0) tell();
      return charge(task, tools);
    },
  };
}

async function placeOrders(client: Client): Promise<readonly Run[]> {
  const sequence = await client.post<{ id: string }>('/sequences', {
    tenant_id: TENANT,
    namespace: NAMESPACE,
    name: 'order-fulfilment',
    version: 1,
    blocks: ORDER_BLOCKS,
  });
  const { id: sequenceId } = expectStatus(sequence, 201);
  const runs: Run[] = [];
  for (const order of ORDERS) {
    const reply = await client.post<InstanceCreated>('/instances', {
      sequence_id: sequenceId,
      tenant_id: TENANT,
      namespace: NAMESPACE,
      // Placing the same order again would return the instance that is there.
      idempotency_key: order.order,
      context: { data: order },
    });
    runs.push({ order, id: expectStatus(reply, 201).id });
  }
  return runs;
}

async function killAndRestart(engine: Engine, progress: Progress): Promise<Engine> {
  progress.event(`killing the server, process ${engine.pid}, with SIGKILL`);
  await engine.kill('SIGKILL');
  const startedAt = performance.now();
  const next = await engine.restart();
  const ms = Math.round(performance.now() - startedAt);
  progress.event(`a new server, process ${next.pid}, is ready after ${ms} ms`);
  return next;
}

/** Shows the orders until all have ended. @throws Error when that takes too long */
async function watch(
  client: Client,
  runs: readonly Run[],
  progress: Progress,
  deadline: AbortSignal,
): Promise<readonly Outcome[]> {
  while (true) {
    deadline.throwIfAborted();
    try {
      const seen = await Promise.all(runs.map((run) => look(client, run)));
      progress.show(seen.map(({ line }) => line));
      const hasEnded = seen.every(({ state }) => ['completed', 'failed'].includes(state));
      if (hasEnded) return await Promise.all(runs.map((run) => outcome(client, run)));
    } catch (error) {
      // While the server is down the orders are safe in the database.
      if (!isAbsence(error)) throw error;
    }
    await wait(LOOK_EVERY_MS);
  }
}

function isAbsence(error: unknown): boolean {
  return error instanceof UnexpectedStatusError
    ? error.status === 503
    : error instanceof NoReplyError;
}

async function look(client: Client, { order, id }: Run): Promise<{ line: string; state: string }> {
  const { state } = expectStatus(await client.get<TaskInstance>(`/instances/${id}`), 200);
  const nodes = expectStatus(await client.get<TreeNode[]>(`/instances/${id}/tree`), 200);
  const steps = ORDER_BLOCKS.map((block) => {
    const node = nodes.find(({ block_id }) => block_id === block.id);
    return `${MARKS[node?.state ?? 'pending']} ${block.id}`;
  });
  return { line: `${order.order}  ${state.padEnd(9)}  ${steps.join('  ')}`, state };
}

async function outcome(client: Client, { id }: Run): Promise<Outcome> {
  const { state } = expectStatus(await client.get<TaskInstance>(`/instances/${id}`), 200);
  const outputs = await client.get<BlockOutput[]>(`/instances/${id}/outputs`);
  return { state, outputs: expectStatus(outputs, 200) };
}

/** Prints the outputs; returns the exit code. */
function report(runs: readonly Run[], outcomes: readonly Outcome[]): number {
  const rows = [['order', 'state', 'step', 'attempt', 'output']];
  let wrong = 0;
  for (const [i, { order }] of runs.entries()) {
    const { state, outputs } = outcomes[i]!;
    for (const { block_id, attempt, output } of outputs) {
      rows.push([order.order, state, block_id, String(attempt), JSON.stringify(output)]);
    }
    if (!isRight(order, outcomes[i]!)) wrong += 1;
  }
  const verdict = wrong === 0 ? 'every order is right' : `${wrong} orders are wrong`;
  process.stdout.write(`\n${table(rows)}\n\n${verdict}\n`);
  return wrong === 0 ? 0 : 1;
}

/** Each step has one output, the receipt names the others', and the card took two tries. */
function isRight(order: Order, { state, outputs }: Outcome): boolean {
  const of = (block: string) => outputs.filter(({ block_id }) => block_id === block);
  return (
    state === 'completed' &&
    ORDER_BLOCKS.every(({ id }) => of(id).length === 1) &&
    isDeepStrictEqual(of('receipt')[0]!.output, expectedReceipt(order)) &&
    of('charge')[0]!.attempt === EXPECTED_CHARGE_ATTEMPT
  );
}

/** A server that was killed and not started again leaves its database running. */
async function removeDatabase(dataDir: string): Promise<void> {
  const pid = findPostmaster(path.join(realpathSync(dataDir), 'postgres'));
  if (pid !== undefined) await stopServer(pid);
  rmSync(dataDir, { recursive: true, force: true });
}
