/**
 * The command line as people use it: the bundle as a process of its own, with pipes or in a pseudo terminal. The
 * terminal is that of Python, which lets a test choose its width and type into it.
 */

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after } from 'node:test';
import { fileURLToPath } from 'node:url';
import { DEFAULT_API_KEY } from './engine.js';

export const CLI = fileURLToPath(new URL('../../server/cli.js', import.meta.url));

export type Ran = { readonly code: number | null; readonly out: string; readonly err: string };

export interface CliOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** What the standard input holds. */
  readonly input?: string;
  readonly cwd?: string;
}

/** Set for every call: an address, a tenant, a key; and no settings of whoever runs the tests. */
export interface CliWorld {
  readonly env: Readonly<Record<string, string>>;
  readonly home: string;
  run(args: readonly string[], options?: CliOptions): Promise<Ran>;
  /** The same, which has to end with 0; resolves with standard output. */
  ok(args: readonly string[], options?: CliOptions): Promise<string>;
  /** What standard output holds with --json. */
  json<T>(args: readonly string[], options?: CliOptions): Promise<T>;
}

/** @param where asked at each call, since a server is there only once tests run */
export function cliWorld(where: () => { readonly url: string; readonly tenant: string }): CliWorld {
  const home = mkdtempSync(path.join(tmpdir(), 'cli-home-'));
  after(() => rmSync(home, { recursive: true }));
  const own = () => {
    const { url, tenant } = where();
    return {
      PATH: process.env.PATH ?? '',
      HOME: home,
      XDG_CONFIG_HOME: home,
      TERM: 'xterm',
      ENGINE_URL: url,
      ENGINE_TENANT: tenant,
      ENGINE_API_KEY: DEFAULT_API_KEY,
    };
  };
  const world: CliWorld = {
    home,
    get env() {
      return own();
    },
    run: async (args, { env = {}, input, cwd = home } = {}) => {
      const child = spawn(process.execPath, [CLI, ...args], { cwd, env: { ...own(), ...env } });
      const texts = { out: '', err: '' };
      // A character may come in two pieces.
      child.stdout.setEncoding('utf8').on('data', (piece) => {
        texts.out += piece;
      });
      child.stderr.setEncoding('utf8').on('data', (piece) => {
        texts.err += piece;
      });
      child.stdin.end(input ?? '');
      const [code] = (await once(child, 'close')) as [number | null];
      return { code, ...texts };
    },
    ok: async (args, options) => {
      const { code, out, err } = await world.run(args, options);
      assert.equal(code, 0, `${args.join(' ')}\n${out}${err}`);
      return out;
    },
    json: async (args, options) => JSON.parse(await world.ok([...args, '--json'], options)),
  };
  return world;
}

/**
 * Runs the program in a terminal of so many columns: types each text once the pattern before it was seen. What
 * the terminal shows goes to standard output, and the exit code is that of the program.
 */
const PTY = `
import fcntl, json, os, pty, re, select, struct, sys, termios
job = json.loads(sys.argv[1])
pid, fd = pty.fork()
if pid == 0:
    os.environ.clear()
    os.environ.update(job['env'])
    os.chdir(job['cwd'])
    os.execvp(job['program'][0], job['program'])
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', 50, job['columns'], 0, 0))
seen = ''
steps = list(job['steps'])
while True:
    if not select.select([fd], [], [], job['silenceMax'])[0]:
        os.kill(pid, 9)
        break
    try:
        data = os.read(fd, 65536)
    except OSError:
        break
    if not data:
        break
    sys.stdout.buffer.write(data)
    sys.stdout.flush()
    seen += data.decode('utf-8', 'replace')
    while steps and re.search(steps[0][0], seen):
        seen = ''
        os.write(fd, steps.pop(0)[1].encode())
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status) & 255)
`;

/** A program that shows nothing for so long hangs: only a defect takes this. */
const SILENCE_S_MAX = 120;

export interface TerminalOptions {
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly columns?: number;
  /** Of a regular expression to wait for, and what is typed then. */
  readonly steps?: readonly (readonly [seen: string, typed: string])[];
  /** In place of the command line. */
  readonly program?: readonly string[];
}

/** Why there is no terminal here; undefined where there is one. */
export const noTerminal: string | undefined =
  process.platform === 'linux' && spawnSync('python3', ['-c', 'import pty']).status === 0
    ? undefined
    : 'no python3 for a terminal';

/** What a terminal shows, with its line ends as `\\n`; colours stay. One that hangs is ended by SIGKILL. */
export async function inTerminal(
  args: readonly string[],
  { env, cwd, columns = 80, steps = [], program = [process.execPath, CLI] }: TerminalOptions,
): Promise<{ readonly code: number | null; readonly shown: string }> {
  const job = {
    env,
    cwd,
    columns,
    steps,
    silenceMax: SILENCE_S_MAX,
    program: [...program, ...args],
  };
  const child = spawn('python3', ['-c', PTY, JSON.stringify(job)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let shown = '';
  child.stdout.on('data', (chunk: Buffer) => {
    shown += chunk.toString('utf8');
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, shown: shown.replaceAll('\r\n', '\n') };
}

/** Colours and movements of the cursor. */
export function withoutCodes(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape codes begin with one
  return text.replace(/\x1b\[[\d;?]*[A-Za-z]/g, '');
}
