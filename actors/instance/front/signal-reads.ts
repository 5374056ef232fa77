/** The signals of an instance, as JSON text. Reads only. */

import type { JsonValue } from '../../../src/base/json.js';
import { filtersOf } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { orderBy } from '../../../src/db/reads/order.js';
import { columnsBut, type StoredRow, selected } from '../../../src/db/table.js';
import { SIGNALS } from '../output-tables.js';

const SIGNAL_COLUMNS = columnsBut(SIGNALS, 'traceparent');
type SignalRow = StoredRow<typeof SIGNALS, (typeof SIGNAL_COLUMNS)[number]>;

/** `StoredSignal` records, oldest first. */
export const signalList = list({
  columns: selected(SIGNAL_COLUMNS),
  from: 'signals',
  of: filtersOf(SIGNALS, ['instance_id']),
  by: {
    ...filtersOf(SIGNALS, ['signal_type']),
    status: {
      column: 'signals.status',
      type: 'text',
      holds: (status, wanted) => `coalesce(${status}, 'applied') = ${wanted}`,
    },
  },
  order: orderBy(SIGNALS, ['seq']),
  toText: ({ seq: _, payload, status, ...row }: SignalRow) =>
    JSON.stringify({
      ...row,
      payload: JSON.parse(payload ?? 'null') as JsonValue,
      status: status ?? 'applied',
    }),
  cheaper: 'ask for a smaller offset and limit',
});
