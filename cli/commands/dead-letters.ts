/** Commands for the dead letter queue: instances that failed. */

import type { TaskInstance } from '../../client/src/index.js';
import { type Command, listing } from '../command.js';
import { changing, FAILED_COLUMNS, giveUpOne, retryOne, withNames } from './instances.js';
import { SELECTION_OPTIONS, selectionOf } from './selection.js';

export const DEAD_LETTER_COMMANDS: readonly Command[] = [
  listing<TaskInstance>({
    name: 'dlq list',
    summary: 'List failed instances, newest first.',
    options: SELECTION_OPTIONS,
    columns: FAILED_COLUMNS,
    completed: withNames,
    ask: ({ client }, given, limit) =>
      client.instances.deadLetters({ ...selectionOf(given, Date.now()), limit }),
  }),
  changing({
    name: 'dlq retry',
    summary: 'Run failed instances again from where they failed.',
    action: 'retry',
    done: 'retried',
    states: ['failed'],
    one: retryOne,
  }),
  changing({
    name: 'dlq drain',
    summary: 'Give failed instances up: they are cancelled and leave the queue.',
    action: 'cancel',
    done: 'cancelled',
    states: ['failed'],
    one: giveUpOne,
  }),
];
