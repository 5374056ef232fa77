/**
 * A CPU profile as a flame graph: an SVG in which a function lies below its caller, as wide as the time that
 * passed in it and in what it called. Pure.
 */

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
const ROW = 16;
const HEAD = 28;
const LETTER = 6.2;
/** Narrower ones are left out: nobody could see them. */
const PX_MIN = 0.4;

const COLOURS: Readonly<Record<Origin, string>> = {
  own: '#f4a259',
  package: '#8cb369',
  node: '#7ea8be',
  engine: '#c9c9c9',
};
const LEGEND = 'orange: own code, green: packages, blue: Node, grey: V8';

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

/** @param title for a reader who sees nothing but the picture */
export function flameGraph(root: Flame, title: string): string {
  const scale = WIDTH / Math.max(root.ms, Number.MIN_VALUE);
  const boxes: string[] = [];
  let depthMax = 0;
  const draw = (flame: Flame, x: number, depth: number) => {
    const width = flame.ms * scale;
    if (width < PX_MIN) return;
    depthMax = Math.max(depthMax, depth);
    boxes.push(box(flame, x, depth, width, flame.ms / root.ms));
    let at = x;
    for (const call of flame.calls) {
      draw(call, at, depth + 1);
      at += call.ms * scale;
    }
  };
  draw(root, 0, 0);
  const height = HEAD + (depthMax + 1) * ROW;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="monospace" font-size="10">`,
    `<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>`,
    `<text x="4" y="17" font-size="13">${escapeXml(title)}</text>`,
    `<text x="${WIDTH - 4}" y="17" text-anchor="end">${LEGEND}</text>`,
    ...boxes,
    '</svg>\n',
  ].join('\n');
}

function box({ name, origin, ms }: Flame, x: number, depth: number, width: number, share: number) {
  const y = HEAD + depth * ROW;
  const letters = Math.floor((width - 4) / LETTER);
  const text =
    letters < 3
      ? ''
      : `<text x="${(x + 2).toFixed(1)}" y="${y + 11}">${escapeXml(name.slice(0, letters))}</text>`;
  const told = `${name}: ${ms.toFixed(1)} ms, ${(100 * share).toFixed(1)} %`;
  return (
    `<g><title>${escapeXml(told)}</title><rect x="${x.toFixed(1)}" y="${y}" width="${width.toFixed(1)}" ` +
    `height="${ROW - 1}" fill="${COLOURS[origin]}" stroke="#ffffff" stroke-width="0.5"/>${text}</g>`
  );
}

function msOf(flames: readonly Flame[]): number {
  return sum(flames.map(({ ms }) => ms));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
