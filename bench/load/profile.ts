/**
 * The V8 CPU profiles that a server leaves when it ends, one for each thread: whose they are, and where
 * their time went. They are of its whole life, with the start and the warm-up.
 */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { renderTable, round } from '../report.js';

/** What is read of V8's format. */
export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: {
      readonly functionName: string;
      readonly url: string;
      readonly lineNumber: number;
      readonly columnNumber: number;
    };
  }[];
  /** Ids of nodes, and the microseconds up to each. */
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

type CallFrame = CpuProfile['nodes'][number]['callFrame'];

export interface SelfTime {
  readonly name: string;
  readonly ms: number;
}

const SHOWN = 25;
const IDLE = '(idle)';

/** Threads by the entry that only they have loaded. */
const ROLE_BY_ENTRY: readonly (readonly [entry: string, role: string])[] = [
  ['shard.thread', 'shard'],
  ['writer.thread', 'writer'],
  ['offload.thread', 'offload'],
];

/** @returns the largest first, without what the thread waited */
export function selfTimes(
  profile: CpuProfile,
  nameOf: (frame: CallFrame) => string,
): readonly SelfTime[] {
  const names = new Map(profile.nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]));
  const byName = new Map<string, number>();
  profile.samples.forEach((id, at) => {
    const name = names.get(id)!;
    byName.set(name, (byName.get(name) ?? 0) + profile.timeDeltas[at]! / 1_000);
  });
  byName.delete(IDLE);
  return [...byName].map(([name, ms]) => ({ name, ms })).sort((a, b) => b.ms - a.ms);
}

export function roleOf({ nodes }: CpuProfile): string {
  const urls = new Set(nodes.map(({ callFrame }) => path.basename(callFrame.url)));
  const found = ROLE_BY_ENTRY.find(([entry]) => urls.has(`${entry}.js`));
  if (found !== undefined) return found[1];
  return urls.has('main.js') ? 'front' : 'other';
}

/** A table for each thread of which there is a profile in the folder. */
export function describeProfiles(folder: string): string {
  const sources = new Sources();
  return readdirSync(folder)
    .filter((name) => name.endsWith('.cpuprofile'))
    .map((name) => {
      const profile = JSON.parse(readFileSync(path.join(folder, name), 'utf8')) as CpuProfile;
      const times = selfTimes(profile, (frame) => sources.nameOf(frame));
      const total = times.reduce((sum, { ms }) => sum + ms, 0);
      const table = renderTable(
        ['self ms', '%', 'function'],
        times.slice(0, SHOWN).map(({ name, ms }) => [round(ms), round((100 * ms) / total), name]),
      );
      return `${roleOf(profile)}, busy ${round(total)} ms (${name})\n\n${table}`;
    })
    .join('\n\n');
}

/** Where the functions of the bundle came from. */
class Sources {
  readonly #maps = new Map<string, SourceMap | undefined>();

  nameOf({ functionName, url, lineNumber, columnNumber }: CallFrame): string {
    const name = functionName === '' ? '(anonymous)' : functionName;
    if (!url.startsWith('file:')) return url === '' ? name : `${name} ${url}`;
    const file = fileURLToPath(url);
    const entry = this.#mapOf(file)?.findEntry(lineNumber, columnNumber);
    if (entry === undefined || !('originalSource' in entry)) {
      return `${name} ${path.basename(file)}:${lineNumber + 1}`;
    }
    const source = entry.originalSource.replace(/^(\.\.\/)+(.*node_modules\/)?/, '');
    return `${name} ${source}:${entry.originalLine + 1}`;
  }

  #mapOf(file: string): SourceMap | undefined {
    if (!this.#maps.has(file)) {
      const text = existsSync(`${file}.map`) ? readFileSync(`${file}.map`, 'utf8') : undefined;
      this.#maps.set(file, text === undefined ? undefined : new SourceMap(JSON.parse(text)));
    }
    return this.#maps.get(file);
  }
}
