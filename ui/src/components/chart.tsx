/** Line charts over time, by uPlot, in the colours of the theme and as a table for screen readers. */

import { useEffect, useRef, useState } from 'react';
import UPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { lonely } from '../lib/lonely.ts';
import { momentText, tickText, tickTexts } from '../lib/ticks.ts';
import styles from './chart.module.css';

export interface Line {
  readonly name: string;
  /** One value for each instant; null where there is none. */
  readonly values: readonly (number | null)[];
  /** A colour token of the theme, such as `--ok`. */
  readonly color: `--${string}`;
  readonly isDashed?: boolean;
}

export interface ChartProps {
  readonly label: string;
  /** Milliseconds since the epoch, ascending. */
  readonly instants: readonly number[];
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
  readonly height?: number;
  /** Few values: each gets a marker, and lines bridge gaps. */
  readonly isSparse?: boolean;
}

export default function Chart(props: ChartProps) {
  const { label, instants, lines, format, height = 180, isSparse = false } = props;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | undefined>(undefined);
  const theme = useTheme();
  // A plot is rebuilt when its lines change; new values are passed to the existing one.
  const shape = JSON.stringify([
    lines.map(({ values: _, ...line }) => line),
    height,
    theme,
    isSparse,
  ]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: `shape` stands for what the plot is made of
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const style = getComputedStyle(element);
    const colorOf = (name: string) => resolve(element, style.getPropertyValue(name));
    const axis = {
      stroke: colorOf('--text-dim'),
      grid: { stroke: colorOf('--line'), width: 1 },
      ticks: { show: false },
      font: `12px ${style.getPropertyValue('--font')}`,
    };
    const made = new UPlot(
      {
        width: element.clientWidth,
        height,
        cursor: { drag: { x: false, y: false } },
        scales: { y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
        axes: [
          { ...axis, values: timeMarks, space: timeSpace },
          { ...axis, size: 64, values: (_plot, ticks) => ticks.map(format) },
        ],
        series: [
          { label: 'Time', value: (_plot, secs) => momentOf(secs) },
          ...lines.map(({ name, color, isDashed }) => ({
            label: name,
            stroke: colorOf(color),
            width: 2,
            ...(isDashed && { dash: [6, 4] }),
            spanGaps: isSparse,
            points: {
              show: isSparse && !isDashed,
              size: 6,
              filter: ({ data }: UPlot, at: number, show: boolean) =>
                show || isSparse ? null : lonely([...(data[at] ?? [])]),
            },
            value: (_plot: UPlot, value: number | null) => (value === null ? '–' : format(value)),
          })),
        ],
      },
      dataOf(instants, lines),
      element,
    );
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, [shape]);

  useEffect(() => {
    plot.current?.setData(dataOf(instants, lines));
  }, [instants, lines]);

  return (
    <figure aria-label={label}>
      <div ref={place} className={styles.chart} aria-hidden />
      <figcaption className="hidden-text">
        {lines.map(({ name, values }) => `${name}: ${latestOf(values, format)}. `)}
      </figcaption>
    </figure>
  );
}

/** uPlot works in seconds and in one time zone only. */
function timeMarks(_plot: UPlot, ticks: number[], _axis: number, _space: number, stepSecs: number) {
  return tickTexts(
    ticks.map((secs) => secs * 1000),
    stepSecs * 1000,
  );
}

const CHARACTER_PX = 7;
/** Between the labels of two ticks. */
const MARK_GAP_PX = 16;
const MINUTE_MS = 60_000;

/** Minimum distance between ticks: the length of a label depends on the language, the clock and the step. */
function timeSpace(_plot: UPlot, _axis: number, fromSecs: number, toSecs: number, length: number) {
  const spaceOf = (stepMs: number) =>
    tickText(toSecs * 1000, stepMs).length * CHARACTER_PX + MARK_GAP_PX;
  const ofMinutes = spaceOf(MINUTE_MS);
  const stepMs = ((toSecs - fromSecs) * 1000 * ofMinutes) / Math.max(length, 1);
  return stepMs < MINUTE_MS ? spaceOf(MINUTE_MS / 60) : ofMinutes;
}

/** Undefined unless the pointer is over the plot. */
function momentOf(secs: number | null): string {
  return secs === null ? '–' : momentText(secs * 1000);
}

function latestOf(values: Line['values'], format: ChartProps['format']): string {
  const last = values.findLast((value) => value !== null);
  return last == null ? 'no values' : `last ${format(last)}`;
}

function dataOf(instants: readonly number[], lines: readonly Line[]): UPlot.AlignedData {
  return [instants.map((ms) => ms / 1000), ...lines.map(({ values }) => [...values])];
}

/** A canvas does not support `light-dark()`, so the browser resolves it first. */
function resolve(element: HTMLElement, color: string): string {
  const probe = document.createElement('span');
  probe.style.color = color;
  element.append(probe);
  const resolved = getComputedStyle(probe).color;
  probe.remove();
  return resolved;
}

/** Changes when the theme does. */
function useTheme(): string {
  const [theme, setTheme] = useState(readTheme);
  useEffect(() => {
    const update = () => setTheme(readTheme());
    const media = matchMedia(DARK);
    media.addEventListener('change', update);
    const observer = new MutationObserver(update);
    observer.observe(document.documentElement, { attributeFilter: ['style'] });
    return () => {
      media.removeEventListener('change', update);
      observer.disconnect();
    };
  }, []);
  return theme;
}

const DARK = '(prefers-color-scheme: dark)';

function readTheme(): string {
  return `${document.documentElement.style.colorScheme} ${matchMedia(DARK).matches}`;
}
