/** Which runs the statistics of a version count: since when, and of which versions. In the address. */

import { Checkbox, Select } from '../../components/field.tsx';
import type { Filters } from '../../lib/address.ts';
import styles from './sequences.module.css';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

const SPANS = [
  { value: '15m', label: 'Last 15 minutes', spanMs: 15 * MINUTE_MS },
  { value: '1h', label: 'Last hour', spanMs: HOUR_MS },
  { value: '6h', label: 'Last 6 hours', spanMs: 6 * HOUR_MS },
  { value: '24h', label: 'Last 24 hours', spanMs: 24 * HOUR_MS },
  { value: '7d', label: 'Last 7 days', spanMs: 7 * 24 * HOUR_MS },
] as const;

type SpanName = (typeof SPANS)[number]['value'];
const DEFAULT = SPANS[3];

export interface CountedRuns {
  readonly span: SpanName;
  readonly spanMs: number;
  readonly isOfAll: boolean;
}

export function windowIn(filters: Filters): CountedRuns {
  const { value: span, spanMs } = SPANS.find(({ value }) => value === filters.span) ?? DEFAULT;
  return { span, spanMs, isOfAll: filters.versions === 'all' };
}

export function StepWindow(props: {
  readonly span: CountedRuns;
  readonly onChange: (changes: Readonly<Record<string, string | undefined>>) => void;
}) {
  const { span, onChange } = props;
  return (
    <div className={styles.window}>
      <Select
        label="Runs of"
        value={span.span}
        options={SPANS}
        onChange={(value) => onChange({ span: value === DEFAULT.value ? undefined : value })}
      />
      <Checkbox
        label="All versions"
        value={span.isOfAll}
        onChange={(isOfAll) => onChange({ versions: isOfAll ? 'all' : undefined })}
      />
    </div>
  );
}
