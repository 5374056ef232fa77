/**
 * A CPU profile as a flame graph: an SVG in which a function lies below its caller, as wide as the time that
 * passed in it and in what it called. Pure.
 */

import { escapeXml } from '../chart/svg.js';
import { type CpuProfile, type NameOf, nodeTimes, type Origin, type Span } from './profile.js';

export interface Flame {
  readonly name: string;
  readonly origin: Origin;
  /** In it and in what it called. */
  readonly ms: number;
  /** The widest first. */
  readonly calls: readonly Flame[];
}

const WIDTH = 1_200;
const ROW = 18;
const HEAD = 46;
const LETTER = 6.7;
/** Of all of the thread's time: what is less is left out, since nobody could read it. */
const SHARE_MIN = 0.003;

/** By origin: told from each other in print and by those who do not see red and green apart. */
const LEGEND: readonly (readonly [Origin, string])[] = [
  ['own', 'own code'],
  ['package', 'packages'],
  ['node', 'Node'],
  ['engine', 'V8: collection of garbage, compilation, system calls'],
];

const STYLE = `
text { font: 11px ui-monospace, monospace; fill: #1f2328 }
.back { fill: #ffffff } .head { font-size: 14px; font-weight: bold }
rect { stroke: #ffffff; stroke-width: 0.6 }
.own { fill: #f6b26b } .package { fill: #93c47d } .node { fill: #8ab4d8 } .engine { fill: #cccccc }
@media (prefers-color-scheme: dark) {
  .back { fill: #0d1117 } rect { stroke: #0d1117 } .over { fill: #e6edf3 }
}`;

/** What is not the thread's own work: it waited. */
const IDLE = '(idle)';

/** Calls of the same function by the same callers are one; the root stands for the whole thread. */
export function flameTree(profile: CpuProfile, nameOf: NameOf, spans: readonly Span[]): Flame {
  const own = nodeTimes(profile, spans);
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const merge = (ids: readonly number[]): Flame[] => {
    const groups = new Map<string, number[]>();
    for (const id of ids) {
      const { name } = nameOf(nodes.get(id)!.callFrame);
      groups.set(name, [...(groups.get(name) ?? []), id]);
    }
    const flames = [...groups].map(([name, same]): Flame => {
      const { origin } = nameOf(nodes.get(same[0]!)!.callFrame);
      const calls = merge(same.flatMap((id) => nodes.get(id)!.children ?? []));
      return { name, origin, ms: sum(same.map((id) => own.get(id) ?? 0)) + msOf(calls), calls };
    });
    return flames.filter(({ name, ms }) => ms > 0 && name !== IDLE).sort((a, b) => b.ms - a.ms);
  };
  const calls = merge(profile.nodes[0]?.children ?? []);
  return { name: 'all', origin: 'engine', ms: msOf(calls), calls };
}

/** Without what is too narrow to be seen. */
export function pruned(root: Flame): Flame {
  const least = root.ms * SHARE_MIN;
  const prune = (flame: Flame): Flame => ({
    ...flame,
    calls: flame.calls.filter(({ ms }) => ms >= least).map(prune),
  });
  return prune(root);
}

/**
 * As lines that JSON and a diff can show, a caller before what it called: depth, origin, milliseconds, name.
 */
export function flameLines(root: Flame): readonly string[] {
  const lines: string[] = [];
  const add = ({ name, origin, ms, calls }: Flame, depth: number) => {
    lines.push(`${depth} ${origin} ${Number(ms.toPrecision(4))} ${name}`);
    for (const call of calls) add(call, depth + 1);
  };
  add(root, 0);
  return lines;
}

/** What `flameLines` made. */
export function flameOf(lines: readonly string[]): Flame {
  const open: { name: string; origin: Origin; ms: number; calls: Flame[] }[] = [];
  for (const line of lines) {
    const [, depth, origin, ms, name] = /^(\d+) (\S+) (\S+) (.*)$/s.exec(line)!;
    const flame = { name: name!, origin: origin as Origin, ms: Number(ms), calls: [] as Flame[] };
    open.length = Number(depth);
    open.at(-1)?.calls.push(flame);
    open.push(flame);
  }
  return open[0]!;
}

/** @param title for a reader who sees nothing but the picture */
export function flameGraph(root: Flame, title: string): string {
  const scale = WIDTH / Math.max(root.ms, Number.MIN_VALUE);
  const boxes: string[] = [];
  let depthMax = 0;
  const draw = (flame: Flame, x: number, depth: number) => {
    depthMax = Math.max(depthMax, depth);
    boxes.push(box(flame, x, depth, flame.ms * scale, flame.ms / root.ms));
    let at = x;
    for (const call of flame.calls) {
      draw(call, at, depth + 1);
      at += call.ms * scale;
    }
  };
  draw(root, 0, 0);
  const height = HEAD + (depthMax + 1) * ROW;
  const legend = LEGEND.map(
    ([origin, text], at) =>
      `<rect class="${origin}" x="${4 + at * 110}" y="26" width="12" height="12"/>` +
      `<text class="over" x="${20 + at * 110}" y="36">${text}</text>`,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}">`,
    `<title>${escapeXml(title)}</title>`,
    `<style>${STYLE}\n</style>`,
    `<rect class="back" width="${WIDTH}" height="${height}"/>`,
    `<text class="over head" x="4" y="17">${escapeXml(title)}</text>`,
    ...legend,
    ...boxes,
    '</svg>\n',
  ].join('\n');
}

function box({ name, origin, ms }: Flame, x: number, depth: number, width: number, share: number) {
  const y = HEAD + depth * ROW;
  const letters = Math.floor((width - 5) / LETTER);
  // The whole name where it fits, else that of the function.
  const shown = name.length <= letters ? name : name.split(' ')[0]!.slice(0, letters);
  const text =
    letters < 3 ? '' : `<text x="${(x + 3).toFixed(1)}" y="${y + 13}">${escapeXml(shown)}</text>`;
  const told = `${name}: ${ms.toFixed(1)} ms, ${(100 * share).toFixed(1)} %`;
  return (
    `<g><title>${escapeXml(told)}</title><rect class="${origin}" x="${x.toFixed(1)}" y="${y}" ` +
    `width="${width.toFixed(1)}" height="${ROW - 1}"/>${text}</g>`
  );
}

function msOf(flames: readonly Flame[]): number {
  return sum(flames.map(({ ms }) => ms));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
