/**
 * The OpenAPI document and the page to read it and to try operations (docs/authorization.md).
 * Everything comes from this server: the page loads nothing from anywhere else, and its policy
 * forbids it.
 */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { openApiDocument } from '../../../schema/openapi.js';
import type { FrontOperations } from '../../http/operation.js';
import type { HttpReply } from '../../http/server.js';
import { COMMON_HEADERS, FRESH, policyOf, unknownFile } from './dashboard.js';
import { PAGE_SCRIPT, PAGE_STYLE, renderPage } from './docs-page.js';

export interface DocsDeps {
  readonly version: string;
  /** The document asks for key and tenant; the page does not. */
  readonly isProtected: boolean;
}

/** Files of the package `swagger-ui-dist` that are served, with their types. */
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
/** Their addresses on the page change with the version. */
const ASSET_HEADERS = [...COMMON_HEADERS, ['cache-control', 'public, max-age=86400']] as const;

export function createDocs({ version, isProtected }: DocsDeps) {
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

/** Once per file, from a list of names: nothing of a request gets into the path. */
function readFile(name: string): Buffer {
  const manifest = createRequire(import.meta.url).resolve('swagger-ui-dist/package.json');
  return readFileSync(path.join(path.dirname(manifest), name));
}

function once(make: () => HttpReply): () => HttpReply {
  let made: HttpReply | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
