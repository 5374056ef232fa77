/**
 * The page that shows the OpenAPI document, and its script. Its addresses are relative to its own,
 * so that it works at the root, under the prefix and behind a proxy that adds another one.
 */

/** Where the page and its script find the document; the page itself has no trailing slash. */
const DOCUMENT = 'api-docs/openapi.json';
const ASSETS = 'swagger-ui';

/**
 * @param version keeps the assets of one release from being used by the next one
 * @param isProtected whether the document asks for key and tenant, which the page then asks for first
 */
export function renderPage(version: string, isProtected: boolean): string {
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
 * Shows the document, at once or when key and tenant were given. They are kept in memory only, and
 * authorise the operations as well. Groups are closed at first: beyond some 130 open operations the
 * bundle shows three. `validatorUrl` null: nobody else is told of this server.
 */
export const PAGE_SCRIPT = `'use strict';
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

export const PAGE_STYLE = `body { margin: 0; background: #fafafa; }
#unlock { max-width: 30em; margin: 4em auto; }
#unlock label { display: block; margin: 1em 0; }
#unlock input { width: 100%; }
`;
