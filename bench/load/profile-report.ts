/** What is made of the profiles that a server has left: a table of each thread. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { renderTable, round } from '../report.js';
import {
  type CpuProfile,
  type NameOf,
  type Origin,
  originTimes,
  roleOf,
  type SelfTime,
  type Span,
  selfTimes,
} from './profile.js';

/** Functions in a table. */
const SHOWN = 25;
/** Functions that are stored. */
const STORED = 10;

/** What is stored of one thread. */
export interface ThreadProfile {
  readonly role: string;
  readonly busyMs: number;
  /** Milliseconds in code of each origin. */
  readonly byOrigin: Readonly<Record<Origin, number>>;
  /** Those in which most time passed, without what they called. */
  readonly top: readonly SelfTime[];
}

/**
 * Of every thread that left a profile in the folder.
 * @param spans the measured turns; none: the whole life of the server
 */
export function profilesOf(folder: string, spans: readonly Span[]): readonly ThreadProfile[] {
  const nameOf = namesBySource();
  return readdirSync(folder)
    .filter((name) => name.endsWith('.cpuprofile'))
    .map((name) => {
      const profile = JSON.parse(readFileSync(path.join(folder, name), 'utf8')) as CpuProfile;
      const times = selfTimes(profile, nameOf, spans);
      const busyMs = times.reduce((sum, { ms }) => sum + ms, 0);
      const role = roleOf(profile);
      const byOrigin = originTimes(profile, nameOf, spans);
      return { role, busyMs, byOrigin, top: times.slice(0, SHOWN) };
    });
}

/** Of what is printed the most: less is stored. */
export function storedProfile(profile: ThreadProfile): ThreadProfile {
  return { ...profile, top: profile.top.slice(0, STORED) };
}

export function profileText(folder: string, profiles: readonly ThreadProfile[]): string {
  const tables = profiles.map(({ role, busyMs, top }) => {
    const table = renderTable(
      ['self ms', '%', 'function'],
      top.map(({ name, ms }) => [round(ms), round((100 * ms) / busyMs), name]),
    );
    return `${role}, busy ${round(busyMs)} ms\n\n${table}`;
  });
  return [`profiles in ${folder}`, ...tables].join('\n\n');
}

/** Where the functions of a bundle came from, by its source maps. */
function namesBySource(): NameOf {
  const maps = new Map<string, SourceMap | undefined>();
  const mapOf = (file: string) => {
    if (!maps.has(file)) {
      const text = existsSync(`${file}.map`) ? readFileSync(`${file}.map`, 'utf8') : undefined;
      maps.set(file, text === undefined ? undefined : new SourceMap(JSON.parse(text)));
    }
    return maps.get(file);
  };
  return ({ functionName, url, lineNumber, columnNumber }) => {
    const name = functionName === '' ? '(anonymous)' : functionName;
    if (url === '') return { name, origin: name.startsWith('(') ? 'engine' : 'node' };
    if (!url.startsWith('file:')) return { name: `${name} ${url}`, origin: 'node' };
    const file = fileURLToPath(url);
    const entry = mapOf(file)?.findEntry(lineNumber, columnNumber);
    const [source, line] =
      entry !== undefined && 'originalSource' in entry
        ? [entry.originalSource, entry.originalLine]
        : [file, lineNumber];
    return { name: `${name} ${shortened(source)}:${line + 1}`, origin: originOf(source) };
  };
}

const PACKAGES = 'node_modules/';

function originOf(source: string): Origin {
  return source.includes(PACKAGES) ? 'package' : 'own';
}

/** Within the checkout, or within its package. */
function shortened(source: string): string {
  const at = source.lastIndexOf(PACKAGES);
  return at < 0 ? source.replace(/^(\.\.\/)+/, '') : source.slice(at + PACKAGES.length);
}
