/** Stored and listed signals of an instance. */

import { type Static, Type } from '@sinclair/typebox';
import { AnyJson, named, noted, oneOfWords, orNull, pageOf, Timestamp, Uuid } from './common.js';

const SIGNAL_STATUSES = ['kept', 'taken', 'refused', 'applied'] as const;
const SignalStatus = oneOfWords(
  SIGNAL_STATUSES,
  'kept: no step has waited for it yet; taken, refused: by ' +
    'taken_by; applied: it took effect immediately.',
);

export const StoredSignal = named('StoredSignal', 'A signal sent to an instance.', {
  id: Uuid,
  instance_id: Uuid,
  signal_type: Type.String(),
  payload: AnyJson,
  created_at: Timestamp,
  status: SignalStatus,
  taken_at: orNull(Timestamp),
  taken_by: noted(orNull(Type.String()), 'Block that consumed it.'),
  sent_by: noted(orNull(Type.String()), "Name of the sender's key; null: unknown."),
});
export type StoredSignal = Static<typeof StoredSignal>;

export const SignalListQuery = Type.Object({
  signal_type: Type.Optional(Type.String()),
  status: Type.Optional(SignalStatus),
  ...pageOf(),
});
export type SignalListQuery = Static<typeof SignalListQuery>;

export const SignalAccepted = named('SignalAccepted', { signal_id: Uuid });
export type SignalAccepted = Static<typeof SignalAccepted>;
