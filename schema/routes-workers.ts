/** Rows of the operations of workers, on their queues and on rate limits. */

import * as instance from './instance.js';
import * as rate from './rate.js';
import { byId, listOf, type RouteRow, readById, refusals } from './route-row.js';
import * as worker from './worker.js';

export const WORKER_ROWS = {
  'rateLimits.put': {
    method: 'PUT',
    path: '/rate-limits/{key}',
    summary: 'Set the rate limit of a key.',
    owner: 'by-limit',
    params: rate.RateLimitParams,
    body: rate.PutRateLimit,
    replies: { 200: rate.RateLimit, ...refusals(400) },
  },
  'rateLimits.list': {
    method: 'GET',
    path: '/rate-limits',
    summary: 'List the rate limits of the tenant by key.',
    owner: 'front',
    replies: { 200: listOf(rate.RateLimit) },
  },
  'rateLimits.delete': {
    method: 'DELETE',
    path: '/rate-limits/{key}',
    summary: 'Remove the rate limit of a key, which is unlimited then.',
    owner: 'by-limit',
    params: rate.RateLimitParams,
    replies: { 204: null, ...refusals(400, 404) },
  },
  'workers.poll': {
    method: 'POST',
    path: '/workers/tasks/poll',
    summary: 'Claim tasks of a handler.',
    owner: 'by-body',
    isParked: true,
    body: worker.PollTasks,
    replies: { 200: worker.TaskList, ...refusals(400) },
  },
  'workers.pollQueue': {
    method: 'POST',
    path: '/workers/tasks/poll/queue',
    summary: 'Claim tasks of a handler from a named queue.',
    owner: 'by-body',
    isParked: true,
    body: worker.PollQueue,
    replies: { 200: worker.TaskList, ...refusals(400) },
  },
  'workers.tasks': {
    method: 'GET',
    path: '/workers/tasks',
    summary: 'List tasks, newest first.',
    owner: 'front',
    query: worker.TaskListQuery,
    replies: { 200: worker.TaskList, ...refusals(400) },
  },
  'workers.stats': {
    method: 'GET',
    path: '/workers/tasks/stats',
    summary: 'Count tasks by state and handler.',
    owner: 'front',
    replies: { 200: worker.TaskStats },
  },
  'workers.complete': {
    method: 'POST',
    path: '/workers/tasks/{id}/complete',
    summary: 'Complete a claimed task with its output.',
    ...byId,
    body: worker.CompleteTask,
    replies: { 200: worker.WorkerTask, ...refusals(400, 404, 409, 413) },
  },
  'workers.fail': {
    method: 'POST',
    path: '/workers/tasks/{id}/fail',
    summary: 'Fail a claimed task.',
    ...byId,
    body: worker.FailTask,
    replies: { 200: worker.WorkerTask, ...refusals(400, 404, 409) },
  },
  'workers.heartbeat': {
    method: 'POST',
    path: '/workers/tasks/{id}/heartbeat',
    summary: 'Keep a claim alive and save a checkpoint.',
    ...byId,
    body: worker.HeartbeatTask,
    replies: { 200: worker.HeartbeatAccepted, ...refusals(400, 404, 409, 413) },
  },
  'workers.attempts': {
    method: 'GET',
    path: '/workers/tasks/{id}/attempts',
    summary: 'List the claim history of a task, oldest first.',
    ...readById,
    query: instance.PageQuery,
    replies: { 200: listOf(worker.WorkerAttempt), ...refusals(400, 404) },
  },
  'workers.list': {
    method: 'GET',
    path: '/workers',
    summary: 'List workers by when they were last seen, newest first.',
    owner: 'front',
    query: worker.WorkerListQuery,
    replies: { 200: listOf(worker.WorkerInfo), ...refusals(400) },
  },

  handlers: {
    method: 'GET',
    path: '/handlers',
    summary: 'Names of built-in handlers and of those that workers serve.',
    owner: 'front',
    replies: { 200: worker.HandlerNames },
  },
} as const satisfies Record<string, RouteRow>;
