/** `npm run openapi`: writes `docs/openapi.json`, in the form that the linter asks for. */

import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { bootstrap, root } from './lib/bootstrap.mjs';

await bootstrap();
const { openApiDocument } = await import('../dist/schema/openapi.js');
const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
const file = path.join(root, 'docs/openapi.json');
writeFileSync(file, JSON.stringify(openApiDocument(version)));
const formatter = path.join(root, 'node_modules/@biomejs/biome/bin/biome');
const { status } = spawnSync(process.execPath, [formatter, 'format', '--write', file], {
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
