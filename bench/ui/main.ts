/**
 * `npm run bench:ui`: how long people wait for the dashboard of a server with a million instances, 50 more of which come
 * in each second. Filling takes minutes; with `--database URL` it is done once, and what is there is kept.
 *
 * Waiting is from the input to the paint that shows the result: what the browser says of its events (Event Timing, the
 * next paint), and what the page is asked for (the answer of the server is on the screen).
 */

import { parseArgs } from 'node:util';
import { createTestDatabase, stopSharedServer } from '../../test/helpers/database.js';
import { connect } from '../load/postgres.js';
import { renderTable } from '../report.js';
import { fill, isFilled } from './fill.js';
import { measure } from './measure.js';

const { values } = parseArgs({
  options: {
    database: { type: 'string' },
    instances: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '10' },
    'fill-only': { type: 'boolean', default: false },
  },
});
const say = (text: string) => process.stdout.write(`${text}\n`);

const own = values.database === undefined ? await createTestDatabase() : undefined;
const databaseUrl = values.database ?? own!.connectionString;
try {
  const db = await connect(databaseUrl);
  const isThere = await isFilled(db);
  await db.end();
  if (!isThere) {
    say(`filling a database with ${values.instances} instances`);
    await fill(databaseUrl, Number(values.instances));
  }
  if (!values['fill-only']) {
    const rows = await measure(databaseUrl, Number(values.rounds));
    say(renderTable(['what', 'times', 'p50 ms', 'p95 ms', 'max ms'], rows));
  }
} finally {
  await own?.drop();
  if (own !== undefined) await stopSharedServer();
}
