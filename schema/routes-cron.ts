/** Rows of the operations on cron schedules. */

import * as cron from './cron.js';
import { byId, listOf, type RouteRow, readById, refusals } from './route-row.js';

export const CRON_ROWS = {
  'cron.create': {
    method: 'POST',
    path: '/cron',
    summary: 'Create a schedule that creates instances.',
    owner: 'any-shard',
    body: cron.CreateSchedule,
    replies: { 201: cron.ScheduleCreated, ...refusals(400, 404, 413) },
  },
  'cron.list': {
    method: 'GET',
    path: '/cron',
    summary: 'List schedules, oldest first.',
    owner: 'front',
    query: cron.ScheduleListQuery,
    replies: { 200: listOf(cron.CronSchedule), ...refusals(400) },
  },
  'cron.get': {
    method: 'GET',
    path: '/cron/{id}',
    summary: 'Get a schedule.',
    ...readById,
    replies: { 200: cron.CronSchedule, ...refusals(400, 404) },
  },
  'cron.update': {
    method: 'PUT',
    path: '/cron/{id}',
    summary: 'Change a schedule.',
    ...byId,
    body: cron.UpdateSchedule,
    replies: { 200: cron.CronSchedule, ...refusals(400, 404, 413) },
  },
  'cron.delete': {
    method: 'DELETE',
    path: '/cron/{id}',
    summary: 'Delete a schedule; the instances that it created go on.',
    ...byId,
    replies: { 204: null, ...refusals(400, 404) },
  },
  'cron.nextFires': {
    method: 'GET',
    path: '/cron/{id}/next-fires',
    summary: 'List the next instants at which a schedule fires.',
    ...readById,
    query: cron.NextFiresQuery,
    replies: { 200: cron.NextFires, ...refusals(400, 404) },
  },
} as const satisfies Record<string, RouteRow>;
