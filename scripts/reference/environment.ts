/** The command line and the environment variables, in the words of `--help`. */

import { FLAGS_HELP, VARIABLES } from '../../src/server/config-help.js';
import { code, table } from './markdown.js';
import type { Regions } from './regions.js';
import { said } from './rows.js';

const VARIABLE = /\b(?:ENGINE_\w+|DATABASE_\w+)(?:=\w+)?\b/g;

export function environmentRegions(): Regions {
  const rows = VARIABLES.map(({ name, fileName, meaning, takes, byDefault }) => {
    // Only values are formatted as code, not words.
    const value = byDefault === 'none' || byDefault.includes(' ') ? byDefault : code(byDefault);
    const names = fileName === undefined ? code(name) : `${code(name)}, ${code(fileName)}`;
    return [names, value, takes, said(meaning, name).replace(VARIABLE, code)];
  });
  return {
    flags: `\`\`\`\n${FLAGS_HELP}\n\`\`\``,
    variables: table(['variable', 'default', 'takes', 'meaning'], rows),
  };
}
