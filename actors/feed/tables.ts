/** The table of the change feed's mark. */

import { mutations, set } from '../../src/db/mutation.js';
import { table } from '../../src/db/table.js';

export const CHANGE_MARK = table(
  'change_mark',
  ['id'],
  { id: 'smallint', stamps_from: 'timestamptz' },
  { stays: 'the target raises its own to that of the source' },
);

export const MARK = mutations('changeMark', { set: set(CHANGE_MARK, ['stamps_from']) });
export const FEED_STORE = [MARK];
