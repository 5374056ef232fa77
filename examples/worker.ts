/** A worker: `node dist/examples/worker.js` serves the handler `greet` until it is interrupted. Copy it to start your own. */

import { Client, Worker } from '../client/src/index.js';

const { ENGINE_URL = 'http://127.0.0.1:8080', ENGINE_API_KEY, ENGINE_TENANT } = process.env;
const client = new Client({
  url: ENGINE_URL,
  apiKey: ENGINE_API_KEY,
  tenant: ENGINE_TENANT ?? 'demo',
});

const worker = new Worker(client, {
  handlers: {
    greet: async (task) => ({ greeting: `Hello, ${task.params.name ?? 'world'}!` }),
  },
  handleSignals: true,
});
await worker.run();
