/**
 * Builds the dashboard into `dist/ui`. Addresses are relative, so that it works behind any prefix: the server tells each
 * page by `<base>` where the dashboard begins (`src/server/operations/dashboard.ts`), and so does the server for development.
 */

import path from 'node:path';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

const root = import.meta.dirname;

/** The engine that `npm run ui` develops against. */
const ENGINE_URL = process.env.ENGINE_URL ?? 'http://127.0.0.1:8080';

const PLACE = '/ui/';

const base: Plugin = {
  name: 'base-of-pages',
  apply: 'serve',
  transformIndexHtml: () => [{ tag: 'base', attrs: { href: PLACE }, injectTo: 'head-prepend' }],
};

export default defineConfig(({ command }) => ({
  root,
  base: command === 'serve' ? PLACE : './',
  plugins: [react(), base],
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
  },
  server: {
    proxy: Object.fromEntries(
      ['/api', '/health', '/info', '/swagger-ui'].map((path) => [path, ENGINE_URL]),
    ),
  },
}));
