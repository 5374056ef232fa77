/** Rows of the operations about the server itself. */

import { Type } from '@sinclair/typebox';
import { type RouteRow, refusals } from './route-row.js';
import { AssetParams, Health, Info, NotReady, OpenApiDocument } from './system.js';

export const SYSTEM_ROWS = {
  'health.live': {
    method: 'GET',
    path: '/health/live',
    summary: 'Answers while the process runs.',
    owner: 'probe',
    replies: { 200: Health },
    isPublic: true,
    isAtRoot: true,
  },
  'health.ready': {
    method: 'GET',
    path: '/health/ready',
    summary: 'Answers 200 while this engine owns the database and can reach it.',
    owner: 'probe',
    replies: { 200: Health, 503: NotReady },
    isPublic: true,
    isAtRoot: true,
  },

  info: {
    method: 'GET',
    path: '/info',
    summary: 'Versions of the server and of its schemas.',
    owner: 'probe',
    replies: { 200: Info },
    isPublic: true,
    isAtRoot: true,
  },
  metrics: {
    method: 'GET',
    path: '/metrics',
    summary: 'Counters, histograms and gauges in the text format of Prometheus.',
    owner: 'front',
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    replies: { 200: Type.String() },
    isTenantless: true,
    isAlwaysServed: true,
    isAtRoot: true,
  },
  'docs.openapi': {
    method: 'GET',
    path: '/api-docs/openapi.json',
    summary: 'This document.',
    owner: 'probe',
    replies: { 200: OpenApiDocument },
    isPublic: true,
    isDocument: true,
    isAtRoot: true,
  },
  'docs.ui': {
    method: 'GET',
    path: '/swagger-ui',
    summary: 'A page to read this document and to try the operations.',
    owner: 'probe',
    contentType: 'text/html; charset=utf-8',
    replies: { 200: Type.String() },
    isPublic: true,
    isAtRoot: true,
  },
  'docs.asset': {
    method: 'GET',
    path: '/swagger-ui/{file}',
    summary: 'Scripts and styles of that page.',
    owner: 'probe',
    params: AssetParams,
    contentType: '*/*',
    replies: { 200: null, ...refusals(404) },
    isPublic: true,
    isAtRoot: true,
  },
} as const satisfies Record<string, RouteRow>;
