/**
 * The documentation as a person meets it: its files over HTTP, and the page in a real browser, which
 * must need nothing but this server.
 */

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { type Api, startApi } from '../helpers/api.js';
import { useChromium, watch } from '../helpers/chromium.js';
import { type Client, createClient, type Reply } from '../helpers/client.js';
import { DEFAULT_API_KEY, type Engine, startEngine } from '../helpers/engine.js';

const PREFIXES = ['', '/api/v1'];
const TENANT = 'acme';

const newPage = useChromium();
let api: Api;
let client: Client;

before(async () => {
  api = await startApi();
  client = createClient({ url: api.engine.url, prefix: '' });
});
after(async () => {
  await client.close();
  await api.stop();
});

// ---------------------------------------------------------------- over HTTP

describe('the documentation over HTTP', () => {
  test('Documentation routes at the root and under the prefix', async () => {
    for (const prefix of PREFIXES) {
      const document = await client.get<{ openapi: string }>(`${prefix}/api-docs/openapi.json`);
      assert.equal(document.status, 200);
      assert.equal(document.body.openapi, '3.1.0');
      assert.match(String(document.headers['content-type']), /^application\/json/);
      const page = await client.get(`${prefix}/swagger-ui`);
      assert.equal(page.status, 200);
      assert.equal(page.headers['content-type'], 'text/html; charset=utf-8');
      for (const reply of [document, page]) {
        assert.ok(reply.headers['x-request-id']);
        const kept = reply === page ? 'no-cache' : 'no-store';
        assert.equal(reply.headers['cache-control'], kept);
        assert.equal(reply.headers['x-content-type-options'], 'nosniff');
        assert.equal(reply.headers.deprecation, undefined);
      }
    }
  });

  test('the page may load and ask nothing but this server', async () => {
    const page = await client.get('/swagger-ui');
    const policy = String(page.headers['content-security-policy']);
    for (const rule of ["default-src 'none'", "script-src 'self'", "connect-src 'self'"]) {
      assert.ok(policy.includes(rule), policy);
    }
    assert.doesNotMatch(policy, /unsafe|https?:|\*/);
    // Every address is relative, and there is no inline script.
    assert.doesNotMatch(page.text, /(?:src|href)="(?:\/|[a-z]+:)/);
    assert.doesNotMatch(page.text, /<script>|<style|\son\w+="/);
  });

  test('every file that the page names is served with its type, and may be kept', async () => {
    const page = await client.get('/swagger-ui');
    const files = [...page.text.matchAll(/(?:src|href)="(swagger-ui\/[^"]+)"/g)];
    assert.ok(files.length >= 4, page.text);
    for (const [, file = ''] of files) {
      for (const prefix of PREFIXES) {
        const reply = await client.get(`${prefix}/${file}`);
        assert.equal(reply.status, 200, file);
        assert.match(String(reply.headers['content-type']), typeOf(file), file);
        assert.match(String(reply.headers['cache-control']), /max-age=\d/, file);
        assert.ok(reply.text.length > 0, file);
      }
    }
  });

  test('HEAD answers like GET without a body', async () => {
    for (const path of ['/api-docs/openapi.json', '/swagger-ui', '/swagger-ui/swagger-ui.css']) {
      const head = await client.request('HEAD', path);
      const get = await client.get(path);
      assert.equal(head.status, 200, path);
      assert.equal(head.text, '', path);
      assert.equal(head.headers['content-type'], get.headers['content-type'], path);
    }
  });

  test('other methods are 405', async () => {
    for (const path of ['/api-docs/openapi.json', '/swagger-ui', '/swagger-ui/swagger-ui.css']) {
      const reply = await client.post(path, {});
      assert.equal(reply.status, 405, path);
      assert.equal(reply.headers.allow, 'GET, HEAD', path);
    }
  });

  test('no other file is served, whatever way its name is written', async () => {
    const names = [
      'index.html',
      'package.json',
      'swagger-ui.js',
      'swagger-ui-bundle.js.map',
      'SWAGGER-UI.css',
      'constructor',
      '__proto__',
      'toString',
      '..%2fpackage.json',
      '..%2f..%2f..%2fpackage.json',
      '%2e%2e%2fpackage.json',
      '..%5cpackage.json',
      '..',
      '%2e%2e',
      '.%00',
      '../package.json',
      '%2e%2e/%2e%2e/etc/passwd',
      '/etc/passwd',
      '%2fetc%2fpasswd',
      'x'.repeat(5_000),
    ];
    for (const prefix of PREFIXES) {
      for (const name of names) {
        const reply = await client.get<{ error: string }>(`${prefix}/swagger-ui/${name}`);
        assert.equal(reply.status, 404, name);
        assert.match(reply.body.error, /^not found: /, name);
        assert.equal(reply.headers['x-error-code'], 'ENG_NOT_FOUND', name);
      }
    }
    assert.equal((await client.get('/swagger-ui/%ff')).status, 400);
  });
});

function typeOf(file: string): RegExp {
  if (file.includes('.css')) return /^text\/css/;
  return file.includes('.js') ? /^text\/javascript/ : /^image\/png/;
}

// ---------------------------------------------------------------- protected, and without a database

describe('ENGINE_PROTECT_DOCS', () => {
  let engine: Engine;
  let stranger: Client;
  before(async () => {
    engine = await startEngine({
      databaseUrl: api.database.connectionString,
      env: { ENGINE_PROTECT_DOCS: 'true' },
      apiKey: DEFAULT_API_KEY,
      // It does not own the database, which is why only what needs none is asked of it.
      waitFor: 'listening',
    });
    stranger = createClient({ url: engine.url, prefix: '' });
  });
  after(async () => {
    await stranger.close();
    await engine.stop();
  });

  test('ENGINE_PROTECT_DOCS puts the document behind key and tenant; the page itself is always served', async () => {
    for (const prefix of PREFIXES) {
      const path = `${prefix}/api-docs/openapi.json`;
      const ask = async (apiKey: string | null, tenant: string | null) =>
        (await stranger.with({ apiKey, tenant, prefix: '' }).get(path)).status;
      assert.equal(await ask(null, null), 401);
      assert.equal(await ask(null, TENANT), 401);
      assert.equal(await ask(DEFAULT_API_KEY, null), 400);
      const caller = stranger.with({ apiKey: DEFAULT_API_KEY, tenant: TENANT, prefix: '' });
      const document: Reply<{ openapi: string }> = await caller.get(path);
      assert.equal(document.status, 200);
      assert.equal(document.body.openapi, '3.1.0');
      assert.equal(document.headers['cache-control'], 'no-store');
      assert.equal((await stranger.get(`${prefix}/swagger-ui`)).status, 200);
      assert.equal((await stranger.get(`${prefix}/swagger-ui/swagger-ui.css`)).status, 200);
    }
  });

  test('the page asks for key and tenant, and then shows the document', async (t) => {
    const page = await newPage();
    if (page === undefined) return t.skip('no Chromium; set CHROMIUM_PATH');
    try {
      await page.goto(`${engine.url}/swagger-ui`);
      await page.fill('#key', 'wrong');
      await page.fill('#tenant', TENANT);
      await page.click('#unlock button');
      await page.getByText(/refused with status \d/).waitFor();
      await page.fill('#key', DEFAULT_API_KEY);
      await page.click('#unlock button');
      await openList(page);
      assert.equal(await page.locator('#unlock').count(), 0);
    } finally {
      await page.close();
    }
  });
});

test('the documentation is served while the database cannot be reached', async () => {
  for (const protect of ['false', 'true']) {
    const engine = await startEngine({
      databaseUrl: 'postgres://nobody@127.0.0.1:9/none',
      env: { ENGINE_PROTECT_DOCS: protect },
      apiKey: DEFAULT_API_KEY,
      waitFor: 'listening',
    });
    const caller = createClient({ url: engine.url, apiKey: DEFAULT_API_KEY, tenant: TENANT });
    try {
      assert.equal((await caller.get('/api-docs/openapi.json')).status, 200, protect);
      assert.equal((await caller.get('/swagger-ui')).status, 200, protect);
    } finally {
      await caller.close();
      await engine.stop();
    }
  }
});

// ---------------------------------------------------------------- in a browser

/** Items of a list whose format the page has no field of its own for: it shows a plain one, and says so. */
const PLAIN_FIELD = /^Could not find component: JsonSchema_string_/;

const LIST = '#operations-Instances-instancesList';
/** Groups are closed until somebody opens them. */
async function openList(page: Page): Promise<void> {
  await page.click('#operations-tag-Instances');
  await page.locator(LIST).waitFor();
}

for (const prefix of PREFIXES) {
  test(`a person authorises at ${prefix}/swagger-ui and lists instances`, async (t) => {
    const page = await newPage();
    if (page === undefined) return t.skip('no Chromium; set CHROMIUM_PATH');
    const seen = watch(page);
    try {
      await page.goto(`${api.engine.url}${prefix}/swagger-ui`);
      await openList(page);
      await authorise(page);
      const reply = page.waitForResponse((one) => one.url().includes('/instances?'));
      await execute(page);
      assert.equal((await reply).status(), 200);
      assert.equal(new URL((await reply).url()).pathname, '/api/v1/instances');
      const status = page.locator(`${LIST} .live-responses-table .response-col_status`).last();
      assert.match((await status.textContent()) ?? '', /^200/);
      const problems = seen.problems.filter((problem) => !PLAIN_FIELD.test(problem));
      assert.deepEqual(problems, []);
      assert.deepEqual([...seen.origins], [api.engine.url]);
      assert.ok(seen.paths.has(`${prefix}/api-docs/openapi.json`), [...seen.paths].join());
    } finally {
      await page.close();
    }
  });
}

async function authorise(page: Page): Promise<void> {
  await page.locator('.auth-wrapper button.authorize').click();
  for (const [header, value] of [
    ['x-api-key', api.engine.apiKey ?? ''],
    ['x-tenant-id', TENANT],
  ] as const) {
    const form = page.locator('.auth-container').filter({ hasText: `Name: ${header}` });
    await form.locator('input').fill(value);
    await form.getByRole('button', { name: 'Apply credentials' }).click();
    await form.getByRole('button', { name: 'Remove authorization' }).waitFor();
  }
  await page.getByRole('button', { name: 'Close' }).first().click();
}

async function execute(page: Page): Promise<void> {
  const operation = page.locator(LIST);
  await operation.locator('.opblock-summary-control').click();
  await operation.getByRole('button', { name: 'Try it out' }).click();
  await operation.getByRole('button', { name: 'Execute' }).click();
}
