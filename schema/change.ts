/** Wire shapes and routes of the change feed: a tenant's audit entries (docs/changes.md). */

import * as t from './common.js';
import { AuditEntry } from './instance.js';
import { get, ok, type RouteRow, stream } from './route-row.js';

export const CHANGES_LIMIT_MAX = 500;

/** Opaque to clients: base64url of the position of the last entry read. */
const Cursor = (absent: string) =>
  t.text({ maxLength: 512, description: `Cursor of an earlier response; exclusive. ${absent}` });

/** Ascending by time and id. */
export const Changes = t.named('Changes', {
  changes: t.list(AuditEntry),
  next_cursor: t.optional(t.text()),
  has_more: t.boolean(),
});
export type Changes = t.Static<typeof Changes>;

export const CHANGE_ROWS = {
  'changes.list': get('/changes', 'List changes of instances of a tenant, oldest first.', Changes, {
    isTenantInBody: true,
    query: t.strictObject({
      tenant_id: t.optional(t.text()),
      cursor: t.optional(Cursor('Default: the oldest entry.')),
      limit: t.Limit(100, CHANGES_LIMIT_MAX),
    }),
  }),
  'changes.stream': stream.get('/changes/stream', {
    summary: "Stream the changes of the tenant's instances as server-sent events.",
    isTenantInBody: true,
    query: t.strictObject({
      tenant_id: t.optional(t.text()),
      cursor: t.optional(Cursor('Default: now.')),
    }),
    contentType: 'text/event-stream',
    replies: ok(null, 429),
  }),
} as const satisfies Record<string, RouteRow>;
