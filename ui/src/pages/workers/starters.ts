/** Commands that start a worker for a queue. Texts are JSON strings, which these languages read, too. */

export const TOOLS = ['TypeScript', 'Python', 'Shell'] as const;
export type Tool = (typeof TOOLS)[number];

export interface Served {
  readonly url: string;
  readonly tenant: string | undefined;
  readonly handler: string;
  readonly queue: string | null;
}

export function starterOf(tool: Tool, served: Served): string {
  return MAKERS[tool](served);
}

const quoted = (text: string) => JSON.stringify(text);
/** In single quotes of a shell. */
const shellText = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

const MAKERS: Readonly<Record<Tool, (served: Served) => string>> = {
  TypeScript: ({
    url,
    tenant = '',
    handler,
    queue,
  }) => `import { Client, Worker } from 'durable-workflow-engine-client';

const client = new Client({
  url: ${quoted(url)},
  apiKey: process.env.ENGINE_API_KEY,
  tenant: ${quoted(tenant)},
});
await new Worker(client, {
  handlers: { ${quoted(handler)}: async (task) => ({ received: task.params }) },${queue === null ? '' : `\n  queues: [${quoted(queue)}],`}
  handleSignals: true,
}).run();
`,
  Python: ({ url, tenant = '', handler, queue }) => `import os
from durable_workflow_engine import Client, Worker

Worker(
    Client(url=${quoted(url)}, api_key=os.environ["ENGINE_API_KEY"], tenant=${quoted(tenant)}),
    handlers={${quoted(handler)}: lambda params: {"received": params}},${queue === null ? '' : `\n    queues=[${quoted(queue)}],`}
).run()
`,
  Shell: ({ url, tenant = '', handler, queue }) => {
    const body = {
      worker_id: 'by-hand',
      handler_name: handler,
      ...(queue !== null && { queue_name: queue }),
      wait_ms: 20_000,
    };
    const path = queue === null ? 'poll' : 'poll/queue';
    return `# Claims a task; report its result to /workers/tasks/ID/complete.
curl -s ${shellText(`${url}/api/v1/workers/tasks/${path}`)} \\
  -H "x-api-key: $ENGINE_API_KEY" -H ${shellText(`x-tenant-id: ${tenant}`)} \\
  -H 'content-type: application/json' \\
  -d ${shellText(JSON.stringify(body))}
`;
  },
};
