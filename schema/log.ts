/** Wire shapes and routes of the log of a tenant: lines of steps of all its instances (docs/logs.md). */

import * as t from './common.js';
import { get, type RouteRow } from './route-row.js';

const LOG_LIMIT_DEFAULT = 100;
const LOG_LIMIT_MAX = 500;

/** Filters of lines, also of those of one instance. */
export const LINE_FILTERS = {
  block_id: t.optional(t.text()),
  level: t.optional(t.list(t.text()), 'Any of these levels, such as warn,error.'),
  text: t.optional(t.text(), 'Part of the message; case-insensitive.'),
};

export const LogQuery = t.object({
  tenant_id: t.optional(t.text()),
  ...LINE_FILTERS,
  instance_id: t.optional(t.Uuid),
  namespace: t.optional(t.text()),
  sequence_id: t.optional(t.Uuid),
  sequence_name: t.optional(t.text(), 'Includes every version of the sequences with this name.'),
  sequence: t.optional(t.text(), 'Alias of sequence_name.'),
  since: t.optional(t.Timestamp, 'Only lines stored after this time.'),
  until: t.optional(t.Timestamp, 'Only lines stored before this time.'),
  limit: t.Limit(LOG_LIMIT_DEFAULT, LOG_LIMIT_MAX, 1),
  cursor: t.Cursor,
});
export type LogQuery = t.Static<typeof LogQuery>;

export const LogLine = t.named('LogLine', 'A log line of a step.', {
  instance_id: t.Uuid,
  sequence_id: t.Uuid,
  sequence_name: t.text(),
  block_id: t.text(),
  ts: t.noted(t.Timestamp, 'Its time, set by the worker.'),
  level: t.text(),
  message: t.text(),
});
export type LogLine = t.Static<typeof LogLine>;

export const LOG_ROWS = {
  'logs.list': get(
    '/logs',
    'List the log lines of steps of all instances of a tenant, newest first.',
    t.list(LogLine),
    { query: LogQuery },
  ),
} satisfies Record<string, RouteRow>;
