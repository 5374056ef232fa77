/**
 * `npm run demo [-- --kill]`: fulfils a few orders on a server of its own and shows how they get
 * on. The card is refused at first and charged on the second try. With `--kill` the server is
 * killed in the middle of that try and started again; the orders must not notice, and the demo says
 * what became of each step. The exit code is 0 only if every order was completed with the right outputs.
 */

import { randomBytes } from 'node:crypto';
import { realpathSync, rmSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { Client as EngineClient, type HandlerFunction, Worker } from '../client/src/index.js';
import type { BlockOutput, InstanceCreated, TaskInstance, TreeNode } from '../schema/instance.js';
import { findPostmaster, stopServer } from '../src/server/embedded-server.js';
import {
  type Client,
  createClient,
  expectStatus,
  NoReplyError,
  UnexpectedStatusError,
} from '../test/helpers/client.js';
import { newFolder } from '../test/helpers/database.js';
import { type Engine, startEngine } from '../test/helpers/engine.js';
import {
  EXPECTED_CHARGE_ATTEMPT,
  expectedReceipt,
  ORDER_BLOCKS,
  ORDERS,
  type Order,
  orderHandlers,
} from './orders.js';
import { COLUMNS, createProgress, type Progress, table } from './progress.js';

interface Run {
  readonly order: Order;
  readonly id: string;
}

interface Outcome {
  readonly state: string;
  readonly outputs: readonly BlockOutput[];
}

/** What was so just before the server was killed. */
interface Crash {
  readonly before: readonly Outcome[];
  /** The order whose card was being charged. */
  readonly inHand: string;
}

const TENANT = 'demo';
const NAMESPACE = 'shop';
/** The demo takes a few seconds, on a very busy machine a minute; after this something is wrong. */
const TIME_MAX_MS = 300_000;
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
  const dataDir = newFolder();
  const apiKey = randomBytes(16).toString('hex');
  let engine: Engine | undefined;
  try {
    progress.event('starting a server with a database of its own');
    engine = await startEngine({ apiKey, env: { ENGINE_DATA_DIR: dataDir } });
    progress.event(`the server listens on ${engine.url}`);
    const client = createClient({ url: engine.url, apiKey, tenant: TENANT });
    const handlers = orderHandlers(progress.event);
    const inHand = onFirstRetry(handlers.charge_card);
    const worker = new Worker(new EngineClient({ url: engine.url, apiKey, tenant: TENANT }), {
      handlers: { ...handlers, charge_card: inHand.handler },
      // The demo itself tells that the server is away.
      logger: { info: () => undefined, warn: () => undefined },
    });
    await worker.start();
    try {
      const runs = await placeOrders(client);
      progress.event(`steps of an order: ${ORDER_BLOCKS.map(({ id }) => id).join(', ')}`);
      const watching = watch(client, runs, progress, deadline);
      let crash: Crash | undefined;
      if (isKilled) {
        const order = await Promise.race([inHand.started, watching.then(() => undefined)]);
        if (order === undefined) throw new Error('the orders were done before the kill');
        crash = { before: await outcomes(client, runs), inHand: order };
        engine = await killAndRestart(engine, progress);
      }
      const ended = await watching;
      const isRight = report(runs, ended);
      if (crash !== undefined) tellCrash(crash, ended, inHand.triesOf(crash.inHand));
      return isRight ? 0 : 1;
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

interface InHand {
  readonly handler: HandlerFunction;
  /** The first order whose card is charged again: then a worker holds a claim and has not reported. */
  readonly started: Promise<string>;
  /** How often the second try of an order was begun. */
  triesOf(order: string): number;
}

function onFirstRetry(charge: HandlerFunction): InHand {
  let tell: (order: string) => void = () => undefined;
  const started = new Promise<string>((resolve) => {
    tell = resolve;
  });
  const tries: string[] = [];
  return {
    started,
    triesOf: (order) => tries.filter((tried) => tried === order).length,
    handler: (task, ctx) => {
      if (task.attempt > 0) {
        const order = String(task.params.order);
        tries.push(order);
        tell(order);
      }
      return charge(task, ctx);
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
      if (hasEnded) return await outcomes(client, runs);
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
  const states = ORDER_BLOCKS.map(
    ({ id: block }) => nodes.find(({ block_id }) => block_id === block)?.state ?? 'pending',
  );
  const current = ORDER_BLOCKS[states.findIndex((node) => node !== 'completed')]?.id ?? '';
  const marks = states.map((node) => MARKS[node]).join(' ');
  return { line: `${order.order}  ${state.padEnd(9)}  ${marks}  ${current}`.trimEnd(), state };
}

function outcomes(client: Client, runs: readonly Run[]): Promise<Outcome[]> {
  return Promise.all(runs.map((run) => outcome(client, run)));
}

async function outcome(client: Client, { id }: Run): Promise<Outcome> {
  const { state } = expectStatus(await client.get<TaskInstance>(`/instances/${id}`), 200);
  const outputs = await client.get<BlockOutput[]>(`/instances/${id}/outputs`);
  return { state, outputs: expectStatus(outputs, 200) };
}

/** Prints the outputs; returns whether they are right. */
function report(runs: readonly Run[], ended: readonly Outcome[]): boolean {
  const rows = [['order', 'step', 'tries', 'output']];
  let wrong = 0;
  for (const [i, { order }] of runs.entries()) {
    for (const { block_id, attempt, output } of ended[i]!.outputs) {
      rows.push([order.order, block_id, String(attempt + 1), JSON.stringify(output)]);
    }
    if (!isRight(order, ended[i]!)) wrong += 1;
  }
  const verdict = wrong === 0 ? 'every order is right' : `${wrong} orders are wrong`;
  process.stdout.write(`\n${table(rows, COLUMNS)}\n\n${verdict}\n`);
  return wrong === 0;
}

/** What the crash did to the steps that had ended, and to the one that a worker had in hand. */
function tellCrash({ before, inHand }: Crash, ended: readonly Outcome[], tries: number): void {
  const pairs = before.flatMap(({ outputs }, i) =>
    outputs.map((output) => ({ output, after: ended[i]!.outputs })),
  );
  const kept = pairs.filter(({ output, after }) =>
    after.some((found) => isDeepStrictEqual(found, output)),
  ).length;
  const again = pairs.filter(
    ({ output, after }) => after.filter((found) => found.block_id === output.block_id).length > 1,
  ).length;
  const lines = [
    'what the crash did:',
    `  ${pairs.length} steps had ended before it: ${kept} are as they were, ${again} ran again`,
    `  ${inHand} was being charged: that try was ${
      tries === 1 ? 'reported to the new server' : `made ${tries} times`
    }`,
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
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
