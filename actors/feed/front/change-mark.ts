/** The mark of the change feed under earlier owners of the database. */

import type { UnixMs } from '../../../src/base/time.js';
import { withClient } from '../../../src/db/pool.js';

/**
 * Read by the owner before anything is stamped, when its predecessor cannot raise the mark any more. See
 * `actors/feed/changes.ts`. 0 when the feed was never read.
 */
export function readChangeMark(connectionString: string): Promise<UnixMs> {
  return withClient({ connectionString, applicationName: 'engine start' }, async (client) => {
    const { rows } = await client.query<{ readonly stamps_from: string }>(
      'select stamps_from from change_mark where id = 1',
    );
    return rows[0] === undefined ? 0 : Date.parse(rows[0].stamps_from);
  });
}
