/** The dashboard as it is served: its page and files over HTTP, and in a real browser, which must need nothing but this server. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { request } from 'undici';
import { useSharedApi } from '../helpers/api.js';
import { useBrowser } from '../helpers/browser.js';

const FOLDER = fileURLToPath(new URL('../../ui', import.meta.url));
const PAGE = readFileSync(path.join(FOLDER, 'index.html'), 'utf8');
const SCRIPT = /src="\.\/(assets\/[^"]+\.js)"/.exec(PAGE)?.[1] as string;
const PREFIXES = ['', '/api/v1'];
const HTML = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';

const api = useSharedApi();
const browsers = useBrowser();

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly bytes: Buffer;
}

/** As it comes over the wire: nothing is unpacked, and no redirect followed. */
async function ask(url: string, headers: Record<string, string> = {}, method = 'GET') {
  const reply = await request(url, { method: method as 'GET', headers });
  const bytes = Buffer.from(await reply.body.arrayBuffer());
  return { status: reply.statusCode, headers: reply.headers, bytes } satisfies Answer;
}

const at = (place: string, headers?: Record<string, string>, method?: string) =>
  ask(api.url + place, headers, method);

test('the bare address redirects browsers, and only them, to the dashboard', async () => {
  for (const method of ['GET', 'HEAD']) {
    const { status, headers } = await at('/', { accept: HTML }, method);
    assert.deepEqual([status, headers.location], [302, 'ui/']);
    assert.match(String(headers.vary), /\baccept\b/);
  }
  for (const [method, accept] of [
    ['GET', '*/*'],
    ['GET', 'application/json'],
    ['POST', HTML],
  ] as const) {
    const { status, bytes } = await at('/', { accept }, method);
    assert.equal(status, 404);
    assert.deepEqual(JSON.parse(bytes.toString()), { error: 'not found: no route /' });
  }
});

test('every place below /ui/ is the page, which knows where the dashboard begins', async () => {
  for (const prefix of PREFIXES) {
    const bare = await at(`${prefix}/ui?a=1`);
    assert.deepEqual([bare.status, bare.headers.location], [302, 'ui/?a=1']);
    for (const [place, base] of [
      ['', './'],
      ['instances', './'],
      ['instances/0195?tab=tree', '../'],
      ['sequences/a/2/diff', '../../../'],
      ['a//b', '../../'],
      ['a%20b/%ff', '../'],
    ] as const) {
      const { status, headers, bytes } = await at(`${prefix}/ui/${place}`);
      assert.equal(status, 200, place);
      assert.equal(headers['content-type'], 'text/html; charset=utf-8');
      assert.equal(headers['cache-control'], 'no-cache');
      assert.ok(bytes.toString().includes(`<base href="${base}" />`), place);
      assert.ok(headers['x-request-id']);
    }
  }
  assert.equal((await at('/uix')).status, 404);
});

test('the page may load and ask nothing but this server, and holds nothing inline', async () => {
  const { headers, bytes } = await at('/ui/');
  const policy = String(headers['content-security-policy']);
  const rules = policy.split('; ');
  for (const rule of [
    ...["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'"],
    ...["base-uri 'self'", "form-action 'none'", "frame-ancestors 'none'"],
  ]) {
    assert.ok(rules.includes(rule), policy);
  }
  assert.doesNotMatch(policy, /unsafe|data:|https?:|\*/);
  assert.equal(headers['x-content-type-options'], 'nosniff');
  assert.equal(headers['referrer-policy'], 'no-referrer');
  assert.equal(headers['cross-origin-opener-policy'], 'same-origin');
  assert.match(String(headers['permissions-policy']), /camera=\(\)/);
  const text = bytes.toString();
  assert.doesNotMatch(text, /<script>|<style|\s(?:style|on\w+)=|(?:src|href)="(?:\/|[a-z]+:)/);
});

test('files are sent compressed as the browser asks for, and may be kept for good', async () => {
  const plain = readFileSync(path.join(FOLDER, SCRIPT));
  for (const [asked, coding, unpack] of [
    ['gzip, deflate, br, zstd', 'br', brotliDecompressSync],
    ['gzip, deflate', 'gzip', gunzipSync],
    ['br;q=0, GZIP;q=0.5', 'gzip', gunzipSync],
    ['gzip;q=0.0, identity', undefined, (body: Buffer) => body],
    ['', undefined, (body: Buffer) => body],
  ] as const) {
    for (const prefix of PREFIXES) {
      const place = `${prefix}/ui/${SCRIPT}`;
      const { status, headers, bytes } = await at(place, { 'accept-encoding': asked });
      assert.equal(status, 200);
      assert.equal(headers['content-encoding'], coding, asked);
      assert.equal(headers['content-type'], 'text/javascript; charset=utf-8');
      assert.equal(headers['cache-control'], 'public, max-age=31536000, immutable');
      assert.match(String(headers.vary), /\baccept-encoding\b/);
      assert.ok(unpack(bytes).equals(plain), asked);
    }
  }
  const icon = await at('/ui/icon.svg');
  assert.equal(icon.headers['content-type'], 'image/svg+xml; charset=utf-8');
  assert.equal(icon.headers['cache-control'], 'no-cache');
});

test('what a browser has already is not sent again', async () => {
  for (const place of ['/ui/', '/ui/instances/1', `/ui/${SCRIPT}`, '/ui/icon.svg']) {
    const accepted = { 'accept-encoding': 'br' };
    const { headers } = await at(place, accepted);
    const tag = String(headers.etag);
    for (const known of [tag, `W/${tag}`, `"other", ${tag}`, '*']) {
      const again = await at(place, { ...accepted, 'if-none-match': known });
      assert.deepEqual([again.status, again.bytes.length], [304, 0], place);
      assert.equal(again.headers.etag, tag);
      assert.equal(again.headers['cache-control'], headers['cache-control']);
    }
    assert.equal((await at(place, { ...accepted, 'if-none-match': '"other"' })).status, 200);
  }
});

test('HEAD answers like GET without a body; other methods are 405', async () => {
  for (const place of ['/ui/', '/ui/instances', `/ui/${SCRIPT}`, '/ui/icon.svg']) {
    const accepted = { 'accept-encoding': 'gzip' };
    const [get, head] = [await at(place, accepted), await at(place, accepted, 'HEAD')];
    assert.deepEqual([head.status, head.bytes.length], [200, 0]);
    for (const name of ['content-type', 'content-length', 'content-encoding', 'etag']) {
      assert.equal(head.headers[name], get.headers[name], `${place} ${name}`);
    }
    const post = await at(place, {}, 'POST');
    assert.deepEqual([post.status, post.headers.allow], [405, 'GET, HEAD']);
    assert.equal(post.headers['x-error-code'], 'ENG_METHOD_NOT_ALLOWED');
  }
});

test('a file that is none is not found, whatever way its name is written', async () => {
  for (const name of [
    'none.js',
    '',
    '..%2f..%2fpackage.json',
    '../index.html',
    'x'.repeat(5_000),
  ]) {
    for (const prefix of PREFIXES) {
      const { status, headers } = await at(`${prefix}/ui/assets/${name}`);
      // A client may go up by itself, and then asks for the page.
      assert.equal(status, name.startsWith('../') ? 200 : 404, name);
      if (status === 404) assert.equal(headers['x-error-code'], 'ENG_NOT_FOUND');
    }
  }
  assert.equal((await at(`/ui/${SCRIPT}.gz`)).status, 404);
});

browsers.at(() => ({ url: api.url }))(
  'in a browser the page needs nothing but this server, behind a prefix, too',
  async ({ page, complaints }) => {
    // Nobody is signed in.
    complaints.allow(/401/);
    for (const place of ['/', '/ui', '/ui/none/of/these?a=1', '/api/v1/ui/instances/1']) {
      await page.goto(api.url + place);
      await page.locator('#root > *').first().waitFor();
      assert.match(await page.evaluate('document.baseURI'), /\/ui\/$/);
    }
  },
);
