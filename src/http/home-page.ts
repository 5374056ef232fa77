/**
 * The page of the bare address, for whoever opens it in a browser: what this is, and where to go on.
 * It holds all that it needs. Other clients are answered at that address as at any that has no route.
 */

import { createHash } from 'node:crypto';
import type { HttpReply, HttpRequest } from './server.js';

/** Addresses are relative, so that they lead on behind a proxy that adds a prefix. */
const LINKS: readonly (readonly [address: string, name: string, about: string])[] = [
  ['swagger-ui', 'API', 'every operation, to read and to try'],
  ['api-docs/openapi.json', 'OpenAPI document', 'for generators of clients'],
  ['health/ready', 'Readiness', 'whether this server can work now; why not, if not'],
  ['health/live', 'Liveness', 'whether its process runs'],
  ['info', 'Versions', 'of the server and of its schemas'],
  ['metrics', 'Metrics', 'for Prometheus; asks for a key'],
];

const STYLE = `body { font: 1rem/1.5 system-ui, sans-serif; max-width: 40em; margin: 3em auto; padding: 0 1em; }
dt { margin-top: .6em; }
dd { margin: 0; color: #555; }
code { background: #f0f0f0; padding: .1em .3em; }`;

/** The page may load nothing; its style is known by its hash. */
const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

export function homePage(version: string): HttpReply {
  const links = LINKS.map(
    ([address, name, about]) => `<dt><a href="${address}">${name}</a></dt>\n<dd>${about}</dd>`,
  );
  return {
    status: 200,
    contentType: 'text/html; charset=utf-8',
    headers: [
      ['vary', 'accept'],
      ['cache-control', 'no-cache'],
      ['x-content-type-options', 'nosniff'],
      ['referrer-policy', 'no-referrer'],
      ['content-security-policy', POLICY],
    ],
    body: `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Durable workflow engine</title>
<style>${STYLE}</style>
</head>
<body>
<h1>Durable workflow engine ${version}</h1>
<p>This server runs. Its API is served under <code>/api/v1</code>; requests send their key in
<code>x-api-key</code> and their tenant in <code>x-tenant-id</code>.</p>
<dl>
${links.join('\n')}
</dl>
<p>The guide and the rules come with the program: <code>docs/tutorial.md</code>, <code>docs/README.md</code>.</p>
</body>
</html>
`,
  };
}

/** Browsers name HTML when a person opens an address; programs ask for anything, or for JSON. */
export function wantsHome(request: HttpRequest): boolean {
  return (
    request.path === '/' &&
    (request.method === 'GET' || request.method === 'HEAD') &&
    /\btext\/html\b/i.test(request.header('accept') ?? '')
  );
}
