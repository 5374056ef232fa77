/**
 * The command line: parses arguments with the table of commands, runs one command, and turns errors into a message, a
 * hint and an exit code.
 */

import {
  CommanderError,
  Command as CommandParser,
  InvalidArgumentError,
  Option as OptionParser,
} from 'commander';
import { EngineError } from '../client/src/index.js';
import { suggest } from '../schema/suggest.js';
import { packageVersion } from '../src/base/package-files.js';
import { type Argument, type Command, Given, type Option } from './command.js';
import { COMMANDS, GLOBAL_OPTIONS, GROUPS, PROGRAM } from './commands.js';
import { proposals } from './completion.js';
import { COMPLETE_COMMAND } from './completion-scripts.js';
import { EXIT, type ExitCode, exitOf, usageError } from './exit.js';
import { Output } from './output.js';
import { profilesFile, readProfiles } from './profiles.js';
import { askerOf } from './prompt.js';
import { Session } from './session.js';

/** Runs the command that the arguments name, and ends the process. */
export async function runCommandLine(args: readonly string[]): Promise<never> {
  process.stdout.on('error', leaveQuietly);
  process.stderr.on('error', leaveQuietly);
  if (args[0] === COMPLETE_COMMAND) process.exit(complete(args.slice(1)));
  const interrupted = new AbortController();
  const interrupt = () => interrupted.abort();
  process.once('SIGINT', interrupt);
  const left = new Promise<ExitCode>((resolve) => {
    interrupted.signal.addEventListener('abort', () => resolve(EXIT.interrupted), { once: true });
  });
  const exitCode = await Promise.race([run(args, interrupted.signal, interrupt), left]);
  if (exitCode === EXIT.interrupted && process.stderr.isTTY) process.stderr.write('\n');
  // Buffered output to a pipe is written before the process ends.
  await Promise.all([process.stdout, process.stderr].map(flushed));
  process.exit(exitCode);
}

/** The reader has closed the pipe, as `head` does. */
function leaveQuietly(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit(EXIT.ok);
  throw error;
}

const flushed = (stream: NodeJS.WriteStream) =>
  new Promise<void>((resolve) => stream.write('', () => resolve()));

/** On an error, nothing is proposed: a message would spoil the line that the user is typing. */
function complete(words: readonly string[]): number {
  const names = () => {
    try {
      return Object.keys(readProfiles(profilesFile(process.env)).profiles);
    } catch {
      // The command itself reports the error when it runs.
      return [];
    }
  };
  const table = { commands: COMMANDS, globals: GLOBAL_OPTIONS, groups: GROUPS };
  process.stdout.write(
    proposals(table, words, names)
      .map((line) => `${line}\n`)
      .join(''),
  );
  return EXIT.ok;
}

// ---------------------------------------------------------------- one command

async function run(
  args: readonly string[],
  signal: AbortSignal,
  onInterrupt: () => void,
): Promise<ExitCode> {
  const { stdin, stdout, stderr, env } = process;
  // Needed for messages about the arguments themselves.
  const isJson = args.includes('--json');
  const out = new Output({ stdout, stderr, env, isJson, now: Date.now });
  let exit: ExitCode = EXIT.ok;
  const parser = parserOf(COMMANDS, async (command, given, options) => {
    if (command.endsItself) process.off('SIGINT', onInterrupt);
    const session = new Session({
      out,
      asker: askerOf({ stdin, stderr, onInterrupt, signal }),
      env,
      signal,
      options: { ...options, timeoutMs: timeoutOf(options.timeout as string | undefined) },
    });
    exit = (await command.run(session, given)) ?? EXIT.ok;
  });
  try {
    await parser.parseAsync(args, { from: 'user' });
    return exit;
  } catch (error) {
    if (signal.aborted) return EXIT.interrupted;
    return told(error, out);
  }
}

/** @throws a defect, with its stack */
function told(error: unknown, out: Output): ExitCode {
  // The parser has printed the message.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  const exit = exitOf(error);
  if (exit === undefined) throw error;
  const { message, hint } = error as Error & { readonly hint?: string };
  out.failure(message, hint ?? (error instanceof EngineError ? hintFor(error) : undefined));
  if (error instanceof EngineError && out.isJson) {
    const { status, code, field, requestId } = error;
    out.json({ error: message, code, status, field, request_id: requestId });
  }
  return exit;
}

/** Errors of a missing or different server. */
const NOT_THERE: ReadonlySet<string> = new Set([
  'CLIENT_UNREACHABLE',
  'CLIENT_NETWORK',
  'CLIENT_NO_ENGINE',
]);

/** What to do about refusals that depend on how the request was made. */
function hintFor({ status, code, message, requestId }: EngineError): string | undefined {
  if (status === 401)
    return 'Set ENGINE_API_KEY, use --key-file FILE, or save the key in a profile.';
  if (status === 400 && message.includes('x-tenant-id')) {
    return 'Use --tenant NAME, set ENGINE_TENANT, or save it in a profile.';
  }
  if (status === 403) return `The key lacks the right; ${PROGRAM} doctor shows its rights.`;
  if (NOT_THERE.has(code)) {
    return `Check the address (--url, ENGINE_URL or a profile); ${PROGRAM} dev starts a server.`;
  }
  return status >= 500 && requestId !== undefined
    ? `Find request ${requestId} in the server log.`
    : undefined;
}

const DURATION = /^(\d{1,9}(?:\.\d+)?)(ms|s|m|h)?$/;
const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;

/** @throws CommandError */
function timeoutOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const [, count, unit = 's'] = DURATION.exec(text) ?? [];
  const ms = Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS];
  if (ms >= 1 && ms <= 2 ** 31 - 1) return Math.round(ms);
  throw usageError(`--timeout must be a duration, such as 30s, 5m or 500ms, not ${text}`);
}

// ---------------------------------------------------------------- the parser

type Run = (command: Command, given: Given, options: Record<string, unknown>) => Promise<void>;

/** The parser for the table of commands; errors are thrown instead of ending the process. */
export function parserOf(commands: readonly Command[], onRun: Run): CommandParser {
  const root = new CommandParser(PROGRAM)
    .description('A durable workflow server and its command line. Manual: docs/cli.md.')
    .version(packageVersion(), '--version', 'Print the version.')
    .helpOption('--help', 'Print this help.')
    .helpCommand('help [command]', 'Print the help of a command.')
    .configureHelp({ showGlobalOptions: true });
  for (const option of GLOBAL_OPTIONS) root.addOption(parserOfOption(option));
  for (const command of commands) {
    const words = command.name.split(' ');
    const parent = words.length === 1 ? root : groupOf(root, words[0] ?? '');
    const parser = parent
      .command(words.at(-1) ?? '')
      .description(command.summary)
      .helpOption('--help', 'Print this help.');
    for (const argument of command.args ?? []) addArgument(parser, argument);
    for (const option of command.options ?? []) parser.addOption(parserOfOption(option));
    parser.action(async (...all: unknown[]) => {
      const args = all.slice(0, -2) as Given['args'];
      await onRun(command, new Given(args, parser.opts()), root.opts());
    });
  }
  for (const parser of [root, ...root.commands, ...root.commands.flatMap((one) => one.commands)]) {
    // Its own suggestions go to words that are not alike, such as tree for create.
    parser
      .exitOverride()
      .configureHelp({ showGlobalOptions: true })
      .showSuggestionAfterError(false);
    parser.configureOutput({
      outputError: (text, write) => write(`${text.trimEnd()}${remedyFor(text, parser, root)}\n`),
    });
  }
  return root;
}

/** What to do about an unknown word: the end of the message. */
function remedyFor(text: string, parser: CommandParser, root: CommandParser): string {
  if (KEY_OPTION.test(text)) return `\n${KEY_HINT}`;
  const [, kind, dashes = '', word = ''] = UNKNOWN.exec(text) ?? [];
  if (kind === undefined) return '';
  const flags = [...parser.options, ...root.options].map(({ long }) => long?.slice(2) ?? '');
  const known = kind === 'option' ? flags : parser.commands.map((one) => one.name());
  const meant = suggest(word, known);
  if (meant !== undefined) return `; did you mean ${dashes}${meant}?`;
  const path = parser === root ? PROGRAM : `${PROGRAM} ${pathOf(parser)}`;
  return `\n${path} --help lists the ${kind}s.`;
}

const UNKNOWN = /unknown (command|option) '(-*)([^'=]+)/;

const pathOf = (parser: CommandParser): string =>
  parser.parent?.parent == null ? parser.name() : `${pathOf(parser.parent)} ${parser.name()}`;

/** The user was about to pass a key where everybody on the machine can read it. */
const KEY_OPTION = /unknown option '--(?:api-?)?key\b/;
const KEY_HINT =
  'Keys are not accepted as options, since other users could see them: set ENGINE_API_KEY, use --key-file FILE, or save it in a profile.';

function groupOf(root: CommandParser, name: string): CommandParser {
  const found = root.commands.find((one) => one.name() === name);
  if (found !== undefined) return found;
  return root
    .command(name)
    .description(GROUPS[name] ?? '')
    .helpOption('--help', 'Print this help.')
    .helpCommand(false);
}

function addArgument(
  parser: CommandParser,
  { name, about, choices, isOptional, isMany }: Argument,
): void {
  const word = isMany ? `${name}...` : name;
  const argument = parser.createArgument(isOptional ? `[${word}]` : `<${word}>`, about);
  if (choices !== undefined) argument.choices(choices);
  else
    argument.argParser((text, before) =>
      isMany ? [...manyOf(before), someText(text)] : someText(text),
    );
  parser.addArgument(argument);
}

/** An empty value, as from an unset shell variable, would change the meaning of the request. */
function someText(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('It must not be empty.');
  return text;
}

const manyOf = (before: unknown) => (before as readonly string[] | undefined) ?? [];

function parserOfOption({ flags, about, choices, isMany }: Option): OptionParser {
  const words = choices === undefined ? about : `${about} ${listed(choices, isMany)}`;
  const option = new OptionParser(flags, words);
  if (isMany) {
    return option.argParser((text: string, before: readonly string[] | undefined) => [
      ...(before ?? []),
      ...(choices === undefined
        ? [text]
        : text.split(',').map((word) => checkedWord(word, choices))),
    ]);
  }
  return choices === undefined ? option : option.argParser((text) => checkedWord(text, choices));
}

const listed = (choices: readonly string[], isMany: true | undefined) =>
  `${isMany ? 'Any of' : 'One of'} ${choices.join(', ')}.`;

function checkedWord(text: string, choices: readonly string[]): string {
  const word = text.trim();
  if (choices.includes(word)) return word;
  throw new InvalidArgumentError(`Allowed values: ${choices.join(', ')}.`);
}
