/** Completion as the shells do it: each is started with the script, and asked what it proposes. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { PROGRAM } from '../../cli/commands.js';
import { completionScript, type Shell } from '../../cli/completion-scripts.js';
import { CLI, inTerminal, noTerminal } from '../helpers/cli.js';
import { hasProgram } from '../helpers/docs.js';

const home = mkdtempSync(path.join(tmpdir(), 'cli-completion-'));
after(() => rmSync(home, { recursive: true }));
mkdirSync(path.join(home, 'bin'));
symlinkSync(CLI, path.join(home, 'bin', PROGRAM));
mkdirSync(path.join(home, 'durable-workflow-engine'));
writeFileSync(
  path.join(home, 'durable-workflow-engine/profiles.json'),
  JSON.stringify({ profiles: { production: { url: 'http://x' } } }),
  { mode: 0o600 },
);
writeFileSync(path.join(home, 'order.json'), '{}');

const env = {
  PATH: `${path.join(home, 'bin')}:${process.env.PATH}`,
  HOME: home,
  XDG_CONFIG_HOME: home,
  TERM: 'xterm',
};

function shell(name: string, args: readonly string[]): string {
  const { stdout, stderr, status } = spawnSync(name, args, { cwd: home, env, encoding: 'utf8' });
  assert.equal(status, 0, stdout + stderr);
  assert.equal(stderr, '');
  return stdout;
}

function script(name: Shell): string {
  const place = path.join(home, `completion.${name}`);
  writeFileSync(place, `${completionScript(name, PROGRAM)}\n`);
  return place;
}

/** What bash would propose for these words, without any other package. */
function inBash(...words: string[]): string[] {
  const quoted = [PROGRAM, ...words].map((word) => `'${word}'`).join(' ');
  const function_ = `_${PROGRAM.replaceAll('-', '_')}`;
  const ask = `source '${script('bash')}'
    COMP_WORDS=(${quoted}); COMP_CWORD=${words.length}
    compopt() { :; }
    ${function_} '${PROGRAM}' '${words.at(-1)}'; printf '%s\\n' "\${COMPREPLY[@]}"`;
  return shell('bash', ['--norc', '-c', ask]).trim().split('\n');
}

test('bash proposes commands, words and files', (t) => {
  if (!hasProgram('bash')) return t.skip('no bash');
  assert.deepEqual(inBash('instances', 'ca'), ['cancel']);
  assert.deepEqual(inBash('instances', 'list', '--state', 'comp'), ['completed']);
  assert.deepEqual(inBash('--profile', 'pro'), ['production']);
  assert.deepEqual(inBash('sequences', 'apply', 'ord'), ['order.json']);
});

test('what stands on the line is never run by completing it', (t) => {
  if (!hasProgram('bash')) return t.skip('no bash');
  inBash('instances', '$(touch ran)', '`touch ran`', '');
  assert.equal(shell('bash', ['-c', 'test ! -e ran && echo none']), 'none\n');
});

test('bash completes the line of a terminal', async (t) => {
  if (noTerminal !== undefined) return t.skip('no terminal');
  const { shown } = await inTerminal([], {
    env: { ...env, PS1: 'READY> ', BASH_SILENCE_DEPRECATION_WARNING: '1' },
    cwd: home,
    program: ['bash', '--norc', '--noprofile', '-i'],
    steps: [
      ['READY> ', `source '${script('bash')}'; echo SOURCED\r`],
      ['[\r\n]SOURCED[\\s\\S]*READY> ', `${PROGRAM} instances ca\t`],
      ['cancel $', '\u0003'],
      ['READY> ', 'exit\r'],
    ],
  });
  assert.match(shown, /instances cancel /);
});

test('zsh completes the line of a terminal', async (t) => {
  if (noTerminal !== undefined || !hasProgram('zsh')) return t.skip('no terminal or no zsh');
  const { shown } = await inTerminal([], {
    env: { ...env, PS1: 'READY> ' },
    cwd: home,
    columns: 120,
    program: ['zsh', '-f', '-i'],
    steps: [
      [
        'READY> ',
        `autoload -Uz compinit; compinit -D -u; source '${script('zsh')}'; echo SOURCED\r`,
      ],
      ['[\r\n]SOURCED[\\s\\S]*READY> ', `${PROGRAM} instances ca\t`],
      ['cancel', `\u0015${PROGRAM} instances list --state comp\t`],
      ['completed', `\u0015${PROGRAM} sequences apply ord\t`],
      ['er\\.json', '\u0015exit\r'],
    ],
  });
  assert.match(shown, /er\.json/, shown);
});

test('fish proposes commands with their meaning, words and files', (t) => {
  if (!hasProgram('fish')) return t.skip('no fish');
  const ask = (line: string) =>
    shell('fish', ['--no-config', '-c', `source '${script('fish')}'; complete -C '${line}'`]);
  assert.match(ask(`${PROGRAM} instances ca`), /^cancel\tCancel instances/m);
  assert.match(ask(`${PROGRAM} instances list --state comp`), /^completed/m);
  assert.match(ask(`${PROGRAM} profiles use pr`), /^production/m);
  assert.match(ask(`${PROGRAM} sequences apply ord`), /^order\.json/m);
});
