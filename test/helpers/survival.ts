/**
 * A server that is killed once, with something of everything in it. A row is arranged before the
 * kill, as a tenant of its own, and checked after the restart, which is its test.
 */

import { describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { type Api, beforeWith, type Tenant } from './api.js';
import { NoReplyError } from './client.js';

/** How long the server is down at least: what shall end in the meantime takes less. */
export const DOWN_MS = 3_000;

type Check = () => Promise<void>;

export interface Stages {
  /** When all rows are arranged: starts what is long enough to be interrupted by the kill. */
  readonly underWay?: () => Promise<unknown>;
  /** Then, just before the kill: for what ends soon, such as timers and held requests. */
  readonly atTheKill?: () => Promise<unknown>;
  /** Between the kill and the restart. */
  readonly whileDown?: () => Promise<unknown>;
  readonly check: Check;
}

type Stage = Exclude<keyof Stages, 'check'>;
type Arrange = (tenant: Tenant, api: Api) => Promise<Stages | Check>;

interface Row {
  readonly title: string;
  readonly arrange: Arrange;
  /** Rejects with what failed so far, which is then the failure of the row's own test. */
  stages?: Promise<Stages>;
}

/** The rows of one module. */
export interface Subject {
  readonly rows: readonly Row[];
  readonly survives: (title: string, arrange: Arrange) => void;
}

export function subject(): Subject {
  const rows: Row[] = [];
  return { rows, survives: (title, arrange) => void rows.push({ title, arrange }) };
}

/** Subjects at the same time. More of them would wait for each other's lists. */
const AT_ONCE = 4;

/** Makes a test of each row. Rows of one subject are arranged and checked one after the other. */
export function killOnce(api: Api, subjects: Readonly<Record<string, Subject>>): void {
  const all = Object.values(subjects).flatMap(({ rows }) => rows);
  const waiting = Object.values(subjects);
  const arrange = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      for (const row of next.rows) {
        row.stages = arranged(row, api);
        await row.stages.catch(() => undefined);
      }
    }
  };
  const stage = async (name: Stage) => {
    for (const row of all) row.stages = reached(row, name);
    await Promise.allSettled(all.map(({ stages }) => stages));
  };
  beforeWith(api, async () => {
    await Promise.all(Array.from({ length: AT_ONCE }, arrange));
    await stage('underWay');
    await stage('atTheKill');
    await api.engine.kill();
    await Promise.all([stage('whileDown'), pause(DOWN_MS)]);
    await api.restart();
  });
  describe('after SIGKILL', { concurrency: AT_ONCE }, () => {
    for (const [name, { rows }] of Object.entries(subjects)) {
      describe(name, { concurrency: false }, () => {
        for (const row of rows) test(row.title, async () => (await row.stages)?.check());
      });
    }
  });
}

async function arranged({ arrange }: Row, api: Api): Promise<Stages> {
  const found = await arrange(api.tenant(), api);
  return typeof found === 'function' ? { check: found } : found;
}

async function reached({ stages }: Row, name: Stage): Promise<Stages> {
  const found = (await stages) as Stages;
  await found[name]?.();
  return found;
}

/** Works until the server does not answer any more, or has worked so many times. */
export async function untilKilled(
  times: number,
  work: (turn: number) => Promise<unknown>,
): Promise<void> {
  try {
    for (let turn = 0; turn < times; turn += 1) await work(turn);
  } catch (error) {
    if (!(error instanceof NoReplyError)) throw error;
  }
}
