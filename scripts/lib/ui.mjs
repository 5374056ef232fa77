/**
 * The dashboard as static files in `dist/ui`: built by Vite, compressed once and for all, since the server sends them
 * from memory. Beside them a list of the packages that went into them, whose licences are shipped with them.
 *
 * It runs as a process of its own: Vite sets NODE_ENV, by which React is built for development or for use.
 */

import { readdirSync, readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');

const PACKAGES_FILE = 'dist/ui-packages.json';

/** Shorter ones gain nothing: they fit into one packet as they are. */
const COMPRESSED_BYTES_MIN = 1_024;
const COMPRESSIBLE = /\.(js|css|svg|json)$/;
/** The best: 2 s more than at 10, once for each build, for 1.6 % fewer bytes. */
const BROTLI_QUALITY = 11;

/** A module within a package, by its path below `node_modules`; with the folders of packages within packages. */
const PACKAGE = /^(?:(?:@[^/]+\/)?[^/]+\/node_modules\/)*(?:@[^/]+\/)?[^/]+(?=\/)/;
/** Code that a tool adds of its own. */
const OF_TOOL = /^\0(vite|rolldown)\//;

async function buildUi() {
  process.env.NODE_ENV = 'production';
  const { build } = await import('vite');
  const packages = new Set();
  await build({
    configFile: path.join(root, 'ui/vite.config.ts'),
    logLevel: 'warn',
    plugins: [{ name: 'bundled-packages', generateBundle: (_, bundle) => note(bundle, packages) }],
  });
  const folder = path.join(root, 'dist/ui');
  await Promise.all(filesIn(folder).map((file) => compress(path.join(folder, file))));
  writeFileSync(path.join(root, PACKAGES_FILE), JSON.stringify([...packages].sort()));
  const { all, firstPage } = sizesOf(folder);
  const kb = (files) => (files.reduce((sum, { bytes }) => sum + bytes, 0) / 1_024).toFixed(1);
  process.stderr.write(
    `[setup] the dashboard: ${kb(all)} KB brotli, of which the first page ${kb(firstPage)} KB\n`,
  );
}

function note(bundle, packages) {
  const installed = `${realpathSync(path.join(root, 'node_modules'))}${path.sep}`;
  for (const chunk of Object.values(bundle)) {
    for (const [id, { renderedLength }] of Object.entries(chunk.modules ?? {})) {
      const tool = OF_TOOL.exec(id)?.[1];
      if (tool !== undefined) packages.add(tool);
      // Of a style sheet nothing is left among the scripts.
      const isUsed = renderedLength > 0 || id.endsWith('.css');
      if (!isUsed || !id.startsWith(installed)) continue;
      const place = id.slice(installed.length).split(path.sep).join('/');
      packages.add(PACKAGE.exec(place)[0]);
    }
  }
}

async function compress(file) {
  const body = readFileSync(file);
  if (!COMPRESSIBLE.test(file) || body.length < COMPRESSED_BYTES_MIN) return;
  const params = { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY };
  writeFileSync(`${file}.gz`, await promisify(gzip)(body, { level: 9 }));
  writeFileSync(`${file}.br`, await promisify(brotliCompress)(body, { params }));
}

const filesIn = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath ?? entry.path, entry.name)));

/**
 * The files of the dashboard, the largest first, with their bytes as they are sent to a browser that takes brotli.
 *
 * @param folder of the built dashboard
 * @returns all files, and those that a browser loads before the first page is there: the page, and all that it names
 */
export function sizesOf(folder) {
  const page = readFileSync(path.join(folder, 'index.html'), 'utf8');
  const named = [...page.matchAll(/(?:src|href)="\.\/([^"]+)"/g)].map(([, file]) => file);
  const first = new Set(['index.html', ...named]);
  const there = new Set(filesIn(folder));
  const all = [...there]
    .filter((file) => !/\.(?:br|gz)$/.test(file))
    .map((file) => {
      const sent = there.has(`${file}.br`) ? `${file}.br` : file;
      return { file, bytes: statSync(path.join(folder, sent)).size };
    })
    .sort((a, b) => b.bytes - a.bytes);
  return { all, firstPage: all.filter(({ file }) => first.has(file)) };
}

/** Folders below the root of the packages of which something is in `dist`: in the dashboard, or copied beside it. */
export function bundledFolders() {
  const names = JSON.parse(readFileSync(path.join(root, PACKAGES_FILE), 'utf8'));
  return [...names, 'swagger-ui-dist'].map((name) => `node_modules/${name}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildUi();
