/** Signals as they are kept with their instance, and as they are listed. */

import { type Static, Type } from '@sinclair/typebox';
import {
  AnyJson,
  Cursor,
  LIST_LIMIT_DEFAULT,
  LIST_LIMIT_MAX,
  Limit,
  named,
  noted,
  Offset,
  oneOfWords,
  orNull,
  Timestamp,
  Uuid,
} from './common.js';

export const SIGNAL_STATUSES = ['kept', 'taken', 'refused', 'applied'] as const;
const SignalStatus = oneOfWords(
  SIGNAL_STATUSES,
  'kept: waits for a step that waits for it; taken, refused: by taken_by; applied: it took effect when it came.',
);

export const StoredSignal = named('StoredSignal', 'A signal that an instance was sent.', {
  id: Uuid,
  instance_id: Uuid,
  signal_type: Type.String(),
  payload: AnyJson,
  created_at: Timestamp,
  status: SignalStatus,
  taken_at: orNull(Timestamp),
  taken_by: noted(orNull(Type.String()), 'The block whose wait took it.'),
  sent_by: noted(orNull(Type.String()), 'The name of the key that sent it; null: not known.'),
});
export type StoredSignal = Static<typeof StoredSignal>;

export const SignalListQuery = Type.Object({
  signal_type: Type.Optional(Type.String()),
  status: Type.Optional(SignalStatus),
  offset: Offset,
  limit: Limit(LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX),
  cursor: Cursor,
});
export type SignalListQuery = Static<typeof SignalListQuery>;

export const SignalAccepted = named('SignalAccepted', { signal_id: Uuid });
export type SignalAccepted = Static<typeof SignalAccepted>;
