/** Questions to the person at the terminal. They are asked on the error stream: results go elsewhere. */

import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { CommandError, usageError } from './exit.js';

export interface Asker {
  /** Whether somebody can answer. */
  readonly isThere: boolean;
  /** @throws CommandError when the answer is not yes */
  confirm(question: string): Promise<void>;
  /** What is typed is not shown. */
  secret(question: string): Promise<string>;
}

export interface Terminal {
  readonly stdin: NodeJS.ReadStream;
  readonly stderr: NodeJS.WriteStream;
  /** Ctrl-C while a question is asked. */
  readonly onInterrupt: () => void;
  readonly signal: AbortSignal;
}

export function askerOf({ stdin, stderr, onInterrupt, signal }: Terminal): Asker {
  const isThere = stdin.isTTY === true && stderr.isTTY === true;
  const ask = async (question: string, isShown: boolean): Promise<string> => {
    if (!isThere) throw usageError(`${question.trim()} cannot be asked: there is no terminal`);
    // The line editor writes what is typed; for a secret it writes into nothing.
    const output = isShown ? stderr : new Writable({ write: (_chunk, _encoding, done) => done() });
    // From here on the terminal itself shows nothing of what is typed, so the question comes after it.
    const lines = createInterface({ input: stdin, output, terminal: true, historySize: 0 });
    if (!isShown) stderr.write(question);
    lines.on('SIGINT', onInterrupt);
    try {
      return (await lines.question(isShown ? question : '', { signal })).trim();
    } finally {
      lines.close();
      if (!isShown) stderr.write('\n');
    }
  };
  return {
    isThere,
    confirm: async (question) => {
      const answer = await ask(`${question} [y/N] `, true);
      if (!/^y(?:es)?$/i.test(answer)) throw new CommandError('declined', 'nothing was changed');
    },
    secret: (question) => ask(`${question}: `, false),
  };
}
