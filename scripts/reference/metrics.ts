/** The metrics, in the words that `/metrics` has for them. */

import {
  COUNTERS,
  FRONT_COUNTERS,
  FRONT_GAUGES,
  HISTOGRAMS,
  INFO_METRIC,
  NAMED_COUNTERS,
  PROCESS_METRICS,
  ROW_GAUGES,
  THREAD_GAUGES,
} from '../../src/metrics/catalog.js';
import { code, table } from './markdown.js';
import type { Regions } from './regions.js';
import { said } from './rows.js';

type Helps = Readonly<Record<string, string | { readonly help: string; readonly label?: string }>>;

export function metricRegions(): Regions {
  return {
    counters: listed('counts', { ...COUNTERS, ...FRONT_COUNTERS, ...processMetrics('counter') }),
    'named-counters': table(
      ['name', 'label', 'counts'],
      Object.entries(NAMED_COUNTERS).map(([name, { label, help }]) => {
        return [code(name), code(label), said(help, name)];
      }),
    ),
    histograms: listed('measures', HISTOGRAMS),
    gauges: listed('shows', {
      [INFO_METRIC.name]: INFO_METRIC,
      ...THREAD_GAUGES,
      ...FRONT_GAUGES,
      ...processMetrics('gauge'),
    }),
    'row-gauges': listed('shows', ROW_GAUGES),
  };
}

function processMetrics(type: 'counter' | 'gauge'): Helps {
  return Object.fromEntries(Object.entries(PROCESS_METRICS).filter(([, row]) => row.type === type));
}

function listed(head: string, helps: Helps): string {
  const rows = Object.entries(helps).map(([name, row]) => {
    return [code(name), said(typeof row === 'string' ? row : row.help, name)];
  });
  return table(['name', head], rows);
}
