/** Runs the handler of a task, with its schemas. Shared by workers that poll and those that are called. */

import { FatalError } from './errors.js';
import type {
  Handler,
  HandlerFunction,
  HandlerWithSchemas,
  Task,
  TaskContext,
} from './handlers.js';
import { conforming, expectSchema, type Schema } from './schemas.js';
import { textOf } from './texts.js';

/** Returned by a handler of a worker endpoint that reports its result later, by the API. */
export const ACCEPTED: object = Object.freeze({});

/** @throws TypeError for a handler without a function, or a schema that cannot validate */
export function handlersOf(given: object): ReadonlyMap<string, Handler> {
  const handlers = new Map<string, Handler>();
  for (const [name, one] of Object.entries<HandlerFunction | HandlerWithSchemas>(
    given as Record<string, HandlerFunction | HandlerWithSchemas>,
  )) {
    const { params, output, run } = typeof one === 'function' ? { run: one } : one;
    if (typeof run !== 'function') throw new TypeError(`the handler ${name} has no run function`);
    if (params !== undefined) expectSchema(params, `params of the handler ${name}`);
    if (output !== undefined) expectSchema(output, `output of the handler ${name}`);
    handlers.set(name, { params, output, run: run as HandlerFunction });
  }
  return handlers;
}

/** @throws whatever the handler throws; a schema mismatch is permanent, since a retry would not change it */
export async function runHandler(
  handler: Handler | undefined,
  task: Task,
  context: TaskContext,
): Promise<object> {
  if (handler === undefined)
    throw new Error(`this worker has no handler named ${task.handler_name}`);
  const { params, output } = handler;
  const given =
    params === undefined
      ? task
      : { ...task, params: await checked(params, task.params, 'the params') };
  const returned = (await handler.run(given as Task, context)) ?? {};
  if (returned === ACCEPTED) return returned;
  const value = output === undefined ? returned : await checked(output, returned, 'the output');
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  throw new FatalError(`the output must be an object, not ${textOf(value)}`);
}

async function checked(schema: Schema<unknown>, value: unknown, what: string): Promise<unknown> {
  try {
    return await conforming(schema, value);
  } catch (cause) {
    throw new FatalError(`${what} are not valid: ${textOf(cause)}`, { cause });
  }
}
