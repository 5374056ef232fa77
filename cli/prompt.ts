/** Prompts at the terminal, on the error stream. */

import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { CommandError, usageError } from './exit.js';

export interface Asker {
  /** Whether there is a terminal to ask. */
  readonly isThere: boolean;
  /** @throws CommandError unless the answer is yes */
  confirm(question: string): Promise<void>;
  /** Reads hidden input. */
  secret(question: string): Promise<string>;
}

export interface Terminal {
  readonly stdin: NodeJS.ReadStream;
  readonly stderr: NodeJS.WriteStream;
  /** Called on Ctrl-C during a prompt. */
  readonly onInterrupt: () => void;
  readonly signal: AbortSignal;
}

export function askerOf({ stdin, stderr, onInterrupt, signal }: Terminal): Asker {
  const isThere = stdin.isTTY === true && stderr.isTTY === true;
  const ask = async (question: string, isShown: boolean): Promise<string> => {
    if (!isThere) throw usageError(`${question.trim()} cannot be asked without a terminal`);
    // The line editor echoes the input; for a secret it writes to nothing.
    const output = isShown ? stderr : new Writable({ write: (_chunk, _encoding, done) => done() });
    // From here on the terminal does not echo, so the question is printed afterwards.
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
