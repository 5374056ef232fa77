/**
 * What the front thread reads from Postgres by itself: lists and reports that span actors, and the
 * rows of one instance or task that no actor keeps in memory. Only SELECTs, over a pool of their
 * own, so that a slow list never delays a commit. Answers are JSON text, spliced together from the
 * JSON columns' texts, which are not parsed here.
 */

import type pg from 'pg';
import { LIMITS } from '../config.js';
import { ChangeReads } from './reads/change-reads.js';
import { ContinuityReads } from './reads/continuity-reads.js';
import { CronReads } from './reads/cron-reads.js';
import { EffectReads } from './reads/effect-reads.js';
import { InstanceReads } from './reads/instance-reads.js';
import { KeyReads } from './reads/key-reads.js';
import { MetricReads } from './reads/metric-reads.js';
import { NoteReads } from './reads/note-reads.js';
import { RateLimitReads } from './reads/rate-limit-reads.js';
import { Reader } from './reads/reader.js';
import { ReleaseReads } from './reads/release-reads.js';
import { ReplayReads } from './reads/replay-reads.js';
import { RetentionReads } from './reads/retention-reads.js';
import { SequenceReads } from './reads/sequence-reads.js';
import { WebhookReads } from './reads/webhook-reads.js';
import { WorkerReads } from './reads/worker-reads.js';

/**
 * How the pool of reads is made (see `createPool`). Few connections, since each of them may hold one
 * answer of `LIMITS.responseBytesMax`; who finds none free waits, and gets a 503 after a while. The
 * pool must not have a `queryTimeoutMs`: it would end cursors that have long been read.
 */
export const READ_POOL_OPTIONS = {
  connectionsMax: 4,
  statementTimeoutMs: LIMITS.slowReadMs,
} as const;

/**
 * Every method answers from committed rows and rejects with an `EngineError` only: 503
 * `ENG_SLOW_READ` after `LIMITS.slowReadMs`, 503 `ENG_DATABASE_DOWN`, 503 `ENG_OVERLOADED`, or 500.
 */
export interface Reads {
  readonly continuity: ContinuityReads;
  readonly cron: CronReads;
  readonly changes: ChangeReads;
  readonly effects: EffectReads;
  readonly instances: InstanceReads;
  readonly keys: KeyReads;
  readonly metrics: MetricReads;
  readonly notes: NoteReads;
  readonly rateLimits: RateLimitReads;
  readonly releases: ReleaseReads;
  readonly replays: ReplayReads;
  readonly retention: RetentionReads;
  readonly sequences: SequenceReads;
  readonly webhooks: WebhookReads;
  readonly workers: WorkerReads;
}

/** @param slowReadMs how long one answer may take in all */
export function createReads(pool: pg.Pool, slowReadMs: number = LIMITS.slowReadMs): Reads {
  const reader = new Reader(pool, slowReadMs);
  return {
    changes: new ChangeReads(reader),
    continuity: new ContinuityReads(reader, slowReadMs),
    cron: new CronReads(reader),
    effects: new EffectReads(reader),
    instances: new InstanceReads(reader),
    keys: new KeyReads(reader),
    metrics: new MetricReads(reader),
    notes: new NoteReads(reader),
    rateLimits: new RateLimitReads(reader),
    releases: new ReleaseReads(reader),
    replays: new ReplayReads(reader),
    retention: new RetentionReads(reader),
    sequences: new SequenceReads(reader),
    webhooks: new WebhookReads(reader),
    workers: new WorkerReads(reader),
  };
}
