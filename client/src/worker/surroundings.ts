/** What a worker learns of the process that it runs in, where there is one that can be asked. */

interface ProcessLike {
  readonly pid?: number;
  readonly env?: Readonly<Record<string, string | undefined>>;
  on?(signal: string, run: () => void): unknown;
  off?(signal: string, run: () => void): unknown;
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
