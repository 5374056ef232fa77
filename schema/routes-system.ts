/** Rows of the operations about the server itself. */

import { type RouteRow, refusals } from './route-row.js';
import { Health, Info } from './system.js';

export const SYSTEM_ROWS = {
  'health.live': {
    method: 'GET',
    path: '/health/live',
    summary: 'Answers while the process runs.',
    owner: 'front',
    replies: { 200: Health },
    isPublic: true,
    isAtRoot: true,
  },
  'health.ready': {
    method: 'GET',
    path: '/health/ready',
    summary: 'Answers 200 while this engine owns the database and can reach it.',
    owner: 'front',
    replies: { 200: Health, ...refusals(503) },
    isPublic: true,
    isAtRoot: true,
  },

  info: {
    method: 'GET',
    path: '/info',
    summary: 'Versions of the server and of its schemas.',
    owner: 'front',
    replies: { 200: Info },
    isPublic: true,
    isAtRoot: true,
  },
} as const satisfies Record<string, RouteRow>;
