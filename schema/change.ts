/** Wire shapes of the change feed: the audit entries of a tenant in order (docs/changes.md). */

import { type Static, Type } from '@sinclair/typebox';
import { Limit, named } from './common.js';
import { AuditEntry } from './instance.js';

export const CHANGES_LIMIT_MAX = 500;

/** Opaque to clients: base64url of the place of the last entry that was read. */
const Cursor = (absent: string) =>
  Type.String({ maxLength: 512, description: `From an earlier answer; exclusive. ${absent}` });

export const ChangesQuery = Type.Object({
  tenant_id: Type.Optional(Type.String()),
  cursor: Type.Optional(Cursor('Without one the list begins with the oldest.')),
  limit: Limit(100, CHANGES_LIMIT_MAX),
});
export type ChangesQuery = Static<typeof ChangesQuery>;

export const ChangesStreamQuery = Type.Object({
  tenant_id: Type.Optional(Type.String()),
  cursor: Type.Optional(Cursor('Without one the stream begins with the present.')),
});
export type ChangesStreamQuery = Static<typeof ChangesStreamQuery>;

/** Ascending by time and id. */
export const Changes = named('Changes', {
  changes: Type.Array(AuditEntry),
  next_cursor: Type.Optional(Type.String()),
  has_more: Type.Boolean(),
});
export type Changes = Static<typeof Changes>;
