/** The shared state of a start: settings, log, engine state, started parts and stop signal. */

import { randomUUID } from 'node:crypto';
import type { Logger } from '../base/log.js';
import { realClock, within } from '../base/real-clock.js';
import { DEFAULT_SCHEMA } from '../db/database-url.js';
import type { Config } from './config.js';
import { Gate } from './gate.js';

export interface Part {
  readonly name: string;
  readonly stop: () => Promise<void>;
}

export class Startup {
  readonly config: Config;
  readonly log: Logger;
  readonly gate = new Gate(realClock);
  /** Names this process in the lease and in its sessions, so that a take-over can end them. */
  readonly owner = `engine-${randomUUID().slice(0, 13)}`;
  readonly schema: string;
  /** The started parts, in order; stopped in reverse. */
  readonly parts: Part[] = [];
  readonly #stopping = new AbortController();

  constructor({ config, log }: { readonly config: Config; readonly log: Logger }) {
    this.config = config;
    this.log = log;
    this.schema = config.dbSchema ?? DEFAULT_SCHEMA;
  }

  /** Aborted when the engine is to stop: cancels the rest of the start. */
  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  giveUp(): void {
    this.#stopping.abort();
  }

  /** Waits for the work, or rejects when the engine is to stop. */
  async unlessStopped<T>(work: Promise<T>): Promise<T> {
    const { signal } = this.#stopping;
    let give: () => void = () => undefined;
    const given = new Promise<never>((_, reject) => {
      give = () => reject(signal.reason);
    });
    signal.addEventListener('abort', give, { once: true });
    try {
      signal.throwIfAborted();
      return await Promise.race([work, given]);
    } finally {
      signal.removeEventListener('abort', give);
      work.catch(() => undefined);
    }
  }
}

/** Facts about a ready engine, for the log and the startup banner. */
export interface ReadyFacts {
  /** The address of the server, without a path. */
  readonly url: string;
  /** The folder of the embedded database; undefined with DATABASE_URL. */
  readonly database: string | undefined;
  /** The file of a generated root key. */
  readonly keyFile: string | undefined;
  readonly insecureAuth: boolean;
  readonly hasDashboard: boolean;
}

/** The address to open; for a server that listens on all addresses the loopback one. */
export function urlOf(host: string, port: number): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}

/** Extra time of every part beyond the deadline, so that none blocks the shutdown. */
const STOP_GRACE_MS = 400;

/** Stops the parts one after the other. @param deadline on the monotonic clock */
export async function stopParts(
  parts: readonly Part[],
  deadline: number,
  log: Logger,
): Promise<void> {
  for (const { name, stop } of parts) {
    await within(deadline + STOP_GRACE_MS, stop()).catch((error: unknown) =>
      log.warn({ err: error, part: name }, 'did not stop cleanly'),
    );
  }
}
