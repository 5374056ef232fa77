/** An engine as far as the embedded Postgres goes. Argument: the data folder. */

import pg from 'pg';
import { startEmbedded } from '../../src/server/embedded.js';

const [dataDir = ''] = process.argv.slice(2);
const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);
const silent = () => undefined;

try {
  const embedded = await startEmbedded({
    dataDir,
    log: { info: silent, warn: silent, error: silent },
  });
  process.on('SIGINT', async () => {
    const client = new pg.Client(embedded.connectionString);
    await client.connect();
    const { rows } = await client.query('select 6 * 7 as answer');
    await client.end();
    say({ answer: rows[0].answer });
  });
  // Its timers do not hold a process; this stands for the engine.
  setInterval(silent, 1_000);
  say({ port: embedded.port });
} catch (error) {
  say({ refused: (error as Error).message });
}
