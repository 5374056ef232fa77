/** Lines that steps have logged, and the filters for them. */

import type { StepLogLine } from 'durable-workflow-engine-client';
import type { ReactNode } from 'react';
import { useFilters } from '../lib/address.ts';
import { formatClock, formatInstant } from '../lib/format.ts';
import { Badge, type Tone } from './badge.tsx';
import { FilterField, Select } from './field.tsx';
import styles from './log-lines.module.css';

const TONES: Readonly<Record<string, Tone>> = {
  debug: 'idle',
  info: 'info',
  warn: 'warn',
  error: 'danger',
};

/** Workers may use other levels, which a link can name. */
const LEVELS = [
  { value: '', label: 'All' },
  { value: 'error', label: 'Errors' },
  { value: 'warn,error', label: 'Warnings and errors' },
  { value: 'info,warn,error', label: 'Info and above' },
];

/** How often new lines are read in a tail: not every one comes with a change of its instance. */
export const TAIL_MS = 2_000;

/** What the address asks of the lines. */
export function lineFilters({ text, level }: Readonly<Record<string, string | undefined>>) {
  return { ...(text && { text }), ...(level && { level: level.split(',') }) };
}

export function LineFields() {
  const [{ text = '', level = '' }, change] = useFilters();
  const isKnown = LEVELS.some(({ value }) => value === level);
  return (
    <>
      <FilterField
        label="Text"
        placeholder="Part of the message"
        value={text}
        onChange={(next) => change({ text: next, line: undefined })}
      />
      <Select
        label="Level"
        value={level}
        options={isKnown ? LEVELS : [...LEVELS, { value: level, label: level }]}
        onChange={(next) => change({ level: next, line: undefined })}
      />
    </>
  );
}

/** @param props.placeOf links to where a line is from; undefined if all are from one place */
export function LogLines<Line extends StepLogLine>(props: {
  readonly lines: readonly Line[];
  readonly placeOf?: (line: Line) => ReactNode;
}) {
  const { lines, placeOf } = props;
  return (
    <ol className={styles.lines}>
      {lines.map((line, at) => {
        const { ts, level, message } = line;
        const when = new Date(ts);
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: lines have no ids, and come in their order
          <li key={at}>
            <time dateTime={ts} title={formatInstant(when)} className="dim">
              {formatClock(when, Date.now(), 'ms')}
            </time>
            <Badge tone={TONES[level] ?? 'idle'}>{level}</Badge>
            {placeOf?.(line)}
            <span className={styles.message}>{message}</span>
          </li>
        );
      })}
    </ol>
  );
}
