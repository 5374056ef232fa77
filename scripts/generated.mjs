/**
 * `npm run generate`: writes what is made from the sources and committed, so that its changes are seen
 * in review: `docs/openapi.json`, in the form that the linter asks for, `docs/statements.sql`, the types and
 * operations of the clients for TypeScript and Python, the licences of the packages that are shipped, and the
 * generated regions of pages (`scripts/reference`).
 */

import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { bootstrap, root } from './lib/bootstrap.mjs';
import { thirdPartyText } from './lib/licences.mjs';

await bootstrap({ withUi: false });
const { openApiDocument } = await import('../dist/schema/openapi.js');
const { statementsText } = await import('../dist/src/db/store.js');
const { STORE } = await import('../dist/actors/shard/store.js');
const { referencePages } = await import('../dist/scripts/reference/pages.js');
const { clientFiles } = await import('../dist/scripts/reference/client-operations.js');
const { fillRegions } = await import('../dist/scripts/reference/regions.js');
const { pythonFiles } = await import('../dist/scripts/reference/python.js');
const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
const document = path.join(root, 'docs/openapi.json');
writeFileSync(document, JSON.stringify(openApiDocument(version)));
writeFileSync(path.join(root, 'docs/statements.sql'), statementsText(STORE));
for (const [page, regions] of Object.entries(referencePages())) {
  const file = path.join(root, page);
  writeFileSync(file, fillRegions(readFileSync(file, 'utf8'), regions));
}
for (const [file, text] of Object.entries(pythonFiles())) {
  writeFileSync(path.join(root, file), text);
}
const written = Object.entries(clientFiles()).map(([file, text]) => {
  writeFileSync(path.join(root, file), text);
  return path.join(root, file);
});
const formatter = path.join(root, 'node_modules/@biomejs/biome/bin/biome');
const { status } = spawnSync(
  process.execPath,
  [formatter, 'check', '--write', document, ...written],
  {
    stdio: 'inherit',
  },
);
process.exitCode = status ?? 1;
// Which packages the dashboard holds is known when it is built, and that takes the types from above.
await bootstrap();
writeFileSync(path.join(root, 'THIRD-PARTY-LICENSES.txt'), thirdPartyText(root));
