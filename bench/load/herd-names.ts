/** The herds of part `timers`, by the names of its rows: the page shows them in this order. */

export const HERD_NAMES = ['created', 'restarted', 'large'] as const;
export type HerdName = (typeof HERD_NAMES)[number];
