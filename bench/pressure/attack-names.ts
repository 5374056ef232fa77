/** The names of the attacks of part pressure, which the command line knows without loading them. Pure. */

export const ATTACK_NAMES = [
  'http',
  'streams',
  'polls',
  'lists',
  'bodies',
  'large',
  'batches',
  'definitions',
  'webhooks',
  'timers',
  'flood',
  'stalled',
  'slow',
] as const;

export type AttackName = (typeof ATTACK_NAMES)[number];
