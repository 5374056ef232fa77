/**
 * Two real shards with the real writer on a real database, all in this thread, on a clock that the
 * test can put forward. A shard can be made to die at any message that it sends, and is replaced as
 * the supervisor does it.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { pino } from 'pino';
import { ContinuityRows } from '../../actors/continuity/rows.js';
import type { PeerMessage, Reply } from '../../actors/runtime/protocol.js';
import { openLoads } from '../../actors/shard/loads.js';
import { Shard } from '../../actors/shard/shard.js';
import type { Writer } from '../../actors/writer/writer.js';
import type { Clock } from '../../src/base/clock.js';
import { ERROR_STATUS } from '../../src/base/errors.js';
import { routeOf, shardOf } from '../../src/base/ids.js';
import { realClock } from '../../src/base/real-clock.js';
import { createKeyring } from '../../src/core/sealing/keys.js';
import type { UnitEnvelope } from '../../src/db/units.js';
import type { Json } from './api.js';
import { requestsOf, startStorage } from './shard.js';
import { NO_PUSHES, NO_WEBHOOKS, SHARD_SETTINGS } from './shard-settings.js';

export type Answer = { readonly status: number; readonly body: Json };

export interface LocalShards {
  readonly sql: pg.Client;
  readonly tenant: string;
  now(): number;
  /** Status 503 when the shard died before it answered. */
  ask(operation: string, target: string, body?: Json, tenant?: string): Promise<Answer>;
  /** @throws AssertionError unless the status is that of a success */
  get(operation: string, target: string, body?: Json): Promise<Json>;
  /** An instance whose id leads to that shard. */
  create(sequenceId: string, shard: number, more?: Json): Promise<string>;
  sequence(blocks: readonly Json[]): Promise<string>;
  until(id: string, state: string): Promise<void>;
  /** Puts the clock forward; timers that come due run. */
  advance(ms: number): void;
  /**
   * Kills the shard when it is about to send units, or right after they were sent, and replaces it.
   * Resolves when it serves again.
   *
   * @param skip how many posts of units pass before
   */
  killAtUnits(shard: number, when: 'before' | 'after', skip?: number): Promise<void>;
  /** The same of the writer, whichever shard sends. */
  killWriterAtUnits(when: 'before' | 'after', skip?: number): Promise<void>;
  /** Lets the victim live after all; false when it was killed already. */
  spare(victim: number | 'writer'): boolean;
  /** Kills and replaces it now. */
  replace(shard: number): Promise<void>;
  stop(): Promise<void>;
}

const SHARDS = 2;
const APPLICATION = `test shards ${process.pid}`;
const DIED: Answer = { status: 503, body: { error: 'the shard died' } };

type Running = { readonly shard: Shard; readonly incarnation: number; isDead: boolean };

/** @param rowsOf what executions are read with, for tests that have something happen between two reads */
export async function startShards(
  rowsOf: (pool: pg.Pool) => ContinuityRows = (pool) => new ContinuityRows(pool),
): Promise<LocalShards> {
  const { sql, pool, newWriter: newWriterOf, stop } = await startStorage(APPLICATION);
  const log = pino({ level: 'silent' });
  const { clock, advance, stop: stopClock } = movableClock();
  const tenant = `t-${randomUUID()}`;
  const keyring = createKeyring(Buffer.alloc(32, 7));
  const running: Running[] = [];
  const asked = new Map<number, (answer: Answer) => void>();
  const atUnits = new Map<number | 'writer', (send: () => void) => void>();
  let requests = 0;

  const newWriter = () => {
    const one: Writer = newWriterOf({
      lanes: 2,
      log,
      onAcks: (shard, incarnation, acks) => {
        const to = running[shard];
        const isHeard = one === writer && to?.incarnation === incarnation && !to.isDead;
        if (isHeard) to.shard.receiveAcks(acks);
      },
    });
    return one;
  };
  /** Undefined while there is none. */
  let writer: Writer | undefined = newWriter();

  function start(shard: number, incarnation: number): Running {
    const self: Running = {
      incarnation,
      isDead: false,
      shard: new Shard({
        settings: { ...SHARD_SETTINGS, shard, shards: SHARDS },
        clock,
        random: Math.random,
        log,
        loader: openLoads(pool, { shard, shards: SHARDS }),
        handlers: new Map(),
        continuityRows: rowsOf(pool),
        keyring,
        pushSender: NO_PUSHES,
        webhookSender: NO_WEBHOOKS,
        setImmediate: (fn) => void setImmediate(fn),
        ports: {
          toFront(replies) {
            if (!self.isDead) for (const reply of replies) answered(reply);
          },
          toWriter: (units) => toWriter(shard, self, units),
          toPeer: (peer, messages) => toPeer(self, peer, messages),
          drainPeers: () => [],
        },
      }),
    };
    running[shard] = self;
    return self;
  }

  function toWriter(shard: number, self: Running, units: readonly UnitEnvelope[]): void {
    if (self.isDead) return;
    const send = () => writer?.submit(shard, self.incarnation, units);
    const trap = atUnits.get(shard) ?? atUnits.get('writer');
    if (trap === undefined) send();
    else trap(send);
  }

  function toPeer(self: Running, peer: number, messages: readonly PeerMessage[]): void {
    const to = running[peer];
    if (!self.isDead && to !== undefined && !to.isDead) to.shard.receivePeer(messages);
  }

  function answered(reply: Reply): void {
    const answer = asked.get(reply.request);
    asked.delete(reply.request);
    if ('error' in reply) {
      const { code, message } = reply.error;
      answer?.({ status: ERROR_STATUS[code], body: { error: message } });
    } else answer?.({ status: reply.status, body: JSON.parse(reply.body) as Json });
  }

  function die(shard: number): number {
    const dead = running[shard];
    assert.ok(dead);
    dead.isDead = true;
    dead.shard.stop();
    // Also what was asked of another one: it may have been handed on.
    for (const [id, answer] of asked) {
      asked.delete(id);
      answer(DIED);
    }
    return dead.incarnation;
  }

  async function takePlace(shard: number, died: number): Promise<void> {
    await writer?.discard(shard, died);
    const peers = running.filter((_, other) => other !== shard);
    for (const peer of peers) peer.shard.peerDied(shard);
    await start(shard, died + 1).shard.start();
    for (const peer of peers) peer.shard.peerRestarted(shard);
  }

  async function replaceWriter(): Promise<void> {
    const old = writer;
    writer = undefined;
    for (const { shard } of running) shard.writerLost();
    // What it had begun may still be committed; nobody hears of it.
    await old?.stop();
    const next = newWriter();
    await next.start();
    writer = next;
    for (const { shard } of running) shard.writerReady();
  }

  /** Springs once, at the units that come after those that are let pass. */
  function trap(victim: number | 'writer', skip: number, spring: (send: () => void) => void): void {
    let left = skip;
    atUnits.set(victim, (send) => {
      left -= 1;
      if (left >= 0) return send();
      atUnits.delete(victim);
      spring(send);
    });
  }

  const killed = (
    victim: number | 'writer',
    replaced: () => Promise<void>,
    when: 'before' | 'after',
    skip = 0,
  ) =>
    new Promise<void>((resolve, reject) => {
      trap(victim, skip, (send) => {
        if (when === 'after') send();
        replaced().then(resolve, reject);
      });
    });

  await writer.start();
  for (let shard = 0; shard < SHARDS; shard++) start(shard, 0);
  await Promise.all(running.map(({ shard }) => shard.start()));

  const self: LocalShards = {
    sql,
    tenant,
    now: () => clock.now(),
    ask: (operation, target, body = {}, as = tenant) => {
      requests += 1;
      const shard = target === '' ? 0 : shardOf(routeOf(target), SHARDS);
      const request = { id: requests, operation, tenant: as, target, body: JSON.stringify(body) };
      const to = running[shard];
      if (to === undefined || to.isDead) return Promise.resolve(DIED);
      return new Promise((answer) => {
        asked.set(request.id, answer);
        to.shard.receiveRequests({ requests: [request], aborted: [] });
      });
    },
    get: async (operation, target, body) => {
      const answer = await self.ask(operation, target, body);
      assert.ok(answer.status < 300, `${operation}: ${JSON.stringify(answer)}`);
      return answer.body;
    },
    sequence: (blocks) => usual.sequence(blocks),
    create: (sequence, shard, more) =>
      usual.create(sequence, more, `00000000-0000-7000-8000-00000000000${shard}`),
    until: (id, state) => usual.until(id, state),
    advance,
    killAtUnits: (shard, ...when) => killed(shard, () => takePlace(shard, die(shard)), ...when),
    killWriterAtUnits: (...when) => killed('writer', replaceWriter, ...when),
    spare: (victim) => atUnits.delete(victim),
    replace: (shard) => takePlace(shard, die(shard)),
    async stop() {
      for (const { shard } of running) shard.stop();
      stopClock();
      await writer?.stop();
      await stop();
    },
  };
  const usual = requestsOf(tenant, (...request) => self.get(...request));
  return self;
}

interface MovableClock {
  readonly clock: Clock;
  readonly advance: (ms: number) => void;
  /** Whatever is still waited for never comes. */
  readonly stop: () => void;
}

/** Real time, from when it was last put forward. */
function movableClock(): MovableClock {
  let ahead = 0;
  const waiting = new Map<object, { readonly due: number; readonly end: (run: boolean) => void }>();
  const now = () => realClock.now() + ahead;
  const clock: Clock = {
    now,
    monotonic: () => realClock.monotonic() + ahead,
    setTimeout(fn, ms) {
      const handle = {};
      const end = (run: boolean) => {
        realClock.clearTimeout(real);
        if (waiting.delete(handle) && run) fn();
      };
      const real = realClock.setTimeout(() => end(true), ms);
      waiting.set(handle, { due: now() + ms, end });
      return handle;
    },
    clearTimeout: (handle) => waiting.get(handle as object)?.end(false),
  };
  return {
    clock,
    advance: (ms) => {
      ahead += ms;
      for (const { due, end } of [...waiting.values()]) if (due <= now()) end(true);
    },
    stop: () => {
      for (const { end } of [...waiting.values()]) end(false);
    },
  };
}
