/**
 * The OpenAPI document, and a page to read it and try operations (docs/authorization.md), which loads nothing from
 * other hosts. Its addresses are relative, so that it works at the root, under the prefix and behind a proxy that
 * adds another one.
 */

import { readFileSync } from 'node:fs';
import { openApiDocument } from '../../../schema/openapi.js';
import { packageFile } from '../../base/package-files.js';
import type { FrontOperations } from '../../http/operation.js';
import type { HttpReply } from '../../http/server.js';
import { COMMON_HEADERS, FRESH, policyOf, unknownFile } from './dashboard.js';

/** Served files of Swagger UI, which the build copies (`scripts/lib/bundle.mjs`), with their types. */
const PACKAGE_FILES: Readonly<Record<string, string>> = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'swagger-ui-bundle.js.LICENSE.txt': 'text/plain; charset=utf-8',
  'favicon-32x32.png': 'image/png',
};

const PAGE_HEADERS = [
  ...COMMON_HEADERS,
  FRESH,
  policyOf("img-src 'self' data:", "'none'"),
] as const;
/** Their URLs contain the version. */
const ASSET_HEADERS = [...COMMON_HEADERS, ['cache-control', 'public, max-age=86400']] as const;

/** @param isProtected the document requires key and tenant; the page does not */
export function createDocs(version: string, isProtected: boolean) {
  const document = once(() => ({
    status: 200,
    body: Buffer.from(JSON.stringify(openApiDocument(version))),
  }));
  const page: HttpReply = {
    status: 200,
    body: renderPage(version, isProtected),
    contentType: 'text/html; charset=utf-8',
    headers: PAGE_HEADERS,
  };
  const assets: ReadonlyMap<string, () => HttpReply> = new Map([
    ['page.js', () => asset(PAGE_SCRIPT, 'text/javascript; charset=utf-8')],
    ['page.css', () => asset(PAGE_STYLE, 'text/css; charset=utf-8')],
    ...Object.entries(PACKAGE_FILES).map(
      ([file, type]) => [file, once(() => asset(readFile(file), type))] as const,
    ),
  ]);
  return {
    'docs.openapi': document,
    'docs.ui': () => page,
    'docs.asset': ({ file = '' }) => {
      const found = assets.get(file);
      if (found === undefined) throw unknownFile(file);
      return found();
    },
  } satisfies Partial<FrontOperations>;
}

function asset(body: string | Buffer, contentType: string): HttpReply {
  return { status: 200, body, contentType, headers: ASSET_HEADERS };
}

/** Once per file, from a fixed list: no part of a request gets into the path. */
function readFile(name: string): Buffer {
  return readFileSync(packageFile(`dist/swagger-ui/${name}`));
}

function once(make: () => HttpReply): () => HttpReply {
  let made: HttpReply | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** The URL of the document, relative to the page, which has no trailing slash. */
const DOCUMENT = 'api-docs/openapi.json';
const ASSETS = 'swagger-ui';

/** @param version in the URLs of assets, so that no release uses those of another */
function renderPage(version: string, isProtected: boolean): string {
  const asset = (file: string) => `${ASSETS}/${file}?v=${encodeURIComponent(version)}`;
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>API of the durable workflow engine</title>
<link rel="icon" type="image/png" sizes="32x32" href="${asset('favicon-32x32.png')}">
<link rel="stylesheet" href="${asset('swagger-ui.css')}">
<link rel="stylesheet" href="${asset('page.css')}">
</head>
<body>
${isProtected ? FORM : ''}<div id="swagger-ui"></div>
<script src="${asset('swagger-ui-bundle.js')}"></script>
<script src="${asset('page.js')}"></script>
</body>
</html>
`;
}

const FORM = `<form id="unlock" class="swagger-ui">
<h2>This document is protected</h2>
<label>Key <input id="key" type="password" autocomplete="off"></label>
<label>Tenant <input id="tenant" autocomplete="off"></label>
<button class="btn">Show</button>
<p id="refusal" role="alert"></p>
</form>
`;

/**
 * Shows the document, at once or with key and tenant, which stay in memory and authorise the operations, too. Groups
 * are closed at first: with more than some 130 open operations the bundle shows only three. `validatorUrl` null: no
 * request to another server.
 */
const PAGE_SCRIPT = `'use strict';
const form = document.getElementById('unlock');
const refusal = document.getElementById('refusal');
const url = new URL('${DOCUMENT}', document.baseURI).href;

function show(headers) {
  const ui = SwaggerUIBundle({
    url,
    dom_id: '#swagger-ui',
    deepLinking: true,
    docExpansion: 'none',
    persistAuthorization: false,
    validatorUrl: null,
    requestInterceptor: (request) => {
      if (request.loadSpec) Object.assign(request.headers, headers);
      return request;
    },
    onComplete: () => {
      if (headers['x-api-key']) ui.preauthorizeApiKey('apiKey', headers['x-api-key']);
      if (headers['x-tenant-id']) ui.preauthorizeApiKey('tenant', headers['x-tenant-id']);
    },
  });
}

form?.addEventListener('submit', async (event) => {
  event.preventDefault();
  const headers = {};
  for (const [id, name] of [['key', 'x-api-key'], ['tenant', 'x-tenant-id']]) {
    const value = document.getElementById(id).value.trim();
    if (value !== '') headers[name] = value;
  }
  try {
    const reply = await fetch(url, { method: 'HEAD', headers });
    if (!reply.ok) throw new Error('refused with status ' + reply.status);
    form.remove();
    show(headers);
  } catch (error) {
    refusal.textContent = error.message;
  }
});

if (form === null) show({});
`;

const PAGE_STYLE = `body { margin: 0; background: #fafafa; }
#unlock { max-width: 30em; margin: 4em auto; }
#unlock label { display: block; margin: 1em 0; }
#unlock input { width: 100%; }
`;
