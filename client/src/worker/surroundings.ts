/** Access to the process of the worker, on platforms that have one. */

interface ProcessLike {
  readonly pid?: number;
  readonly env?: Readonly<Record<string, string | undefined>>;
  on?(event: string, run: (reason: unknown) => void): unknown;
  off?(event: string, run: (reason: unknown) => void): unknown;
  listenerCount?(event: string): number;
  exit?(code: number): void;
}

const surrounding = (globalThis as { readonly process?: ProcessLike }).process;

const SIGNALS = ['SIGTERM', 'SIGINT'];

/** Readable and unique: containers often share host name and process id. */
export function newWorkerId(): string {
  const host = surrounding?.env?.HOSTNAME ?? 'worker';
  return `${host}-${surrounding?.pid ?? 0}-${crypto.randomUUID().slice(0, 8)}`;
}

/** Calls `run` on the first signal, until `end`; a second signal is not caught. */
export function interrupted(end: Promise<void>, run: () => void): void {
  const leave = () => SIGNALS.forEach((signal) => void surrounding?.off?.(signal, hear));
  const hear = () => {
    leave();
    run();
  };
  for (const signal of SIGNALS) surrounding?.on?.(signal, hear);
  end.then(leave, leave);
}

/** What to do about an uncaught error. */
export interface Watcher {
  onRejection(reason: unknown): void;
  /** The process exits when all watchers are done. */
  beforeExit(error: unknown): Promise<void>;
}

const watchers = new Set<Watcher>();

/**
 * While a worker runs, unhandled rejections are reported and survived, and an uncaught exception ends the process only
 * when the watchers are done. A program with its own listeners decides itself.
 *
 * @returns a function that stops watching
 */
export function watchUncaught(watcher: Watcher): () => void {
  if (watchers.size === 0) {
    for (const [event, hear] of UNCAUGHT) surrounding?.on?.(event, hear);
  }
  watchers.add(watcher);
  return () => {
    if (!watchers.delete(watcher) || watchers.size > 0) return;
    for (const [event, hear] of UNCAUGHT) surrounding?.off?.(event, hear);
  };
}

const isOurs = (event: string) => (surrounding?.listenerCount?.(event) ?? 1) === 1;

const UNCAUGHT = [
  [
    'unhandledRejection',
    (reason: unknown) => {
      if (!isOurs('unhandledRejection')) return;
      for (const watcher of watchers) watcher.onRejection(reason);
    },
  ],
  [
    'uncaughtException',
    (error: unknown) => {
      if (!isOurs('uncaughtException')) return;
      const done = [...watchers].map((watcher) => watcher.beforeExit(error));
      void Promise.allSettled(done).then(() => surrounding?.exit?.(1));
    },
  ],
] as const;
