/** Builds the dashboard into `dist/ui`. Addresses are relative, so that it works behind any prefix. */

import path from 'node:path';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

const root = import.meta.dirname;

/** The engine that `npm run ui` develops against. */
const ENGINE_URL = process.env.ENGINE_URL ?? 'http://127.0.0.1:8080';

export default defineConfig({
  root,
  base: './',
  plugins: [react()],
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
  server: { proxy: { '/api': ENGINE_URL, '/health': ENGINE_URL, '/info': ENGINE_URL } },
});
