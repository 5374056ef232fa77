/**
 * The entry of the writer's thread, a resident Piscina task: it returns when the writer stops. Builds the
 * real dependencies and connects the ports of the shards to the writer. A defect in the writer ends the
 * thread; its successor reads from the database what was committed.
 */

import { type MessagePort, threadId } from 'node:worker_threads';
import { createLogger } from '../../src/base/log.js';
import { logOutput } from '../../src/base/log-output.js';
import { realClock, within } from '../../src/base/real-clock.js';
import { createClient } from '../../src/db/pool.js';
import type { DatabaseTrouble } from '../../src/db/trouble.js';
import { type PackedUnit, packedAck, unpackedUnit } from '../../src/db/units.js';
import { CommitLedger } from '../../src/metrics/ledger.js';
import { Meter } from '../../src/metrics/meter.js';
import { closeAfterReply, receiveAll, serveControl, type ThreadTask } from '../runtime/control.js';
import { BATCH_LANES } from '../writer/lane-count.js';
import { Writer } from '../writer/writer.js';
import { STORE } from './store.js';

export interface WriterTask extends ThreadTask {
  readonly events: MessagePort;
  readonly ledger: { readonly lanes: number; readonly memory: SharedArrayBuffer };
}

export interface WriterControl extends Pick<Writer, 'discard' | 'drain'> {
  threadId(): number;
  /** Connects as the owner of the epoch; earlier units wait. Rejects when fenced. */
  start(epoch: number, lanes: number): Promise<void>;
  attachShard(shard: number, incarnation: number, port: MessagePort): void;
  /** Writes the posted units, if the database does so in time, and ends. */
  stop(): Promise<void>;
}

/** Posted to the supervisor on the port `events`. */
export type WriterEvent =
  | { readonly kind: 'fenced' }
  | { readonly kind: 'database'; readonly trouble: DatabaseTrouble | undefined };

/** A database that does not respond to a connection for this long counts as unavailable. */
const CONNECT_MS_MAX = 3_000;
/** A paused engine must not hold its locks for long between two parts of a flush. */
const IDLE_IN_TRANSACTION_MS = 10_000;
/** How long `stop` waits for posted units. */
const DRAIN_MS_MAX = 1_500;

export default function runWriter(task: WriterTask): Promise<void> {
  const { control, events, applicationName } = task;
  const ports = new Map<number, { readonly port: MessagePort; readonly incarnation: number }>();
  const post = (event: WriterEvent) => events.postMessage(event);
  let writer: Writer | undefined;
  const started = (): Writer => {
    if (writer === undefined) throw new Error('the writer was not started');
    return writer;
  };
  const newWriter = (epoch: number, lanes: number) =>
    new Writer({
      store: STORE,
      connect: () =>
        createClient({
          connectionString: task.connectionString,
          applicationName,
          // The links detect silence: they distinguish a slow database from an unreachable one.
          statementTimeoutMs: 0,
          idleInTransactionTimeoutMs: IDLE_IN_TRANSACTION_MS,
          connectTimeoutMs: CONNECT_MS_MAX,
        }),
      applicationName,
      epoch,
      lanes: lanes + BATCH_LANES,
      isLastForBatches: true,
      clock: realClock,
      log: createLogger(task.logLevel, 'writer', logOutput(task.logFormat), task.cell),
      ledger: new CommitLedger(task.ledger.lanes, task.ledger.memory),
      meter: new Meter(task.meter),
      onAcks(shard, incarnation, acks) {
        const joined = ports.get(shard);
        if (joined?.incarnation === incarnation) joined.port.postMessage(acks.map(packedAck));
      },
      onFenced: () => post({ kind: 'fenced' }),
      onDatabase: (trouble) => post({ kind: 'database', trouble }),
    });
  const flushAndStop = async (running: Writer) => {
    // Units that a shard posted before it stopped may still be in its port.
    for (const [shard, { port, incarnation }] of ports) {
      for (const units of receiveAll<PackedUnit[]>(port))
        submit(running, shard, incarnation, units);
    }
    // A fenced writer rejects, and has nothing to wait for.
    const drained = running.drain().catch(() => undefined);
    await within(realClock.monotonic() + DRAIN_MS_MAX, drained);
    await running.stop();
  };
  /** Until a listener is attached, a port buffers messages. */
  const listen = (shard: number, incarnation: number, port: MessagePort) =>
    port.on('message', (units: PackedUnit[]) => submit(started(), shard, incarnation, units));

  return new Promise((resolve) => {
    const surface: WriterControl = {
      threadId: () => threadId,
      async start(epoch, lanes) {
        writer = newWriter(epoch, lanes);
        for (const [shard, { port, incarnation }] of ports) listen(shard, incarnation, port);
        await writer.start();
      },
      attachShard(shard, incarnation, port) {
        ports.get(shard)?.port.close();
        ports.set(shard, { port, incarnation });
        if (writer !== undefined) listen(shard, incarnation, port);
      },
      discard: (shard, incarnation) => started().discard(shard, incarnation),
      drain: () => started().drain(),
      async stop() {
        if (writer !== undefined) await flushAndStop(writer);
        for (const { port } of ports.values()) port.close();
        events.close();
        closeAfterReply(control, resolve);
      },
    };
    serveControl(surface, control);
  });
}

function submit(writer: Writer, shard: number, incarnation: number, units: readonly PackedUnit[]) {
  writer.submit(shard, incarnation, units.map(unpackedUnit));
}
