/**
 * What a row of the table of commands says. Help, the parsing of arguments, the completion of shells and the
 * reference in docs/cli.md are made of these rows; most of them are an operation of the client and the
 * columns of its table.
 */

import type { List } from '../client/src/index.js';
import { type ExitCode, usageError } from './exit.js';
import type { Session } from './session.js';
import type { Column } from './table.js';

/** What a shell can propose beside fixed words. */
export type Completes = 'files' | 'folders' | 'profiles';

export interface Option {
  /** `--state <states>` takes a value, `--yes` takes none. */
  readonly flags: string;
  readonly about: string;
  readonly choices?: readonly string[];
  /** May be repeated; with choices it also takes words between commas. */
  readonly isMany?: true;
  readonly completes?: Completes;
}

export interface Argument {
  readonly name: string;
  readonly about: string;
  readonly choices?: readonly string[];
  readonly isOptional?: true;
  /** The last one: as many as are given. */
  readonly isMany?: true;
  readonly completes?: Completes;
}

export interface Command {
  /** One word or two: `doctor`, `instances list`. */
  readonly name: string;
  readonly summary: string;
  readonly args?: readonly Argument[];
  readonly options?: readonly Option[];
  /** It ends the process by itself, also when Ctrl-C is pressed. */
  readonly endsItself?: true;
  /** Nothing means success. */
  readonly run: (session: Session, given: Given) => Promise<ExitCode | undefined>;
}

/** What was given to a command, checked by its row. */
export class Given {
  readonly args: readonly (string | readonly string[] | undefined)[];
  readonly #options: Readonly<Record<string, unknown>>;

  constructor(args: Given['args'], options: Readonly<Record<string, unknown>>) {
    this.args = args;
    this.#options = options;
  }

  /** The argument at this place, which the row requires. */
  arg(at = 0): string {
    return this.args[at] as string;
  }

  /** All arguments from the last place of the row on. */
  rest(at = 0): readonly string[] {
    return (this.args[at] as readonly string[] | undefined) ?? [];
  }

  /** @param name of the option without its dashes */
  text(name: string): string | undefined {
    return this.#options[memberOf(name)] as string | undefined;
  }

  texts(name: string): readonly string[] {
    return (this.#options[memberOf(name)] as readonly string[] | undefined) ?? [];
  }

  flag(name: string): boolean {
    return this.#options[memberOf(name)] === true;
  }

  /** @throws CommandError when it is no whole number */
  count(name: string): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    if (!/^-?\d{1,15}$/.test(text)) throw usageError(`--${name} takes a whole number, not ${text}`);
    return Number(text);
  }

  /** @throws CommandError when it was not given */
  required(name: string): string {
    const text = this.text(name);
    if (text === undefined) throw usageError(`--${name} is missing`);
    return text;
  }

  /** Pairs `name=value`. @throws CommandError for another form */
  pairs(name: string): Readonly<Record<string, string>> | undefined {
    const pairs = this.texts(name).map((text): [string, string] => {
      const at = text.indexOf('=');
      if (at < 1) throw usageError(`--${name} takes name=value, not ${text}`);
      return [text.slice(0, at), text.slice(at + 1)];
    });
    return pairs.length === 0 ? undefined : Object.fromEntries(pairs);
  }
}

/** As the parser names it: `created-after` is `createdAfter`. */
const memberOf = (name: string) =>
  name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());

// ---------------------------------------------------------------- kinds of commands

type Words = Omit<Command, 'run'>;

/** Items that one page asks for at most, as the server has it. */
const PAGE_MAX = 1_000;
const LIMIT_DEFAULT = 50;

const LIMIT_OPTIONS: readonly Option[] = [
  { flags: '--limit <n>', about: `How many to show at most; ${LIMIT_DEFAULT} unless given.` },
  { flags: '--all', about: 'Show all of them.' },
];

/** A list, as a table or as one JSON array. */
export function listing<T>(
  row: Words & {
    readonly columns: readonly Column<T>[];
    /** @param limit how many a page asks for; @param most how many of all are wanted, where there are no pages */
    readonly ask: (
      session: Session,
      given: Given,
      limit: number,
      most: number,
    ) => List<T> | Promise<readonly T[]>;
    /** What people are shown beside what the server lists. */
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
      // One more tells whether there are more.
      const asked = ask(session, given, Math.min(most + 1, PAGE_MAX), most + 1);
      const found = await firstOf(asked, most + 1);
      const items = found.slice(0, most);
      const hint =
        found.length > most ? `There are more: --limit ${most * 2}, or --all.` : undefined;
      if (out.isJson) out.json(items);
      else out.table(columns, (await completed?.(session, items)) ?? items);
      if (hint !== undefined) out.note(hint);
      return undefined;
    },
  };
}

/** The items of as many pages as it takes. @param most how many at most */
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

/** One thing, as its members below one another or as JSON. */
export function showing<T extends object>(
  row: Words & {
    readonly ask: (session: Session, given: Given) => Promise<T>;
    /** Lines for people, in place of the members. */
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

/** What is done, and said in a sentence; with `--json` the answer, or nothing where there is none. */
export function acting<T>(
  row: Words & {
    readonly ask: (session: Session, given: Given) => Promise<T>;
    readonly said: (answer: T, given: Given) => string;
    /** Beside it, for the person: what a script would have to cut off. */
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
