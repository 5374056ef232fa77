/**
 * The Markdown of the repository as tests see it: its pages, their headings and links, and the commands
 * in their fenced blocks, which run as they stand.
 */

import { execFile } from 'node:child_process';
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

export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
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

/** What the answers of commands must hold, in order: what stands behind `# →`. */
export function expectedOf(script: string): string[] {
  return [...script.matchAll(/# → (.+)$/gm)].map(([, words = '']) => words);
}

/** Runs commands in the folder with nothing of this process's environment but the search path. */
export function runScript(
  script: string,
  folder: string,
  env: Readonly<Record<string, string>>,
): Promise<Outcome> {
  const { PATH = '' } = process.env;
  const options = { cwd: folder, env: { PATH, HOME: folder, ...env }, timeout: TIMEOUT_MS };
  const args = ['--norc', '-eu', '-o', 'pipefail', '-c', script];
  return new Promise((resolve) => {
    execFile('bash', args, options, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : 1, stdout, stderr });
    });
  });
}

/** The first of the expected words that the output does not have in this order. */
export function missingIn(stdout: string, expected: readonly string[]): string | undefined {
  let at = 0;
  return expected.find((words) => {
    const found = stdout.indexOf(words, at);
    at = found + words.length;
    return found < 0;
  });
}

export function hasProgram(name: string): boolean {
  const folders = (process.env.PATH ?? '').split(path.delimiter);
  return folders.some((folder) => existsSync(path.join(folder, name)));
}
