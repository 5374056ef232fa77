/** What a worker learns of the process that it runs in, where there is one that can be asked. */

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

/** Readable, and like no other: containers often share both host name and process id. */
export function newWorkerId(): string {
  const host = surrounding?.env?.HOSTNAME ?? 'worker';
  return `${host}-${surrounding?.pid ?? 0}-${crypto.randomUUID().slice(0, 8)}`;
}

/** Calls `run` at the first signal. It listens until then, or until `end`; the next signal is not caught. */
export function interrupted(end: Promise<void>, run: () => void): void {
  const leave = () => SIGNALS.forEach((signal) => void surrounding?.off?.(signal, hear));
  const hear = () => {
    leave();
    run();
  };
  for (const signal of SIGNALS) surrounding?.on?.(signal, hear);
  end.then(leave, leave);
}

/** What a worker does when something was thrown that nobody caught. */
export interface Watcher {
  onRejection(reason: unknown): void;
  /** The process ends when all of them are done. */
  beforeExit(error: unknown): Promise<void>;
}

const watchers = new Set<Watcher>();

/**
 * As long as a worker runs, a rejection that nobody handles is told and survived, and an exception that nobody
 * catches ends the process only when the watchers are done. A program that listens to these events decides itself.
 *
 * @returns what ends the watching
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
