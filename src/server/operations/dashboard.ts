/**
 * Serves the dashboard below `/ui/` from memory, in every state of the engine (docs/dashboard.md). Every path without
 * a file gets the page; its `<base>` is relative, so that it works behind a proxy that adds a prefix.
 */

import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { EngineError, notFound } from '../../base/errors.js';
import type { Pages } from '../../http/pipeline/context.js';
import { type HeaderList, refusalReply } from '../../http/reply.js';
import { wantsPage } from '../../http/request-head.js';
import type { HttpReply, HttpRequest } from '../../http/server.js';

/** At the root, and beside the API for proxies that forward only its prefix. */
const PLACE = /^(?:\/api\/v1)?\/ui(?=\/|$)/;
const PAGE = 'index.html';
/** The names of these files contain a hash of their content. */
const HASHED = 'assets/';

/** Allows scripts, styles, images and requests of this server only, and nothing inline. */
export function policyOf(media: string, base: string): readonly [string, string] {
  const policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; " +
    `${media}; connect-src 'self'; base-uri ${base}; ` +
    "form-action 'none'; frame-ancestors 'none'";
  return ['content-security-policy', policy];
}

export const COMMON_HEADERS: HeaderList = [
  ['x-content-type-options', 'nosniff'],
  ['referrer-policy', 'no-referrer'],
];
const SECURITY: HeaderList = [
  policyOf("img-src 'self'; font-src 'self'", "'self'"),
  ...COMMON_HEADERS,
  ['permissions-policy', 'camera=(), geolocation=(), microphone=(), payment=(), usb=()'],
  ['cross-origin-opener-policy', 'same-origin'],
  ['cross-origin-resource-policy', 'same-origin'],
];
/** Revalidated each time: after an update the page must match the new server. */
export const FRESH = ['cache-control', 'no-cache'] as const;
const FOR_GOOD = ['cache-control', 'public, max-age=31536000, immutable'] as const;

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml; charset=utf-8',
  '.woff2': 'font/woff2',
};
const UNKNOWN_TYPE = 'application/octet-stream';

/** Compressed variants from the build, smallest first. */
const CODINGS = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const;

interface Variant {
  readonly coding: string | undefined;
  readonly reply: HttpReply;
  readonly tag: string;
}

/** @param folder of the built dashboard; undefined: browsers are redirected to the API page */
export function createPages(folder: string | undefined): Pages {
  const start = redirect(folder === undefined ? 'swagger-ui' : 'ui/', [['vary', 'accept']]);
  const dashboard = folder === undefined ? undefined : createDashboard(folder);
  return (request) => (wantsStart(request) ? start : dashboard?.(request));
}

const wantsStart = (request: HttpRequest) =>
  request.path === '/' && isRead(request) && wantsPage(request);

const isRead = ({ method }: HttpRequest) => method === 'GET' || method === 'HEAD';

function createDashboard(folder: string): Pages {
  const page = readFileSync(path.join(folder, PAGE), 'utf8');
  const files = new Map(namesIn(folder).map((name) => [name, variantsOf(folder, name)]));
  return (request) => {
    const place = PLACE.exec(request.path)?.[0];
    if (place === undefined) return undefined;
    if (!isRead(request)) return NOT_ALLOWED;
    // Relative to the page, `ui/` is the folder beside it.
    if (request.path === place) return redirect(`ui/${search(request)}`, []);
    const name = request.path.slice(place.length + 1);
    const variants = files.get(name);
    if (variants !== undefined) return answer(request, chosen(request, variants));
    if (name.startsWith(HASHED)) throw unknownFile(name);
    return answer(request, pageAt(page, name.split('/').length - 1));
  };
}

export const unknownFile = (name: string) => notFound(`file ${name.slice(0, 100)}`);

const REFUSAL = refusalReply(
  new EngineError('ENG_METHOD_NOT_ALLOWED', 'the dashboard is only read'),
);
const NOT_ALLOWED: HttpReply = {
  ...REFUSAL,
  headers: [...(REFUSAL.headers ?? []), ['allow', 'GET, HEAD']],
};

function redirect(location: string, headers: HeaderList): HttpReply {
  return { status: 302, body: undefined, headers: [['location', location], FRESH, ...headers] };
}

const search = ({ query }: HttpRequest) => (query === '' ? '' : `?${query}`);

function namesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !CODINGS.some(([, end]) => entry.name.endsWith(end)))
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)))
    .map((name) => name.split(path.sep).join('/'))
    .filter((name) => name !== PAGE);
}

function variantsOf(folder: string, name: string): readonly Variant[] {
  const file = path.join(folder, name);
  const body = readFileSync(file);
  const tag = tagOf(body);
  const type = TYPES[path.extname(name)] ?? UNKNOWN_TYPE;
  const kept = name.startsWith(HASHED) ? FOR_GOOD : FRESH;
  const packed = CODINGS.filter(([, end]) => existsSync(file + end));
  const headers = packed.length === 0 ? [kept] : [kept, ['vary', 'accept-encoding'] as const];
  const plain = variant(body, type, tag, headers);
  const others = packed.map(([coding, end]) => {
    const own = [...headers, ['content-encoding', coding] as const];
    return { ...variant(readFileSync(file + end), type, `${tag}-${coding}`, own), coding };
  });
  return [...others, plain];
}

/** @param depth of the page's path below the dashboard */
function pageAt(page: string, depth: number): Variant {
  const base = depth === 0 ? './' : '../'.repeat(depth);
  const body = page.replace('<head>', `<head>\n    <base href="${base}" />`);
  return variant(body, TYPES['.html'] as string, tagOf(body), [FRESH]);
}

function variant(body: string | Buffer, type: string, name: string, own: HeaderList): Variant {
  const tag = `"${name}"`;
  const headers = [...SECURITY, ...own, ['etag', tag] as const];
  return { coding: undefined, tag, reply: { status: 200, body, contentType: type, headers } };
}

/** Enough bits to avoid collisions. */
const tagOf = (body: string | Buffer) =>
  createHash('sha256').update(body).digest('base64url').slice(0, 22);

function chosen(request: HttpRequest, variants: readonly Variant[]): Variant {
  const accepted = acceptedCodings(request.header('accept-encoding') ?? '');
  return variants.find(({ coding }) => coding === undefined || accepted.has(coding)) as Variant;
}

/** The named codings without a weight of 0. */
function acceptedCodings(header: string): ReadonlySet<string> {
  const named = header.toLowerCase().split(',');
  return new Set(
    named
      .map((one) => one.split(';').map((part) => part.trim()))
      .filter(([, weight = '']) => !/^q=0(?:\.0*)?$/.test(weight))
      .map(([coding = '']) => coding),
  );
}

function answer(request: HttpRequest, { reply, tag }: Variant): HttpReply {
  const known = (request.header('if-none-match') ?? '').split(',').map((one) => one.trim());
  const isKnown = known.some((one) => one === '*' || one.replace(/^W\//, '') === tag);
  return isKnown ? { ...reply, status: 304, body: undefined } : reply;
}
