/**
 * The attempts of a run over time: rows are blocks and iterations of loops; every attempt is a bar with the times it
 * was queued, ran, waited and was delayed before a retry. Only visible rows are rendered, so that a hundred thousand
 * attempts stay usable.
 */

import { useVirtualizer } from '@tanstack/react-virtual';
import {
  ChevronDown,
  ChevronLeft,
  ChevronRight,
  ChevronsLeft,
  ChevronsRight,
  Maximize,
  Route,
  ScanSearch,
  Table2,
  ZoomIn,
  ZoomOut,
} from 'lucide-react';
import { useMemo, useRef, useState } from 'react';
import { Button, IconButton, Toggle } from '../components/button.tsx';
import { countOf, formatCount, formatDuration } from '../lib/format.ts';
import { useKnownNow } from '../lib/now.ts';
import { tickText } from '../lib/ticks.ts';
import { STATE_LOOKS } from './block-state.tsx';
import { type CriticalPath, criticalPath } from './critical-path.ts';
import { useOutline } from './flow-graph.tsx';
import { ITERATION_ORDERS, type IterationOrder } from './iteration.ts';
import { LookIcon } from './look-icon.tsx';
import type { Definition, Outline } from './outline.ts';
import type { RunFacts } from './run-states.ts';
import { panned, type Range, ticksOf, zoomed } from './time-axis.ts';
import styles from './timeline.module.css';
import { Bars, type Detail, DetailBox, Took, Typical } from './timeline-bars.tsx';
import { headsAt, rowsAround } from './timeline-heads.ts';
import {
  attemptsOf,
  type PagesRow,
  pagesText,
  type Row,
  type RowChoice,
  rowsOf,
  timelineOf,
} from './timeline-rows.ts';
import { TimelineTable } from './timeline-table.tsx';

export interface TimelineProps {
  readonly definition: Definition;
  /** Includes its attempts. */
  readonly run: RunFacts;
  readonly label: string;
  readonly isLive?: boolean;
  /** The ids from the outermost block on, as in `orders/charge`. */
  readonly selected?: string | null;
  readonly onSelect?: (path: string) => void;
  /** The p50 of all runs of the last day, in ms, by block id. */
  readonly typical?: ReadonlyMap<string, number> | undefined;
  readonly order?: IterationOrder;
  readonly onOrder?: (order: IterationOrder) => void;
  /** There is a further page of attempts. */
  readonly hasMore?: boolean;
  readonly onMore?: () => void;
}

export default function Timeline(props: TimelineProps) {
  return props.isLive ? <Live {...props} /> : <Still {...props} />;
}

function Live(props: TimelineProps) {
  return <Chart {...props} now={useKnownNow()} />;
}

function Still(props: TimelineProps) {
  const [now] = useState(() => Date.now());
  return <Chart {...props} now={now} />;
}

const ROW_HEIGHT = 34;
const TICK_WIDTH = 110;

function Chart(props: TimelineProps & { readonly now: number }) {
  const { definition, run, label, isLive, now } = props;
  const outline = useOutline(definition, run);
  // Open bars grow with the clock without indexing everything again.
  const asked = useRef({ run, now });
  if (asked.current.run !== run) asked.current = { run, now };
  const index = useMemo(() => timelineOf(outline, run, asked.current.now), [outline, run]);
  const [choice, setChoice] = useState<Omit<RowChoice, 'order'>>({
    open: new Map(),
    pages: new Map(),
  });
  const { order = 'number' } = props;
  const [isCritical, setCritical] = useState(false);
  const [isTable, setTable] = useState(false);
  const [range, setRange] = useState<Range | null>(null);
  const rows = useMemo(() => rowsOf(index, { ...choice, order }), [index, choice, order]);
  const critical = useMemo(
    () =>
      isCritical && !isTable ? criticalPath(outline, attemptsOf(index), index.now) : undefined,
    [isCritical, isTable, outline, index],
  );
  const whole = withMargins(index.from, isLive ? Math.max(index.to, now) : index.to);
  const shown = range ?? whole;
  if (rows.length === 0) return <p className="dim">Nothing has run yet.</p>;
  return (
    <div className={styles.timeline}>
      <div className={styles.tools}>
        <Toggle icon={Table2} isOn={isTable} onClick={() => setTable(!isTable)}>
          Table
        </Toggle>
        {!isTable && <Zoom shown={shown} whole={whole} onRange={setRange} />}
        {!isTable && (
          <Toggle icon={Route} isOn={isCritical} onClick={() => setCritical(!isCritical)}>
            Critical path
          </Toggle>
        )}
        {!isTable && props.onOrder && hasLoops(outline) && (
          <Order order={order} onOrder={props.onOrder} />
        )}
        {!isTable && <Legend hasTypical={props.typical !== undefined} />}
      </div>
      {critical && <p className="dim small">{criticalText(critical)}</p>}
      {isTable ? (
        <TimelineTable index={index} label={label} />
      ) : (
        <Plot
          {...props}
          rows={rows}
          critical={critical?.rows}
          shown={shown}
          onRange={setRange}
          onOpen={(key, isOpen) =>
            setChoice((before) => ({ ...before, open: new Map(before.open).set(key, isOpen) }))
          }
          onPage={(key, page) =>
            setChoice((before) => ({ ...before, pages: new Map(before.pages).set(key, page) }))
          }
        />
      )}
      {props.hasMore && props.onMore && (
        <p className={styles.more}>
          <span className="dim small">
            {formatCount(run.attempts?.length ?? 0)} attempts are shown, and there are more.
          </span>
          <Button onClick={props.onMore}>Show more</Button>
        </p>
      )}
    </div>
  );
}

/** Margins, so that the first and last bars are fully visible. */
function withMargins(from: number, to: number): Range {
  const margin = (to - from) / 100;
  return { from: from - margin, to: to + margin };
}

interface PlotProps extends TimelineProps {
  readonly now: number;
  readonly rows: readonly Row[];
  /** Keys of the rows on the critical path; undefined: it is not shown. */
  readonly critical: ReadonlySet<string> | undefined;
  readonly shown: Range;
  readonly onRange: (range: Range | null) => void;
  readonly onOpen: (key: string, isOpen: boolean) => void;
  readonly onPage: (key: string, page: number) => void;
}

function Plot(props: PlotProps) {
  const { rows, critical, shown, label, isLive, now } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const [detail, setDetail] = useState<Detail | null>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: 12,
    getItemKey: (i) => rows[i]!.key,
  });
  const around = useMemo(() => rowsAround(rows.map(({ depth }) => depth)), [rows]);
  const width = scroller.current?.clientWidth ?? 800;
  const { step, ticks } = ticksOf(shown.from, shown.to, Math.max(2, width / 2 / TICK_WIDTH));
  const share = (at: number) => `${(100 * (at - shown.from)) / (shown.to - shown.from)}%`;
  const isNowShown = isLive && now >= shown.from && now <= shown.to;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it
    <section ref={scroller} className={styles.frame} tabIndex={0} aria-label={label}>
      <div className={styles.axis}>
        <span className={styles.corner} />
        <Brush shown={shown} onRange={props.onRange}>
          {ticks.map((at) => (
            <span key={at} className={styles.tick} style={{ left: share(at) }}>
              {tickText(at, step)}
            </span>
          ))}
          {isNowShown && (
            <span className={styles.nowLabel} style={{ left: share(now) }}>
              now
            </span>
          )}
        </Brush>
      </div>
      <Heads
        heads={headsAt(around, Math.floor((virtual.scrollOffset ?? 0) / ROW_HEIGHT))}
        {...props}
      />
      <ul className={styles.rows} style={{ height: virtual.getTotalSize() }}>
        <li className={styles.grid} aria-hidden="true">
          {ticks.map((at) => (
            <span key={at} className={styles.gridLine} style={{ left: share(at) }} />
          ))}
          {isNowShown && <span className={styles.nowLine} style={{ left: share(now) }} />}
        </li>
        {virtual.getVirtualItems().map(({ index, start, key }) => (
          <li
            key={key}
            className={styles.row}
            data-off={critical?.has(String(key)) === false || undefined}
            style={{ height: ROW_HEIGHT, transform: `translateY(${start}px)` }}
          >
            <RowShape {...props} row={rows[index]!} onDetail={setDetail} />
          </li>
        ))}
      </ul>
      {detail !== null && <DetailBox detail={detail} now={now} />}
    </section>
  );
}

/** The rows around the first visible one. The rows themselves are in the list. */
function Heads(props: PlotProps & { readonly heads: readonly number[] }) {
  return (
    <div className={styles.heads} inert>
      {props.heads.map((index) => (
        <div key={props.rows[index]!.key} className={styles.head} style={{ height: ROW_HEIGHT }}>
          <RowShape {...props} row={props.rows[index]!} onDetail={() => undefined} />
        </div>
      ))}
    </div>
  );
}

function RowShape(
  props: PlotProps & { readonly row: Row; readonly onDetail: (detail: Detail | null) => void },
) {
  const { row, onPage } = props;
  if (row.kind === 'pages') return <Pages row={row} onPage={onPage} onRange={props.onRange} />;
  const typicalMs = row.kind === 'block' ? props.typical?.get(row.block.id) : undefined;
  return (
    <>
      <RowName {...props} row={row} />
      <div className={styles.slot}>
        {typicalMs !== undefined && <Typical bars={row.bars} ms={typicalMs} range={props.shown} />}
        <Took bars={row.bars} range={props.shown} now={props.now} />
        <Bars
          bars={row.bars}
          name={row.kind === 'iteration' ? iterationName(row.iteration) : row.block.id}
          range={props.shown}
          now={props.now}
          onDetail={props.onDetail}
        />
      </div>
    </>
  );
}

type ShownRow = Exclude<Row, { kind: 'pages' }>;

function RowName(props: PlotProps & { readonly row: ShownRow }) {
  const { row, selected, onSelect, onOpen } = props;
  const { key, block, depth, isOpen } = row;
  const Chevron = isOpen ? ChevronDown : ChevronRight;
  const name = row.kind === 'iteration' ? iterationName(row.iteration) : block.id;
  const state = row.kind === 'block' ? row.state : undefined;
  const [tone, StateIcon] = state === undefined ? ['idle', null] : STATE_LOOKS[state];
  return (
    <div className={styles.name} style={{ paddingInlineStart: 4 + 14 * Math.min(depth, 6) }}>
      {isOpen === undefined ? (
        <span className={styles.noToggle} />
      ) : (
        <button
          type="button"
          className={styles.toggle}
          aria-expanded={isOpen}
          aria-label={`${isOpen ? 'Close' : 'Open'} ${name}`}
          onClick={() => onOpen(key, !isOpen)}
        >
          <Chevron size={15} aria-hidden />
        </button>
      )}
      <button
        type="button"
        className={styles.block}
        data-tone={tone}
        aria-pressed={selected === block.path}
        title={block.path}
        onClick={() => (row.kind === 'iteration' ? onOpen(key, !isOpen) : onSelect?.(block.path))}
      >
        {row.kind === 'block' && (
          <span className={styles.kind}>
            <LookIcon look={block.look} size={14} />
          </span>
        )}
        <span className={styles.word}>{name}</span>
        {StateIcon !== null && (
          <>
            <StateIcon className={styles.stateIcon ?? ''} size={13} aria-hidden />
            <span className="hidden-text">{state}</span>
          </>
        )}
      </button>
    </div>
  );
}

function iterationName(iteration: number): string {
  return `iteration ${formatCount(iteration + 1)}`;
}

function Pages(props: {
  readonly row: PagesRow;
  readonly onPage: (key: string, page: number) => void;
  readonly onRange: (range: Range) => void;
}) {
  const { key, depth, page, pages, range } = props.row;
  const loop = key.slice(0, key.lastIndexOf('['));
  const last = pages - 1;
  const buttons = [
    ['First', ChevronsLeft, -1, 0],
    ['Earlier', ChevronLeft, -1, page - 1],
    ['Later', ChevronRight, 1, page + 1],
    ['Last', ChevronsRight, 1, last],
  ] as const;
  return (
    <div className={styles.pages} style={{ paddingInlineStart: 22 + 14 * Math.min(depth, 6) }}>
      <span>{pagesText(props.row)}</span>
      {buttons.map(([label, icon, by, to]) => (
        <IconButton
          key={label}
          label={`${label} iterations`}
          icon={icon}
          disabled={page === (by < 0 ? 0 : last)}
          onClick={() => props.onPage(loop, to)}
        />
      ))}
      <IconButton
        label="Zoom to these iterations"
        icon={ScanSearch}
        onClick={() => props.onRange(range)}
      />
    </div>
  );
}

// ---------------------------------------------------------------- zoom

function Zoom(props: {
  readonly shown: Range;
  readonly whole: Range;
  readonly onRange: (range: Range | null) => void;
}) {
  const { shown, whole, onRange } = props;
  const middle = (shown.from + shown.to) / 2;
  return (
    <fieldset className={styles.zoom} aria-label="Time shown">
      <IconButton
        label="Earlier"
        icon={ChevronLeft}
        disabled={shown.from <= whole.from}
        onClick={() => onRange(panned(shown, whole, -0.5))}
      />
      <IconButton
        label="Later"
        icon={ChevronRight}
        disabled={shown.to >= whole.to}
        onClick={() => onRange(panned(shown, whole, 0.5))}
      />
      <IconButton
        label="Zoom in"
        icon={ZoomIn}
        onClick={() => onRange(zoomed(shown, whole, 0.5, middle))}
      />
      <IconButton
        label="Zoom out"
        icon={ZoomOut}
        onClick={() => onRange(zoomed(shown, whole, 2, middle))}
      />
      <IconButton label="Fit to view" icon={Maximize} onClick={() => onRange(null)} />
    </fieldset>
  );
}

/** Shorter drags are clicks. */
const DRAG_PX_MIN = 6;

/** Dragging over the axis selects the time range. */
function Brush(props: {
  readonly shown: Range;
  readonly onRange: (range: Range) => void;
  readonly children: React.ReactNode;
}) {
  const { shown, onRange, children } = props;
  const [drag, setDrag] = useState<{ from: number; to: number } | null>(null);
  return (
    <div
      className={styles.ticks}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        const at = placeIn(event);
        setDrag({ from: at, to: at });
      }}
      onPointerMove={(event) => drag !== null && setDrag({ ...drag, to: placeIn(event) })}
      onPointerUp={({ currentTarget: { clientWidth } }) => {
        setDrag(null);
        if (drag === null || Math.abs(drag.to - drag.from) < DRAG_PX_MIN) return;
        const [left, right] = [Math.min(drag.from, drag.to), Math.max(drag.from, drag.to)];
        const at = (px: number) => shown.from + (px / clientWidth) * (shown.to - shown.from);
        onRange({ from: at(left), to: Math.max(at(right), at(left) + 1) });
      }}
      // The browser has taken over the touch to scroll.
      onPointerCancel={() => setDrag(null)}
    >
      {children}
      {drag !== null && (
        <span
          className={styles.brush}
          style={{ left: Math.min(drag.from, drag.to), width: Math.abs(drag.to - drag.from) }}
        />
      )}
    </div>
  );
}

function placeIn({ currentTarget, clientX }: React.PointerEvent<HTMLElement>): number {
  const { left, width } = currentTarget.getBoundingClientRect();
  return Math.min(width, Math.max(0, clientX - left));
}

const ORDER_LABELS: Readonly<Record<IterationOrder, string>> = {
  number: 'Iterations in order',
  failed: 'Failed iterations first',
  slowest: 'Slowest iterations first',
};

function Order(props: {
  readonly order: IterationOrder;
  readonly onOrder: (order: IterationOrder) => void;
}) {
  return (
    <select
      className={styles.order}
      aria-label="Order of iterations"
      value={props.order}
      onChange={({ target }) => props.onOrder(target.value as IterationOrder)}
    >
      {ITERATION_ORDERS.map((order) => (
        <option key={order} value={order}>
          {ORDER_LABELS[order]}
        </option>
      ))}
    </select>
  );
}

const hasLoops = ({ byPath }: Outline) =>
  [...byPath.values()].some(({ repeats }) => repeats.length > 0);

function criticalText({ attempts, ms, wholeMs }: CriticalPath): string {
  if (attempts.length === 0) return 'No attempt has a known start.';
  const rest = ms < wholeMs ? '; the rest is between them' : '';
  return (
    `${countOf(attempts.length, 'attempt')} one after the other, ${formatDuration(ms)} of ` +
    `${formatDuration(wholeMs)}${rest}.`
  );
}

function Legend({ hasTypical }: { readonly hasTypical: boolean }) {
  return (
    <ul className={styles.legend} aria-label="Legend">
      {(['queued', 'running', 'waiting', 'backoff'] as const).map((kind) => (
        <li key={kind}>
          <span className={styles.sample} data-kind={kind} data-tone="info" />
          {kind === 'backoff' ? 'retry delay' : kind}
        </li>
      ))}
      {hasTypical && (
        <li>
          <span className={styles.sample} data-kind="typical" />
          p50 of the last day
        </li>
      )}
    </ul>
  );
}
