/** The machine and the commit that a result belongs to. */

import { execFileSync } from 'node:child_process';
import { arch, availableParallelism, cpus, platform, release, totalmem } from 'node:os';
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

/**
 * The short hash of the checkout with `+` when files differ from it; null outside of one.
 * @param folder of another checkout than the bench's own
 */
export function describeCommit(
  folder = path.dirname(fileURLToPath(import.meta.url)),
): string | null {
  try {
    const commit = git(folder, 'rev-parse', '--short', 'HEAD');
    const changes = git(folder, 'status', '--porcelain', '--untracked-files=no');
    return changes === '' ? commit : `${commit}+`;
  } catch {
    // No git, no repository, or no commit yet: the results say so.
    return null;
  }
}

function git(cwd: string, ...args: string[]): string {
  return execFileSync('git', args, {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();
}
