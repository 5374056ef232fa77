/**
 * The types of the command table. Help, argument parsing, shell completion and the reference in docs/cli.md are derived
 * from its rows; most rows are an operation of the client and the columns of its table.
 */

import type { List } from '../client/src/index.js';
import { type ExitCode, usageError } from './exit.js';
import type { Session } from './session.js';
import type { Column } from './table.js';

/** What a shell can complete besides fixed words. */
export type Completes = 'files' | 'folders' | 'profiles';

export interface Option {
  /** `--state <states>` takes a value, `--yes` takes none. */
  readonly flags: string;
  readonly about: string;
  readonly choices?: readonly string[];
  /** May be repeated; with choices it also accepts a comma-separated list. */
  readonly isMany?: true;
  readonly completes?: Completes;
}

export interface Argument {
  readonly name: string;
  readonly about: string;
  readonly choices?: readonly string[];
  readonly isOptional?: true;
  /** The last argument: accepts any number of values. */
  readonly isMany?: true;
  readonly completes?: Completes;
}

export interface Command {
  /** One or two words: `doctor`, `instances list`. */
  readonly name: string;
  readonly summary: string;
  readonly args?: readonly Argument[];
  readonly options?: readonly Option[];
  /** The command ends the process itself, also on Ctrl-C. */
  readonly endsItself?: true;
  /** Undefined means success. */
  readonly run: (session: Session, given: Given) => Promise<ExitCode | undefined>;
}

/** The arguments and options of a command, validated against its row. */
export class Given {
  readonly args: readonly (string | readonly string[] | undefined)[];
  readonly #options: Readonly<Record<string, unknown>>;

  constructor(args: Given['args'], options: Readonly<Record<string, unknown>>) {
    this.args = args;
    this.#options = options;
  }

  /** The argument at this position, which the row requires. */
  arg(at = 0): string {
    return this.args[at] as string;
  }

  /** All arguments from this position on. */
  rest(at = 0): readonly string[] {
    return (this.args[at] as readonly string[] | undefined) ?? [];
  }

  /** @param name of the option, without dashes */
  text(name: string): string | undefined {
    return this.#options[memberOf(name)] as string | undefined;
  }

  texts(name: string): readonly string[] {
    return (this.#options[memberOf(name)] as readonly string[] | undefined) ?? [];
  }

  flag(name: string): boolean {
    return this.#options[memberOf(name)] === true;
  }

  /** @throws CommandError unless it is a whole number */
  count(name: string): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    if (!/^-?\d{1,15}$/.test(text))
      throw usageError(`--${name} must be a whole number, not ${text}`);
    return Number(text);
  }

  /** @throws CommandError if it is missing */
  required(name: string): string {
    const text = this.text(name);
    if (text === undefined) throw usageError(`--${name} is required`);
    return text;
  }

  /** Pairs `name=value`. @throws CommandError for another form */
  pairs(name: string): Readonly<Record<string, string>> | undefined {
    const pairs = this.texts(name).map((text): [string, string] => {
      const at = text.indexOf('=');
      if (at < 1) throw usageError(`--${name} must be name=value, not ${text}`);
      return [text.slice(0, at), text.slice(at + 1)];
    });
    return pairs.length === 0 ? undefined : Object.fromEntries(pairs);
  }
}

/** The name the parser uses: `createdAfter` for `created-after`. */
const memberOf = (name: string) =>
  name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());

// ---------------------------------------------------------------- kinds of commands

type Words = Omit<Command, 'run'>;

/** The server's limit of items per page. */
const PAGE_MAX = 1_000;
const LIMIT_DEFAULT = 50;

const LIMIT_OPTIONS: readonly Option[] = [
  { flags: '--limit <n>', about: `How many to show at most; ${LIMIT_DEFAULT} unless given.` },
  { flags: '--all', about: 'Show all of them.' },
];

/** A command that prints a list, as a table or as a JSON array. */
export function listing<T>(
  row: Words & {
    readonly columns: readonly Column<T>[];
    /** @param limit page size; @param most how many items are wanted in total, for lists without pages */
    readonly ask: (
      session: Session,
      given: Given,
      limit: number,
      most: number,
    ) => List<T> | Promise<readonly T[]>;
    /** Adds data that the server's list does not have, for the table. */
    readonly completed?: (session: Session, items: readonly T[]) => Promise<readonly T[]>;
  },
): Command {
  const { ask, columns, completed, ...words } = row;
  return {
    ...words,
    options: [...(words.options ?? []), ...LIMIT_OPTIONS],
    run: async (session, given) => {
      const { out } = session;
      const most = given.flag('all')
        ? Number.POSITIVE_INFINITY
        : (given.count('limit') ?? LIMIT_DEFAULT);
      // One more item shows whether there are more.
      const asked = ask(session, given, Math.min(most + 1, PAGE_MAX), most + 1);
      const found = await firstOf(asked, most + 1);
      const items = found.slice(0, most);
      const hint =
        found.length > most ? `There are more. Use --limit ${most * 2} or --all.` : undefined;
      if (out.isJson) out.json(items);
      else out.table(columns, (await completed?.(session, items)) ?? items);
      if (hint !== undefined) out.note(hint);
      return undefined;
    },
  };
}

/** The items of as many pages as needed. @param most maximum number of items */
export async function firstOf<T>(
  asked: List<T> | Promise<readonly T[]>,
  most: number,
): Promise<readonly T[]> {
  if (asked instanceof Promise) return asked;
  const items: T[] = [];
  if (most < 1) return items;
  for await (const item of asked) {
    items.push(item);
    if (items.length >= most) break;
  }
  return items;
}

/** A command that shows one object, as a list of its members or as JSON. */
export function showing<T extends object>(
  row: Words & {
    readonly ask: (session: Session, given: Given) => Promise<T>;
    /** Lines to print in place of the members. */
    readonly lines?: (session: Session, thing: T) => readonly string[];
    readonly exit?: (thing: T) => ExitCode;
  },
): Command {
  const { ask, lines, exit, ...words } = row;
  return {
    ...words,
    run: async (session, given) => {
      const { out } = session;
      const thing = await ask(session, given);
      if (out.isJson) out.json(thing);
      else if (lines === undefined) out.record(thing);
      else for (const line of lines(session, thing)) out.line(line);
      return exit?.(thing);
    },
  };
}

/**
 * A command that performs an action and reports it in a sentence; with `--json` prints the response, if there is one.
 */
export function acting<T>(
  row: Words & {
    readonly ask: (session: Session, given: Given) => Promise<T>;
    readonly said: (answer: T, given: Given) => string;
    /** A remark for the user on the error stream, where it does not disturb scripts. */
    readonly noted?: (answer: T) => string;
  },
): Command {
  const { ask, said, noted, ...words } = row;
  return {
    ...words,
    run: async (session, given) => {
      const { out } = session;
      const answer = await ask(session, given);
      if (!out.isJson) out.line(said(answer, given));
      else if (answer !== undefined) out.json(answer);
      if (noted !== undefined) out.note(noted(answer));
      return undefined;
    },
  };
}
