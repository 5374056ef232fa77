/**
 * Child processes of tests that talk in JSON lines: a test waits for the line it needs instead of
 * sleeping. Every child that still runs is killed when its test file ends.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

export interface TestChild {
  readonly pid: number;
  /** The first line, past or to come, that has the field. @throws Error when the child ends before */
  line(field: string): Promise<Record<string, unknown>>;
  signal(signal: NodeJS.Signals): void;
  /** Sends the signal and waits for the end. */
  end(signal: NodeJS.Signals): Promise<void>;
}

const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Runs a compiled module. Its error stream is that of the test. */
export function startChild(module: URL, args: readonly string[]): TestChild {
  const child = spawn(process.execPath, [module.pathname, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  running.add(child);
  const ended = once(child, 'exit').then(() => void running.delete(child));
  const lines: Record<string, unknown>[] = [];
  const waiting = new Set<() => void>();
  const notify = () => {
    for (const check of waiting) check();
  };
  const reader = createInterface({ input: child.stdout! });
  reader.on('line', (text) => {
    lines.push(JSON.parse(text) as Record<string, unknown>);
    notify();
  });
  reader.once('close', notify);

  return {
    pid: child.pid!,
    line: (field) =>
      new Promise((resolve, reject) => {
        const check = () => {
          const found = lines.find((line) => field in line);
          if (found === undefined && child.stdout!.readable) return;
          waiting.delete(check);
          if (found !== undefined) resolve(found);
          else reject(new Error(`the child ended without saying ${field}`));
        };
        waiting.add(check);
        check();
      }),
    signal: (signal) => void child.kill(signal),
    end: async (signal) => {
      child.kill(signal);
      await ended;
    },
  };
}
