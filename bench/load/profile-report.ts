/** What is made of the profiles that a server has left: a table and a flame graph of each thread. */

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { renderTable, round } from '../report.js';
import { flameGraph, flameTree } from './flame-graph.js';
import {
  type CpuProfile,
  type NameOf,
  type Origin,
  roleOf,
  type Span,
  selfTimes,
} from './profile.js';

const SHOWN = 25;

/** @param spans the measured turns; none: the whole life of the server */
export function reportProfiles(folder: string, spans: readonly Span[]): string {
  const nameOf = namesBySource();
  const tables = readdirSync(folder)
    .filter((name) => name.endsWith('.cpuprofile'))
    .map((name) => {
      const profile = JSON.parse(readFileSync(path.join(folder, name), 'utf8')) as CpuProfile;
      const times = selfTimes(profile, nameOf, spans);
      const total = times.reduce((sum, { ms }) => sum + ms, 0);
      const title = `${roleOf(profile)}, busy ${round(total)} ms`;
      const svg = `${path.basename(name, '.cpuprofile')}.${roleOf(profile)}.svg`;
      const graph = flameGraph(flameTree(profile, nameOf, spans), title);
      writeFileSync(path.join(folder, svg), graph);
      const table = renderTable(
        ['self ms', '%', 'function'],
        times.slice(0, SHOWN).map(({ name, ms }) => [round(ms), round((100 * ms) / total), name]),
      );
      return `${title} (${svg})\n\n${table}`;
    });
  return [`profiles and flame graphs in ${folder}`, ...tables].join('\n\n');
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
