/** The machine and the commit that a result belongs to, and the build of another commit. */

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { arch, availableParallelism, cpus, platform, release, tmpdir, totalmem } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export interface Machine {
  /** For file names: the processor and its cores, such as `amd-epyc-2-cores`. */
  readonly name: string;
  readonly processor: string;
  readonly cores: number;
  readonly memoryGb: number;
  readonly system: string;
  readonly node: string;
}

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const LOCK = 'package-lock.json';

export function describeMachine(): Machine {
  const processor = cpus()[0]?.model.trim() || 'unknown processor';
  const cores = availableParallelism();
  const words =
    processor
      .toLowerCase()
      .replaceAll(/\((?:r|tm)\)/g, '')
      .match(/[a-z0-9]+/g) ?? [];
  return {
    name: `${words.slice(0, 4).join('-')}-${cores}-cores`,
    processor,
    cores,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    system: `${platform()} ${release()} ${arch()}`,
    node: process.version,
  };
}

/** The short hash of this checkout with `+` when files differ from it; null outside of one. */
export function describeCommit(): string | null {
  try {
    const commit = git('rev-parse', '--short', 'HEAD');
    return git('status', '--porcelain', '--untracked-files=no') === '' ? commit : `${commit}+`;
  } catch {
    // No git, no repository, or no commit yet: the results say so.
    return null;
  }
}

/**
 * A built checkout: the folder itself if it is one, else the commit, exported and built once into a folder among the
 * temporary files that the next run uses again.
 * @returns also how results name it
 * @throws Error when it is neither, or its build fails
 */
export function builtCheckout(place: string) {
  if (existsSync(path.join(place, LOCK)))
    return { name: place, folder: build(path.resolve(place)) };
  const commit = git('rev-parse', '--verify', `${place}^{commit}`);
  const name = commit.slice(0, 8);
  const folder = path.join(tmpdir(), `engine-bench-${name}`);
  if (!existsSync(folder)) exportCommit(commit, folder);
  return { name, folder: build(folder) };
}

function exportCommit(commit: string, folder: string): void {
  const partial = `${folder}.${process.pid}`;
  rmSync(partial, { recursive: true, force: true });
  mkdirSync(partial);
  execFileSync('sh', ['-c', 'git archive "$1" | tar -x -C "$2"', 'sh', commit, partial], {
    cwd: ROOT,
  });
  const lock = (root: string) => readFileSync(path.join(root, LOCK), 'utf8');
  // With the same packages nothing has to be installed.
  if (lock(partial) === lock(ROOT)) {
    symlinkSync(path.join(ROOT, 'node_modules'), path.join(partial, 'node_modules'));
  }
  renameSync(partial, folder);
}

/** Does nothing when the build is current. */
function build(folder: string): string {
  execFileSync(process.execPath, ['scripts/build.mjs'], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return folder;
}

function git(...args: string[]): string {
  return execFileSync('git', args, {
    cwd: ROOT,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();
}
