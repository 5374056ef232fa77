/**
 * The Markdown of the repository as tests see it: its pages, their headings and links, and the commands
 * in their fenced blocks, which run as they stand.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

export interface Fence {
  /** The first word behind the marks, such as `sh`; empty when there is none. */
  readonly language: string;
  /** What follows it. */
  readonly marks: readonly string[];
  readonly text: string;
  readonly line: number;
}

export interface Page {
  /** From the root of the repository. */
  readonly file: string;
  readonly text: string;
  readonly fences: readonly Fence[];
  /** The text without fenced blocks, whose lines are left empty. */
  readonly prose: string;
}

/** A fence may be indented, as a part of a list. */
const FENCE = /^( *)```([^\n`]*)\n(.*?)^\1```$/gms;

/** Of the whole script; a busy machine needs some seconds. */
const TIMEOUT_MS = 900_000;

export function page(file: string): Page {
  const text = readFileSync(path.join(ROOT, file), 'utf8');
  const fences: Fence[] = [];
  const prose = text.replace(FENCE, (whole, _indent, info: string, body: string, at: number) => {
    const [language = '', ...marks] = info.trim().split(/\s+/);
    fences.push({ language, marks, text: body, line: text.slice(0, at).split('\n').length });
    return whole.replace(/[^\n]+/g, '');
  });
  return { file, text, fences, prose };
}

/** Every page of the repository. */
export function pages(): Page[] {
  const inDocs = readdirSync(path.join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' });
  const files = [
    'README.md',
    'CONTRIBUTING.md',
    'CHANGELOG.md',
    'bench/README.md',
    ...inDocs.map((name) => path.join('docs', name)),
  ];
  return files.filter((file) => file.endsWith('.md')).map(page);
}

/** The anchors of a page's headings, as GitHub makes them. */
export function anchorsOf({ prose }: Page): ReadonlySet<string> {
  const seen = new Map<string, number>();
  const anchors = new Set<string>();
  for (const [, heading = ''] of prose.matchAll(/^#{1,6} (.+)$/gm)) {
    const plain = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const anchor = plain.replace(/[^\p{L}\p{N}\s_-]/gu, '').replace(/\s/g, '-');
    const count = seen.get(anchor) ?? 0;
    seen.set(anchor, count + 1);
    anchors.add(count === 0 ? anchor : `${anchor}-${count}`);
  }
  return anchors;
}

/** The targets of a page's links; what is in code is none. */
export function linksOf({ prose }: Page): string[] {
  const plain = prose.replace(/`[^`\n]*`/g, '');
  return [...plain.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
}

/** The address that every sample names. */
const ADDRESS = 'http://localhost:8080';

/** Where a sample that is called by the server listens. */
const RECEIVER_PORT = 8090;

export interface Place {
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  /** Of the server, without a path: in the place of the one that samples name. */
  readonly url: string;
  /** In the place of the port that samples listen at. */
  readonly receiverPort?: number;
}

/** What begins the output of each block. */
const SEPARATOR = '\u001e';

/**
 * Runs the marked blocks of the pages as they stand, in one shell, as far as the programs that they name
 * are there, and holds their output against the answers that they show. A block `sh server` is started in
 * a shell of its own, in the folder, and goes on beside the others. What is left of all this in the end is
 * ended, too.
 *
 * @returns what is wrong, as a text with the output; undefined when nothing is.
 */
export async function runPages(
  files: readonly string[],
  place: Place,
): Promise<string | undefined> {
  const { url, receiverPort = RECEIVER_PORT } = place;
  const blocks = files
    .flatMap((file) => page(file).fences)
    .filter(
      ({ language, marks: [mark] }) => language === 'sh' && /^(?:run|server)$/.test(mark ?? ''),
    )
    .filter(({ marks: [, ...programs] }) => programs.every((name) => hasProgram(name)));
  const script = blocks
    .map(({ text, marks: [mark] }) => (mark === 'server' ? inBackground(text) : text))
    .map((text) => `printf '${SEPARATOR}'\n${text}`)
    .join('\n')
    .replaceAll(ADDRESS, url)
    .replaceAll(String(RECEIVER_PORT), String(receiverPort));
  const { code, stdout, stderr } = await runScript(script, place);
  const outputs = stdout.split(SEPARATOR).slice(1);
  const wrong = outputs.flatMap((output, at) => {
    const missing = missingIn(output, answersOf(blocks[at]!.text));
    return missing === undefined ? [] : [`line ${blocks[at]!.line}: no ${missing}\nin ${output}`];
  });
  if (code !== 0) wrong.push(`exit code ${code} after ${outputs.at(-1)}\n${stderr}`);
  return wrong.length === 0 ? undefined : wrong.join('\n\n');
}

/** The server in a terminal of its own; what follows begins when it is ready. */
function inBackground(text: string): string {
  return `(trap : TERM; cd "$HOME"; ${text.trimEnd()}) >> "$HOME/server.log" 2>&1 &
until curl -sf -o "$HOME/ready.json" ${ADDRESS}/health/ready; do sleep 0.1; done
`;
}

/** The answers that a block shows: what stands behind `# →`, on one line or on several. */
export const answersOf = (block: string): string[] =>
  [...block.matchAll(/# → .+(?:\n# → .+)*/g)].map(([lines]) => lines.replace(/^# → /gm, ''));

/** The first of the answers that the output does not have in this order; blanks do not matter. */
export function missingIn(output: string, answers: readonly string[]): string | undefined {
  let rest = withoutBlanks(output);
  return answers.find((answer) => {
    const pieces = withoutBlanks(answer).split('…').map(escaped);
    const found = new RegExp(pieces.join('[^]*?')).exec(rest);
    rest = rest.slice((found?.index ?? 0) + (found?.[0].length ?? 0));
    return found === null;
  });
}

const withoutBlanks = (text: string) => text.replace(/\s+/g, '');

const escaped = (text: string) => text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** In the end every process of the group is told to stop, and the shell waits for its own. */
const PRELUDE = `trap 'trap "" TERM; kill 0; wait' EXIT\n`;

/** Runs commands in the folder with nothing of this process's environment but the search path. */
export async function runScript(
  script: string,
  { folder, env }: Pick<Place, 'folder' | 'env'>,
): Promise<Outcome> {
  const { PATH = '' } = process.env;
  const child = spawn('bash', ['--norc', '-eu', '-o', 'pipefail', '-c', PRELUDE + script], {
    cwd: folder,
    env: { PATH, HOME: folder, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own, which can be told to stop as a whole.
    detached: true,
  });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text;
    });
  }
  const timer = setTimeout(() => process.kill(-child.pid!, 'SIGTERM'), TIMEOUT_MS);
  const [code] = await once(child, 'close');
  clearTimeout(timer);
  return { code: code as number | null, ...output };
}

export function hasProgram(name: string, more: readonly string[] = []): boolean {
  const folders = [...(process.env.PATH ?? '').split(path.delimiter), ...more];
  return folders.some((folder) => existsSync(path.join(folder, name)));
}
