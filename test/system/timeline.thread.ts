/** A pool in another thread of the process: answers each post with the port of the server that its session is with. */

import { parentPort, workerData } from 'node:worker_threads';
import { createPool } from '../../src/db/pool.js';

const pool = createPool({
  connectionString: workerData as string,
  applicationName: 'timeline thread',
  connectionsMax: 1,
  onError: () => undefined,
});

parentPort?.on('message', () => {
  pool.query('select inet_server_port() as port').then(
    ({ rows }) => parentPort?.postMessage(rows[0].port),
    (error: Error) => parentPort?.postMessage(error.message),
  );
});
