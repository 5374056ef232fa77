/**
 * Builds the dashboard into `dist/ui`. Addresses are relative, so that it works behind any prefix: the server tells each
 * page by `<base>` where the dashboard begins (`src/server/operations/dashboard.ts`), and so does the server for development.
 */

import { readFileSync } from 'node:fs';
import path from 'node:path';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

const root = import.meta.dirname;

/** The engine that `npm run ui` develops against. */
const ENGINE_URL = process.env.ENGINE_URL ?? 'http://127.0.0.1:8080';

const PLACE = '/ui/';

/**
 * What three pages or more share is one file with the first page. In files of their own these small modules are 5 % more to
 * send, since each is compressed by itself, and a page is dozens of requests.
 */
const SHARED = {
  name: 'shared',
  test: /ui[\\/]src[\\/](?:components|lib)[\\/]|lucide-react|jsx-runtime/,
  minShareCount: 3,
};

const base: Plugin = {
  name: 'base-of-pages',
  apply: 'serve',
  transformIndexHtml: () => [{ tag: 'base', attrs: { href: PLACE }, injectTo: 'head-prepend' }],
};

const DEFINITION_SCHEMAS = 'virtual:definition-schemas';

/** The schemas of definitions: a part of the API's document, all of which is too large to be sent for them. */
const schemas: Plugin = {
  name: 'definition-schemas',
  resolveId: (id) => (id === DEFINITION_SCHEMAS ? `\0${id}` : undefined),
  load(id) {
    if (id !== `\0${DEFINITION_SCHEMAS}`) return undefined;
    const document = readFileSync(path.join(root, '../docs/openapi.json'), 'utf8');
    const { components } = JSON.parse(document) as { components: { schemas: object } };
    const all = new Map(Object.entries(components.schemas));
    const taken = new Map<string, unknown>();
    const take = (name: string) => {
      if (taken.has(name)) return;
      const { examples: _, ...schema } = all.get(name);
      taken.set(name, schema);
      for (const [, other = ''] of JSON.stringify(schema).matchAll(/schemas\/(\w+)"/g)) take(other);
    };
    take('CreateSequence');
    return `export default ${JSON.stringify(Object.fromEntries(taken))}`;
  },
};

export default defineConfig(({ command }) => ({
  root,
  base: command === 'serve' ? PLACE : './',
  plugins: [react(), base, schemas],
  resolve: {
    alias: { 'durable-workflow-engine-client': path.join(root, '../client/src/index.ts') },
  },
  build: {
    outDir: path.join(root, '../dist/ui'),
    emptyOutDir: true,
    target: 'es2023',
    // The content security policy allows no `data:` addresses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: { output: { codeSplitting: { groups: [SHARED] } } },
  },
  server: {
    proxy: Object.fromEntries(
      ['/api', '/health', '/info', '/swagger-ui'].map((path) => [path, ENGINE_URL]),
    ),
  },
}));
