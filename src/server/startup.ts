/**
 * What every step of a start shares: settings and log, the state of the engine, what was started so far, and the
 * signal that gives up the rest; and the stop of what was started.
 */

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
  /** What was started, in order; stopped in the opposite one. */
  readonly parts: Part[] = [];
  readonly #stopping = new AbortController();

  constructor({ config, log }: { readonly config: Config; readonly log: Logger }) {
    this.config = config;
    this.log = log;
    this.schema = config.dbSchema ?? DEFAULT_SCHEMA;
  }

  /** Aborted when the engine is to stop: what is still under way of the start is given up. */
  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  giveUp(): void {
    this.#stopping.abort();
  }

  /** The work, until the engine is to stop: then it is given up, and nobody waits for its end. */
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

/** What the log says of an engine that is ready, and where a newcomer goes from there. */
export interface ReadyFacts {
  /** Of the server, without a path. */
  readonly url: string;
  /** The folder of the embedded database; undefined with DATABASE_URL. */
  readonly database: string | undefined;
  /** Where the root key lies, when it was generated. */
  readonly keyFile: string | undefined;
  readonly insecureAuth: boolean;
  readonly hasDashboard: boolean;
}

/** The address to open: a server that listens everywhere is found here. */
export function urlOf(host: string, port: number): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}

/** Every part may take this much longer than the shutdown as a whole, so that none hangs it. */
const STOP_GRACE_MS = 400;

/** One after the other. @param deadline on the monotonic clock */
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
