/** The command line: its commands by group, the global options, and the exit codes. `--help` has the other options. */

import type { Argument, Command } from '../../cli/command.js';
import { COMMANDS, GLOBAL_OPTIONS, GROUPS } from '../../cli/commands.js';
import { EXIT, EXIT_MEANINGS } from '../../cli/exit.js';
import { code, table } from './markdown.js';
import type { Regions } from './regions.js';

export function cliRegions(): Regions {
  return {
    'cli-commands': groups().map(groupText).join('\n\n'),
    'cli-options': table(
      ['option', 'meaning'],
      GLOBAL_OPTIONS.map(({ flags, about }) => [code(flags), about]),
    ),
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
  const rows = commands.map(({ name, args = [], summary }) => [
    code([name, ...args.map(argumentText)].join(' ')),
    summary,
  ]);
  return `${head}\n\n${table(['command', 'what it does'], rows)}`;
}

function argumentText({ name, isOptional, isMany }: Argument): string {
  const word = isMany ? `${name}...` : name;
  return isOptional ? `[${word}]` : `<${word}>`;
}
