/** Horizontal bars in groups: each bar a stack of parts, or one part with marks for what its value is the middle of. Pure. */

import { colourAt, fixed, label, line, picture, short } from './svg.js';

export interface Bar {
  readonly label: string;
  /** In the order of the legend; a part of a chart without a legend has the colour of its bar. */
  readonly parts: readonly number[];
  /** Single measurements, as short strokes. */
  readonly marks?: readonly number[];
  /** Behind the bar, instead of its sum. */
  readonly text?: string;
}

export interface BarGroup {
  readonly title: string;
  readonly bars: readonly Bar[];
}

interface Look {
  /** Names of the parts; none: bars are told apart by colour. */
  readonly legend: readonly string[];
  /** Whether each group has its own scale, because what is measured differs. */
  readonly isScaledByGroup: boolean;
}

const WIDTH = 800;
const LEFT = 130;
/** For the text behind the longest bar. */
const RIGHT = 120;
const HEAD = 34;
const LEGEND_ROW = 22;
const GROUP_HEAD = 22;
const BAR = 16;
const GAP = 10;
const LETTER = 6.2;

export function renderBars(title: string, groups: readonly BarGroup[], look: Look): string {
  const { legend, isScaledByGroup } = look;
  const overall = Math.max(0, ...groups.map(greatest));
  const parts: string[] = [];
  let legendAt = 8;
  for (const [at, name] of legend.entries()) {
    parts.push(
      `<rect x="${fixed(legendAt)}" y="${HEAD}" width="10" height="10" class="fill${colourAt(at)}"/>`,
      label(legendAt + 14, HEAD + 9, name),
    );
    legendAt += 30 + name.length * LETTER;
  }
  let y = HEAD + (legend.length > 0 ? LEGEND_ROW : 0);
  for (const group of groups) {
    parts.push(label(8, y + 14, group.title, { cls: 'head' }));
    y += GROUP_HEAD;
    const most = isScaledByGroup ? greatest(group) : overall;
    const scale = (WIDTH - LEFT - RIGHT) / Math.max(most, Number.MIN_VALUE);
    for (const [row, bar] of group.bars.entries()) {
      parts.push(...renderBar(bar, y, scale, legend.length > 0 ? undefined : row));
      y += BAR + 2;
    }
    y += GAP;
  }
  return picture(WIDTH, y, title, parts);
}

/** @param colour of all parts; undefined: that of the legend */
function renderBar(bar: Bar, y: number, scale: number, colour: number | undefined): string[] {
  const drawn = [label(LEFT - 6, y + 12, bar.label, { anchor: 'end' })];
  let x = LEFT;
  for (const [at, value] of bar.parts.entries()) {
    const width = Math.max(0, value) * scale;
    const filled = colourAt(colour ?? at);
    drawn.push(
      `<rect x="${fixed(x)}" y="${y}" width="${fixed(width)}" height="${BAR}" class="fill${filled}"/>`,
    );
    x += width;
  }
  for (const value of bar.marks ?? []) {
    const at = LEFT + value * scale;
    drawn.push(line(at, y + 2, at, y + BAR - 2, 'mark'));
  }
  const end = Math.max(x, ...(bar.marks ?? []).map((value) => LEFT + value * scale));
  drawn.push(label(end + 5, y + 12, bar.text ?? short(sumOf(bar))));
  return drawn;
}

function greatest({ bars }: BarGroup): number {
  return Math.max(0, ...bars.flatMap((bar) => [sumOf(bar), ...(bar.marks ?? [])]));
}

function sumOf({ parts }: Bar): number {
  return parts.reduce((sum, value) => sum + value, 0);
}
