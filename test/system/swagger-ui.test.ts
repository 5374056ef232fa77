/**
 * The documentation as a person meets it: its files over HTTP, and the page in a real browser, which
 * must need nothing but this server.
 */

import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { beforeWith, useSharedApi } from '../helpers/api.js';
import { useBrowser } from '../helpers/browser.js';
import { type Client, createClient } from '../helpers/client.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';

const PREFIXES = ['', '/api/v1'];
const TENANT = 'acme';

const api = useSharedApi();
const browsers = useBrowser();
let client: Client;
beforeWith(api, async () => {
  client = createClient({ url: api.url, prefix: '' });
});
after(() => client.close());

// ---------------------------------------------------------------- over HTTP

describe('the documentation over HTTP', () => {
  test('The documentation is served at the root and under the prefix', async () => {
    for (const prefix of PREFIXES) {
      const document = await client.get<{ openapi: string }>(`${prefix}/api-docs/openapi.json`);
      assert.deepEqual([document.status, document.body.openapi], [200, '3.1.0']);
      assert.match(String(document.headers['content-type']), /^application\/json/);
      const page = await client.get(`${prefix}/swagger-ui`);
      assert.equal(page.status, 200);
      assert.equal(page.headers['content-type'], 'text/html; charset=utf-8');
      for (const reply of [document, page]) {
        assert.ok(reply.headers['x-request-id']);
        assert.equal(reply.headers['cache-control'], reply === page ? 'no-cache' : 'no-store');
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

  test('HEAD answers like GET without a body; other methods are 405', async () => {
    for (const path of ['/api-docs/openapi.json', '/swagger-ui', '/swagger-ui/swagger-ui.css']) {
      const [head, get] = [await client.request('HEAD', path), await client.get(path)];
      assert.deepEqual([head.status, head.text], [200, ''], path);
      assert.equal(head.headers['content-type'], get.headers['content-type'], path);
      const { status, headers } = await client.post(path, {});
      assert.deepEqual([status, headers.allow], [405, 'GET, HEAD'], path);
    }
  });

  test('no other file is served, whatever way its name is written', async () => {
    const files = 'index.html package.json swagger-ui-bundle.js.map SWAGGER-UI.css __proto__';
    const above = '..%2fpackage.json %2e%2e/%2e%2e/etc/passwd ../package.json ..%5cpackage.json';
    const names = `${files} ${above} .. .%00 %2fetc%2fpasswd ${'x'.repeat(5_000)}`.split(' ');
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

// ---------------------------------------------------------------- in a browser

/** Items of a list whose format the page has no field of its own for: it shows a plain one, and says so. */
const PLAIN_FIELD = /^Could not find component: JsonSchema_string_/;

const LIST = '#operations-Instances-instancesList';
/** Groups are closed until somebody opens them. */
async function openList(page: Page): Promise<void> {
  await page.click('#operations-tag-Instances');
  await page.locator(LIST).waitFor();
}

browsers.at(() => ({ url: api.url }))(
  'a person authorises on the page, also behind a prefix, and lists instances',
  async ({ page, complaints }) => {
    complaints.allow(PLAIN_FIELD);
    await page.goto(`${api.url}/api/v1/swagger-ui`);
    await openList(page);
    await authorise(page);
    const reply = page.waitForResponse((one) => one.url().includes('/instances?'));
    await execute(page);
    assert.equal((await reply).status(), 200);
    assert.equal(new URL((await reply).url()).pathname, '/api/v1/instances');
    const status = page.locator(`${LIST} .live-responses-table .response-col_status`).last();
    assert.match((await status.textContent()) ?? '', /^200/);
    assert.ok(complaints.paths.has('/api/v1/api-docs/openapi.json'));

    await page.goto(`${api.url}/swagger-ui`);
    await openList(page);
    assert.ok(complaints.paths.has('/api-docs/openapi.json'));
  },
);

async function authorise(page: Page): Promise<void> {
  await page.locator('.auth-wrapper button.authorize').click();
  for (const [header, value] of [
    ['x-api-key', DEFAULT_API_KEY],
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
