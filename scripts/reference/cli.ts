/** The command line: its commands by what they are about, the options of all of them, and its exit codes. */

import type { Argument, Command, Option } from '../../cli/command.js';
import { COMMANDS, GLOBAL_OPTIONS, GROUPS } from '../../cli/commands.js';
import { EXIT, EXIT_MEANINGS } from '../../cli/exit.js';
import { code, table } from './markdown.js';
import type { Regions } from './regions.js';

export function cliRegions(): Regions {
  return {
    'cli-commands': groups().map(groupText).join('\n\n'),
    'cli-options': table(['option', 'meaning'], GLOBAL_OPTIONS.map(optionRow)),
    'cli-exits': table(
      ['code', 'meaning'],
      Object.entries(EXIT).map(([name, exit]) => [
        String(exit),
        EXIT_MEANINGS[name as keyof typeof EXIT],
      ]),
    ),
  };
}

interface Group {
  readonly title: string;
  readonly about: string;
  readonly commands: readonly Command[];
}

/** Commands of one word stand first, under what they are for. */
function groups(): Group[] {
  const alone = COMMANDS.filter(({ name }) => !name.includes(' '));
  const others = Object.entries(GROUPS).map(([title, about]) => ({
    title,
    about,
    commands: COMMANDS.filter(({ name }) => name.startsWith(`${title} `)),
  }));
  return [{ title: 'Server and set-up', about: '', commands: alone }, ...others];
}

function groupText({ title, about, commands }: Group): string {
  const head = about === '' ? `### ${title}` : `### ${title}\n\n${about}`;
  const rows = commands.map((command) => [
    code([command.name, ...(command.args ?? []).map(argumentText)].join(' ')),
    command.summary,
    details(command),
  ]);
  return `${head}\n\n${table(['command', 'what it does', 'arguments and options'], rows)}`;
}

function argumentText({ name, isOptional, isMany }: Argument): string {
  const word = isMany ? `${name}...` : name;
  return isOptional ? `[${word}]` : `<${word}>`;
}

function details({ args = [], options = [] }: Command): string {
  return [
    ...args.map(({ name, about, choices }) => `${code(name)}: ${withChoices(about, choices)}`),
    ...options.map((option) => optionRow(option).join(': ')),
  ].join(' <br> ');
}

function optionRow({ flags, about, choices }: Option): [flags: string, about: string] {
  return [code(flags), withChoices(about, choices)];
}

const withChoices = (about: string, choices: readonly string[] | undefined) =>
  choices === undefined ? about : `${about} ${choices.map(code).join(', ')}.`;
