/** Proposals for an incomplete command line, from the table of commands. Pure. */

import type { Argument, Command, Completes, Option } from './command.js';
import { FILES_MARK, FOLDERS_MARK } from './completion-scripts.js';

export interface CompletionTable {
  readonly commands: readonly Command[];
  readonly globals: readonly Option[];
  readonly groups: Readonly<Record<string, string>>;
}

type Proposal = readonly [word: string, meaning: string];

/**
 * @param words after the program; the last one is incomplete and may be ''
 * @param profiles returns the names of profiles, called only if needed
 * @returns lines with the word, a tab and its meaning, or a mark that leaves it to the shell
 */
export function proposals(
  { commands, globals, groups }: CompletionTable,
  words: readonly string[],
  profiles: () => readonly string[],
): string[] {
  const last = words.at(-1) ?? '';
  const before = words.slice(0, -1);
  const { names, command, args, pending } = read(commands, globals, before);
  const of = (completes: Completes | undefined, choices: readonly string[] | undefined) =>
    valueProposals(completes, choices, last, profiles);
  if (pending !== undefined) return of(pending.completes, pending.choices);
  const options = [...(command?.options ?? []), ...globals];
  if (last.startsWith('-')) {
    const [flag = '', value] = last.split('=');
    const option = value === undefined ? undefined : options.find((one) => longOf(one) === flag);
    if (option !== undefined) {
      return matching(
        (option.choices ?? []).map((word) => [`${flag}=${word}`, '']),
        last,
      );
    }
    return matching(
      options.map((one) => [longOf(one), one.about]),
      last,
    );
  }
  if (command === undefined) return matching(nextWords(commands, groups, names), last);
  const argument = argumentAt(command.args ?? [], args);
  return argument === undefined ? [] : of(argument.completes, argument.choices);
}

interface Line {
  /** The words of the command's name so far. */
  readonly names: string;
  readonly command: Command | undefined;
  /** The number of arguments after it. */
  readonly args: number;
  /** The option whose value comes next. */
  readonly pending: Option | undefined;
}

function read(
  commands: readonly Command[],
  globals: readonly Option[],
  words: readonly string[],
): Line {
  let names = '';
  let command: Command | undefined;
  let args = 0;
  let pending: Option | undefined;
  for (const word of words) {
    if (pending !== undefined) pending = undefined;
    else if (word.startsWith('-')) {
      const options = [...(command?.options ?? []), ...globals];
      pending = options.find((one) => longOf(one) === word && takesValue(one));
    } else if (command !== undefined) args += 1;
    else {
      names = names === '' ? word : `${names} ${word}`;
      command = commands.find(({ name }) => name === names);
    }
  }
  return { names, command, args, pending };
}

function nextWords(
  commands: readonly Command[],
  groups: Readonly<Record<string, string>>,
  names: string,
): Proposal[] {
  const start = names === '' ? '' : `${names} `;
  const found = new Map<string, string>();
  for (const { name, summary } of commands) {
    if (!name.startsWith(start)) continue;
    const [word = '', ...rest] = name.slice(start.length).split(' ');
    found.set(word, rest.length === 0 ? summary : (groups[word] ?? ''));
  }
  return [...found];
}

function argumentAt(all: readonly Argument[], at: number): Argument | undefined {
  const last = all.at(-1);
  return all[at] ?? (last?.isMany ? last : undefined);
}

function valueProposals(
  completes: Completes | undefined,
  choices: readonly string[] | undefined,
  last: string,
  profiles: () => readonly string[],
): string[] {
  if (choices !== undefined) {
    // In a comma-separated list, the last word is completed.
    const done = last.slice(0, last.lastIndexOf(',') + 1);
    return matching(
      choices.map((word) => [done + word, '']),
      last,
    );
  }
  switch (completes) {
    case 'files':
      return [FILES_MARK];
    case 'folders':
      return [FOLDERS_MARK];
    case 'profiles':
      return matching(
        profiles().map((name) => [name, '']),
        last,
      );
    case undefined:
      return [];
  }
}

function matching(found: readonly Proposal[], start: string): string[] {
  return found
    .filter(([word]) => word.startsWith(start))
    .map(([word, meaning]) => `${word}\t${meaning}`);
}

/** `--state` for `--state <states>`. */
export const longOf = ({ flags }: Option): string => flags.split(' ')[0] ?? flags;
const takesValue = ({ flags }: Option): boolean => flags.includes('<');
