/** The bars of one row of a timeline, and the box with the details of one of them. */

import { formatDuration, formatInstant } from '../lib/format.ts';
import { STATE_LOOKS } from './block-state.tsx';
import { endOf, type Mark, marksOf, type Range } from './time-axis.ts';
import styles from './timeline.module.css';
import type { Bar } from './timeline-rows.ts';

/** More bars cannot be told apart in one row. */
const BARS_MAX = 150;

export interface Detail {
  readonly name: string;
  readonly mark: Mark;
  /** Position of the bar in the window. */
  readonly left: number;
  readonly bottom: number;
}

export function Bars(props: {
  readonly bars: readonly Bar[];
  readonly name: string;
  readonly range: Range;
  readonly now: number;
  readonly onDetail: (detail: Detail | null) => void;
}) {
  const { bars, name, range, now, onDetail } = props;
  const scale = 100 / (range.to - range.from);
  return marksOf(bars, range, now, BARS_MAX).map((mark) => {
    const { shown } = mark;
    const from = Math.max(range.from, shown.segments[0]!.from);
    const to = Math.min(range.to, endOf(mark.bars.at(-1)!, now));
    const show = ({ currentTarget }: { currentTarget: HTMLElement }) => {
      const { left, bottom } = currentTarget.getBoundingClientRect();
      onDetail({ name, mark, left: Math.max(8, left), bottom });
    };
    return (
      <button
        key={shown.key}
        type="button"
        className={styles.bar}
        data-tone={STATE_LOOKS[shown.state][0]}
        style={{ left: `${(from - range.from) * scale}%`, width: `${(to - from) * scale}%` }}
        aria-label={`${name}, ${barText(mark, now).join(', ')}`}
        onPointerEnter={show}
        onFocus={show}
        onPointerLeave={() => onDetail(null)}
        onBlur={() => onDetail(null)}
        onKeyDown={({ key }) => key === 'Escape' && onDetail(null)}
      >
        {partsOf(mark, from, to, now).map(({ kind, width }, i) => (
          <span
            // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a bar are known by their order
            key={i}
            className={styles.segment}
            data-kind={kind}
            style={{ width: `${width}%` }}
          />
        ))}
      </button>
    );
  });
}

/** The duration of the row, at the end of its bars, or before them where there is no room. */
export function Took(props: {
  readonly bars: readonly Bar[];
  readonly range: Range;
  readonly now: number;
}) {
  const { bars, range, now } = props;
  const first = bars[0];
  if (first === undefined || (bars.length === 1 && first.isEndOnly)) return null;
  const from = first.segments[0]!.from;
  const to = Math.max(...bars.map((bar) => endOf(bar, now)));
  if (to < range.from || from > range.to) return null;
  const { isInside, ...place } = labelPlace(shareOf(from, range), shareOf(to, range));
  return (
    <span className={styles.took} data-inside={isInside} style={place} aria-hidden="true">
      {formatDuration(to - from)}
    </span>
  );
}

/** What runs of the block usually take, from the same start. */
export function Typical(props: {
  readonly bars: readonly Bar[];
  readonly ms: number;
  readonly range: Range;
}) {
  const { bars, ms, range } = props;
  const first = bars[0];
  if (first === undefined || first.isEndOnly) return null;
  const { from } = first.segments[0]!;
  const [left, right] = [shareOf(from, range), shareOf(from + ms, range)];
  if (right < 0 || left > 100) return null;
  const start = Math.max(-1, left);
  return (
    <span
      className={styles.typical}
      style={{ left: `${start}%`, width: `${Math.min(101, right) - start}%` }}
      title={`p50 of the last day: ${formatDuration(ms)}`}
    />
  );
}

const shareOf = (at: number, { from, to }: Range) => (100 * (at - from)) / (to - from);

/** Least room for a label, as a share of the width. */
const LABEL_SHARE = 14;

function labelPlace(left: number, right: number) {
  if (right <= 100 - LABEL_SHARE) return { left: `${right}%` };
  return left >= LABEL_SHARE ? { right: `${100 - left}%` } : { right: 0, isInside: true };
}

/** As shares of the visible part of the bar. */
function partsOf({ bars, shown }: Mark, from: number, to: number, now: number) {
  if (bars.length > 1) return [{ kind: 'span', width: 100 }];
  return shown.segments.flatMap(({ kind, ...segment }, i) => {
    const isLast = i === shown.segments.length - 1;
    const end = isLast ? endOf(shown, now) : segment.to;
    const length = Math.min(to, end) - Math.max(from, segment.from);
    if (length < 0) return [];
    return [{ kind, width: to === from ? 100 : (100 * length) / (to - from) }];
  });
}

const WORDS = { queued: 'queued', running: 'ran', waiting: 'waited', backoff: 'retry delay' };

/** The description of a bar, part by part. */
export function barText({ bars, shown }: Mark, now: number): readonly string[] {
  if (bars.length > 1) return [`${bars.length} attempts`, `worst: ${shown.state}`];
  const parts = shown.segments.map(({ kind, from, to }, i) => {
    const isLast = i === shown.segments.length - 1;
    const took = formatDuration((isLast ? endOf(shown, now) : to) - from);
    return kind === 'span' ? `took ${took}` : `${WORDS[kind]} ${took}`;
  });
  return [
    ...(shown.attempt === undefined ? [] : [`attempt ${shown.attempt + 1}`]),
    shown.note === '' ? shown.state : shown.note,
    ...parts,
    ...(shown.worker === null ? [] : [`worker ${shown.worker}`]),
    ...(shown.error === null ? [] : [shown.error]),
  ];
}

export function DetailBox({ detail, now }: { readonly detail: Detail; readonly now: number }) {
  const { name, mark, left, bottom } = detail;
  const { shown, bars } = mark;
  const [tone, Icon] = STATE_LOOKS[shown.state];
  const end = endOf(bars.at(-1)!, now);
  return (
    <div
      className={styles.detail}
      role="status"
      style={{
        left: `min(${left}px, calc(100vw - 340px))`,
        top: `min(${bottom + 6}px, calc(100vh - 220px))`,
      }}
    >
      <p className={styles.detailHead} data-tone={tone}>
        <Icon size={14} aria-hidden />
        <strong>{name}</strong>
        <span>{barText(mark, now).slice(0, 2).join(' · ')}</span>
      </p>
      <dl>
        <dt>from</dt>
        <dd>{formatInstant(new Date(bars[0]!.segments[0]!.from))}</dd>
        <dt>{shown.isOpen ? 'so far' : 'to'}</dt>
        <dd>{formatInstant(new Date(end))}</dd>
        {bars.length === 1 &&
          shown.segments.map(({ kind, from, to }, i) => (
            <Part
              // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a bar are known by their order
              key={i}
              name={kind === 'span' ? 'took' : WORDS[kind]}
              ms={(i === shown.segments.length - 1 ? endOf(shown, now) : to) - from}
            />
          ))}
        {shown.worker !== null && (
          <>
            <dt>worker</dt>
            <dd>{shown.worker}</dd>
          </>
        )}
        {shown.error !== null && (
          <>
            <dt>error</dt>
            <dd className={styles.error}>{shown.error}</dd>
          </>
        )}
      </dl>
    </div>
  );
}

function Part({ name, ms }: { readonly name: string; readonly ms: number }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{formatDuration(ms)}</dd>
    </>
  );
}
